//! The start, the reload and the stop of the edge.

use crate::connectors::Connectors;
use crate::core::Core;
use crate::settings::EdgeSettings;
use crate::triggers::Triggers;
use broker::{Broker, Error};
use runtime::Runtime;
use std::sync::Arc;
use std::time::Duration;
use store::Store;

/// The time that work under way has to reach a commit when the edge stops.
const LEAVE: Duration = Duration::from_secs(5);

/// The parts that an edge is made of.
#[derive(Debug)]
pub struct EdgeParts {
    /// The broker, which everything goes through that is not the edge's own.
    pub broker: Broker,
    /// The event store. The edge keeps the streams of triggers and connectors by itself.
    pub store: Store,
    /// The runtime of the components of triggers and connectors.
    pub runtime: Runtime,
    /// The configuration of the edge.
    pub settings: EdgeSettings,
}

/// The edge of a host: its triggers and its connectors. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Edge {
    core: Arc<Core>,
    triggers: Triggers,
    connectors: Connectors,
}

impl Edge {
    /// Starts the edge. It continues with everything that was accepted before and not processed.
    ///
    /// # Errors
    /// The store cannot be read, or the configuration cannot be recorded.
    pub async fn start(parts: EdgeParts) -> Result<Self, Error> {
        let core = Core::new(parts.broker, parts.store, parts.runtime, parts.settings);
        let triggers = Triggers::start(core.clone()).await?;
        let connectors = Connectors::start(core.clone()).await?;
        Ok(Self {
            core,
            triggers,
            connectors,
        })
    }

    /// Replaces the present configuration. Work under way ends as it began.
    ///
    /// # Errors
    /// The store cannot be read, or the configuration cannot be recorded. The settings are in force
    /// all the same, and the triggers are compared again at the next start.
    pub async fn replace(&self, settings: EdgeSettings) -> Result<(), Error> {
        self.core.replace(settings);
        self.triggers.replaced().await?;
        self.connectors.replaced().await
    }

    /// Returns the triggers.
    #[must_use]
    pub fn triggers(&self) -> &Triggers {
        &self.triggers
    }

    /// Returns the connectors.
    #[must_use]
    pub fn connectors(&self) -> &Connectors {
        &self.connectors
    }

    /// Stops the edge before its broker stops. Everything that was accepted and not processed
    /// continues at the next start.
    pub async fn stop(&self) {
        self.core.stop(LEAVE).await;
    }
}
