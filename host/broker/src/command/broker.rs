//! The broker itself, which all commands are given to.

use super::Error;
use crate::boxed::boxed;
use crate::catalogue::Catalogue;
use crate::clock::{Clock, ClockState};
use crate::core::{Core, Stats};
use crate::live::Live;
use crate::refusals::busy;
use crate::telemetry::Listener;
use domain::path::ModelRole;
use domain::telemetry::TelemetryFilter;
use serde_json::Value;
use std::sync::Arc;
use store::Store;
use tokio::sync::watch;

/// The broker. It is cheap to clone.
#[derive(Clone)]
pub struct Broker {
    pub(crate) core: Arc<Core>,
    /// True if no rule on paths hides anything from the caller.
    pub(crate) is_unruled: bool,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("catalogue", &self.core.served().catalogue)
            .finish_non_exhaustive()
    }
}

impl Broker {
    /// Returns the event store, for reading.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.core.store
    }

    /// Returns the catalogue that is served now.
    #[must_use]
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.core.served().catalogue.clone()
    }

    /// Returns the model that is configured for a role now; none without one.
    #[must_use]
    pub fn model_of_role(&self, role: ModelRole) -> Option<String> {
        let served = self.core.served();
        served.settings.paths.models.get(&role).cloned()
    }

    /// Returns a watch on a counter that changes whenever an API key is revoked. A holder of a
    /// right that depends on a key checks it again then.
    #[must_use]
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.core.revocations.subscribe()
    }

    /// Returns the host's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// Adopts the wall clock, because an operator confirmed it. A clock that is ahead is followed:
    /// everything due by it becomes due, and it no longer extends the lifetime of keys. By one that
    /// is behind, credentials expire, also after a restart.
    #[boxed]
    pub async fn confirm_clock(&self) -> ClockState {
        let state = self.core.clock.confirm();
        // Written before the answer, so that the next process knows it.
        self.core.clock.carry().await;
        self.core.keep_keys();
        self.core.timers.notify_one();
        state
    }

    /// Returns figures of the broker: its drivers and how often they were woken.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Subscribes to telemetry. With `content`, chunks of replies include their text: the caller
    /// has recorded the reading.
    #[must_use]
    pub fn listen(&self, filter: TelemetryFilter, content: bool) -> Listener {
        let from = *self.core.store.durable().borrow();
        self.core.telemetry.listen(from, filter, content)
    }

    /// Returns the faults of a document by a JSON Schema that is used once, each with its place;
    /// none when it fits.
    ///
    /// # Errors
    /// It could not be compared in time.
    #[boxed]
    pub async fn complaints(
        &self,
        schema: &Value,
        document: Value,
    ) -> Result<Option<String>, Error> {
        let judged = self.core.schemas.judge(schema, document).await;
        judged.map_err(|given_up| busy(&given_up.to_string()).into())
    }

    /// Returns the feed of ephemeral frames.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.core.live
    }
}
