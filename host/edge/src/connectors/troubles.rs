//! Troubles of connectors: told to an operator once, and once that they are over.

use super::Shared;
use super::served::Served;
use crate::journal::Context;
use domain::connector::ConnectorFailure;
use domain::event::{ConnectorTrouble, ConnectorTroubled, Event};
use std::sync::PoisonError;
use store::{Commit, Expected};

impl Shared {
    /// Notes that a connector works, and says so if it did not.
    pub(super) async fn note_success(&self, served: &Served) {
        let told = served
            .standing
            .health
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note_success();
        self.tell(served, told).await;
    }

    /// Notes that a connector failed, and says so where an operator should know. Returns the
    /// milliseconds until it should be asked again for messages.
    pub(super) async fn note_failure(&self, served: &Served, failure: &ConnectorFailure) -> u64 {
        let now = self.core.now();
        let (told, pause_ms) = {
            let mut health = served
                .standing
                .health
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let told = health.note_failure(failure, now);
            (told, health.pause_ms(failure))
        };
        self.tell(served, told).await;
        pause_ms
    }

    async fn tell(&self, served: &Served, told: Option<ConnectorTrouble>) {
        let Some(trouble) = told else { return };
        let name = &served.name;
        match &trouble {
            ConnectorTrouble::Unauthorised { reason } => {
                tracing::warn!(connector.name = %name, reason, "a connector's credentials do not count");
            }
            ConnectorTrouble::Failing { reason } => {
                tracing::warn!(connector.name = %name, reason, "a connector's service cannot be used");
            }
            ConnectorTrouble::Recovered => {
                tracing::info!(connector.name = %name, "a connector works again");
            }
        }
        let now = self.core.now();
        let event = Event::ConnectorTroubled(ConnectorTroubled {
            connector: served.name.clone(),
            trouble,
            time: now,
        });
        let event = Context::new(served.origin(), now).event(event);
        let commit = Commit::new().append(served.stream(), Expected::Any, vec![event]);
        if let Err(error) = self.core.store().commit(commit).await {
            tracing::warn!(
                connector.name = %served.name,
                error = &error as &dyn std::error::Error,
                "a connector's state cannot be recorded"
            );
        }
    }
}
