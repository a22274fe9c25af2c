//! Troubles of connectors: an operator is notified once, and once more when they are over.

use super::Shared;
use super::calls::CallFailure;
use super::served::Served;
use crate::journal::Context;
use domain::connector::ConnectorFailure;
use domain::event::{ConnectorTroubled, Event};
use domain::trouble::ServiceTrouble;
use store::{Commit, Expected};

impl Shared {
    /// Records that a connector works, and notifies the operator if it did not before.
    pub(super) async fn note_success(&self, served: &Served) {
        let reported = served.lasting.health().note_success();
        self.tell(served, reported).await;
    }

    /// Records that a message could not be sent, and notifies the operator if necessary.
    pub(super) async fn note_failure(&self, served: &Served, failure: &ConnectorFailure) {
        let now = self.core.now();
        let reported = served.lasting.health().note_failure(failure, now);
        self.tell(served, reported).await;
    }

    /// Records that no messages could be received, and notifies the operator if necessary. A call
    /// for which the host had no place is not counted: it does not indicate trouble of the
    /// connector. Returns the milliseconds until the connector should be polled again.
    pub(super) async fn note_intake_failure(&self, served: &Served, failure: CallFailure) -> u64 {
        let is_counted = matches!(failure, CallFailure::Failed(_));
        let failure = ConnectorFailure::from(failure);
        let (reported, pause_ms) = {
            let mut health = served.lasting.health();
            let reported = is_counted.then(|| health.note_intake_failure(&failure));
            (reported.flatten(), health.pause_ms(&failure))
        };
        self.tell(served, reported).await;
        pause_ms
    }

    async fn tell(&self, served: &Served, reported: Option<ServiceTrouble>) {
        let Some(trouble) = reported else { return };
        let name = &served.name;
        match &trouble {
            ServiceTrouble::Unauthorised { reason } => {
                tracing::warn!(connector.name = %name, reason, "a connector's credentials do not count");
            }
            ServiceTrouble::Failing { reason } => {
                tracing::warn!(connector.name = %name, reason, "a connector's service cannot be used");
            }
            ServiceTrouble::Recovered => {
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
