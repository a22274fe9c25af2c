//! Messages that a service took and did not deliver after all. They count as delivered until it
//! says so, and are given up then.

use super::Shared;
use super::sending::subject_of;
use super::served::Served;
use crate::journal::Context;
use broker::Error;
use domain::connector::Undelivered;
use domain::event::{DeliveryOutcome, DeliverySettled, Event, NewEvent};
use store::{Commit, CommitError, ConnectorGuard, DeliveryState, Expected};

/// Milliseconds after which a message is looked for once more: the answer to sending it may be on
/// its way still.
const AGAIN_MS: u64 = 1_000;

impl Shared {
    /// Gives up the messages that a service did not deliver. One that is told again is given up
    /// once, and one that nobody knows is another program's.
    ///
    /// # Errors
    /// It cannot be stored now.
    pub(super) async fn give_up_undelivered(
        &self,
        served: &Served,
        undelivered: &[Undelivered],
    ) -> Result<(), Error> {
        let mut unknown = Vec::new();
        for report in undelivered {
            if !self.give_up(served, report).await? {
                unknown.push(report);
            }
        }
        if unknown.is_empty() || !self.core.sleep_ms(AGAIN_MS).await {
            return Ok(());
        }
        for report in unknown {
            self.give_up(served, report).await?;
        }
        Ok(())
    }

    /// Gives up a message. Returns whether it is one of the host's.
    async fn give_up(&self, served: &Served, report: &Undelivered) -> Result<bool, Error> {
        let store = self.core.store();
        let found = store.delivery_of(&served.name, &report.id).await?;
        let Some(row) = found else {
            return Ok(false);
        };
        if row.state != DeliveryState::Delivered {
            return Ok(true);
        }
        let now = self.core.now();
        let settled = Event::DeliverySettled(DeliverySettled {
            connector: served.name.clone(),
            delivery: row.delivery,
            outcome: DeliveryOutcome::Dead {
                reason: report.reason.clone(),
            },
            edits: None,
            time: now,
        });
        let event = NewEvent {
            subject: subject_of(&row.cause),
            ..Context::new(served.origin(), now).event(settled)
        };
        let commit = Commit::new()
            .guard(ConnectorGuard::DeliveryIs {
                delivery: row.delivery,
                state: row.state,
            })
            .append(served.stream(), Expected::Any, vec![event]);
        match store.commit(commit).await {
            Ok(_) => tracing::warn!(
                connector.name = %served.name,
                delivery.id = %row.delivery,
                reason = report.reason,
                "a service took a message and did not deliver it; it is given up"
            ),
            // Somebody else deals with it.
            Err(CommitError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }
}
