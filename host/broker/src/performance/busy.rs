//! Work under way on an operation, with its entry in the ledger, whatever becomes of the work.

use crate::ledger::ledger_event;
use domain::event::{BoundaryDecided, Event};
use domain::time::Timestamp;
use runtime::CallAudit;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// The time that stopped work has to end, in milliseconds. Its last decisions are then recorded.
const STOPPED_MS_MAX: u64 = 1_000;

/// Work under way. It is stopped when this is dropped.
pub(crate) struct Busy {
    work: AbortOnDropHandle<()>,
    audit: CallAudit,
    /// The ledger's entry, without the content of the call audit.
    entry: BoundaryDecided,
    /// True if the ledger already has an entry for it.
    reported: bool,
}

impl Busy {
    pub(crate) fn new(
        work: AbortOnDropHandle<()>,
        audit: CallAudit,
        entry: BoundaryDecided,
    ) -> Self {
        Self {
            work,
            audit,
            entry,
            reported: false,
        }
    }

    /// Returns the ledger's entry for the work so far, which continues. None when there is nothing
    /// new to record.
    pub(crate) fn so_far(&mut self, time: Timestamp) -> Option<Event> {
        let (decided, egress) = self.audit.take();
        // Every call of a tool is on record with its code and its grant, even if it asked for
        // nothing.
        let is_reported = (self.entry.tool.is_some() && !self.reported)
            || !decided.decisions.is_empty()
            || !egress.is_empty();
        self.reported |= is_reported;
        is_reported.then(|| {
            let entry = BoundaryDecided {
                egress,
                ..self.entry.clone()
            };
            ledger_event(entry, decided, time)
        })
    }

    /// Returns the ledger's entry for the work, which ends here. None when there is nothing new to
    /// record.
    pub(crate) fn ended(mut self, time: Timestamp) -> Option<Event> {
        let reported = self.so_far(time);
        drop(self.work);
        reported
    }

    /// Stops the work, and returns its entry with all that was under way when it stopped.
    pub(crate) async fn stopped(mut self, time: Timestamp) -> Option<Event> {
        self.work.abort();
        // The work is over, however it ends. Work that does not stop in time is left to itself.
        let _ = timeout(Duration::from_millis(STOPPED_MS_MAX), &mut self.work).await;
        self.audit.closed().await;
        self.ended(time)
    }
}
