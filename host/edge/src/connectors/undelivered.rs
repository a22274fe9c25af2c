//! Messages that a service accepted and did not deliver after all. They count as delivered until
//! the service reports the loss, and are then given up.
//!
//! A report may arrive before the answer to sending its message. Such a report is stored, and found
//! when the id of the message is recorded.

use super::Shared;
use super::sending::subject_of;
use super::served::Served;
use crate::journal::Context;
use broker::Error;
use domain::connector::{Undelivered, kept_reason};
use domain::digest::Digest;
use domain::error_code::ErrorCode;
use domain::event::{Event, NewEvent, OutboundMessageOutcome, OutboundMessageSettled};
use domain::refusal::Refusal;
use store::{ChunkUnderId, Commit, CommitError, ConnectorGuard, Expected, Key, ReadError};

/// Maximum number of reports on unknown messages of one connector, which are kept while any message
/// is being sent. Each is kept for as long as idempotency keys are.
const REPORTS_KEPT_MAX: usize = 1_000;
/// Number of tries while a message changes its state.
const TRIES_MAX: u32 = 8;

impl Shared {
    /// Gives up the messages that a service did not deliver. A repeated report gives up its message
    /// once. A report about an unknown message is kept while a message is being sent; otherwise it
    /// concerns another program's.
    ///
    /// # Errors
    /// It cannot be stored now.
    pub(super) async fn give_up_undelivered(
        &self,
        served: &Served,
        reports: &[Undelivered],
    ) -> Result<(), Error> {
        if reports.is_empty() {
            return Ok(());
        }
        let mut kept = served.lasting.reports.lock().await;
        let ids: Vec<&str> = reports.iter().map(|report| report.id.as_str()).collect();
        let store = self.core.store();
        let found = store.chunks_under(&served.name, &ids).await?;
        let is_sending = store.is_sending(&served.name).await?;
        if !is_sending {
            *kept = 0;
        }
        for report in reports {
            match found.iter().find(|chunk| chunk.service_id == report.id) {
                Some(chunk) => self.give_up(served, chunk, &report.reason).await?,
                None if !is_sending => {}
                None if *kept < REPORTS_KEPT_MAX => {
                    self.keep_report(served, report).await?;
                    *kept += 1;
                }
                None => tracing::warn!(
                    connector.name = %served.name,
                    "a report on a message that nobody knows is left out: too many are kept"
                ),
            }
        }
        Ok(())
    }

    /// Returns the reason why a message was not delivered, from a report that arrived before the id
    /// of the message was recorded; none without one.
    pub(super) async fn kept_report(
        &self,
        served: &Served,
        id: &str,
    ) -> Result<Option<String>, ReadError> {
        let Key { source, key, .. } = report_key(served, id, "");
        let kept = self
            .core
            .store()
            .remembered_request(&source, &key, self.core.now())
            .await?;
        Ok(kept.map(|kept| String::from_utf8_lossy(&kept.reply).into_owned()))
    }

    async fn keep_report(&self, served: &Served, report: &Undelivered) -> Result<(), Error> {
        let key = report_key(served, &report.id, &report.reason);
        match self.core.store().commit(Commit::new().key(key)).await {
            // It is a repeated report.
            Ok(_) | Err(CommitError::Replayed { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives up a message of which a chunk did not arrive.
    async fn give_up(
        &self,
        served: &Served,
        found: &ChunkUnderId,
        reason: &str,
    ) -> Result<(), Error> {
        let store = self.core.store();
        for _ in 0..TRIES_MAX {
            let row = store.outbound_message(found.outbound_message).await?;
            let Some(row) = row.filter(|row| !row.lost.contains(&found.chunk)) else {
                return Ok(());
            };
            let now = self.core.now();
            // Further chunks will follow while it is open.
            let chunks = row.service_ids.len() + usize::from(row.state.is_open());
            let outcome = undelivered(found.chunk, chunks, reason);
            let settled = Event::OutboundMessageSettled(OutboundMessageSettled {
                connector: served.name.clone(),
                outbound_message: row.outbound_message,
                outcome,
                edits: None,
                time: now,
            });
            let event = NewEvent {
                subject: subject_of(&row.cause),
                ..Context::new(served.origin(), now).event(settled)
            };
            let commit = Commit::new()
                .guard(ConnectorGuard::OutboundMessageIs {
                    outbound_message: row.outbound_message,
                    state: row.state,
                })
                .append(served.stream(), Expected::Any, vec![event]);
            match store.commit(commit).await {
                Ok(_) => {
                    tracing::warn!(
                        connector.name = %served.name,
                        outbound_message.id = %row.outbound_message,
                        reason,
                        "a service took a message and did not deliver it; it is given up"
                    );
                    return Ok(());
                }
                // Another chunk of it is being sent at this moment, or it was erased.
                Err(CommitError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let reported = "the message is changing its state at this moment; try again shortly";
        Err(Refusal::new(ErrorCode::Busy, reported).into())
    }
}

/// Returns the outcome of a message with an undelivered chunk, out of so many. The reason names the
/// chunk if there are several.
pub(super) fn undelivered(chunk: u32, of: usize, reason: &str) -> OutboundMessageOutcome {
    let number = chunk.saturating_add(1);
    let reason = match of {
        0 | 1 => reason.to_owned(),
        _ => kept_reason(&format!("piece {number} did not arrive: {reason}")),
    };
    OutboundMessageOutcome::Undelivered { chunk, reason }
}

/// Returns the key under which a report is kept: the store remembers keys for a limited time.
fn report_key(served: &Served, id: &str, reason: &str) -> Key {
    Key {
        source: format!("{} reports", served.origin()),
        key: id.to_owned(),
        request: Digest::of(id.as_bytes()),
        reply: reason.as_bytes().to_vec(),
        about: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_piece_is_named_where_there_are_several() {
        for (chunk, of, expected) in [
            (0, 1, "131047"),
            (0, 2, "piece 1 did not arrive: 131047"),
            (2, 3, "piece 3 did not arrive: 131047"),
        ] {
            let OutboundMessageOutcome::Undelivered { reason, .. } =
                undelivered(chunk, of, "131047")
            else {
                panic!("an undelivered piece")
            };
            assert_eq!(reason, expected);
        }
    }
}
