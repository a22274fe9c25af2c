//! Work that is under way on an operation, with what the ledger will have of it, whatever becomes of the work.

use domain::event::{BoundaryDecided, Event};
use domain::time::Timestamp;
use runtime::{Decided, Dossier};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// Milliseconds that stopped work is waited for, so that what it did last is on record.
const STOPPED_MS_MAX: u64 = 1_000;

/// Work that is under way. It ends with this.
pub(crate) struct Busy {
    work: AbortOnDropHandle<()>,
    dossier: Dossier,
    /// The entry of the ledger, without what is in the dossier.
    entry: BoundaryDecided,
    /// Whether the ledger has an entry for it already.
    told: bool,
}

impl Busy {
    pub(super) fn new(work: AbortOnDropHandle<()>, dossier: Dossier, entry: BoundaryDecided) -> Self {
        Self { work, dossier, entry, told: false }
    }

    /// The ledger's entry for the work so far, which goes on; none when there is nothing to tell that it does not have already.
    pub(super) fn so_far(&mut self, time: Timestamp) -> Option<Event> {
        let (Decided { decisions, left_out }, egress) = self.dossier.take();
        // Every call of a tool is on record: with its code and its grant, also when it asked for nothing.
        let is_told = (self.entry.tool.is_some() && !self.told) || !decisions.is_empty() || !egress.is_empty();
        self.told |= is_told;
        let entry = || BoundaryDecided { decisions, left_out, egress, time, ..self.entry.clone() };
        is_told.then(|| Event::BoundaryDecided(Box::new(entry())))
    }

    /// The ledger's entry for the work, which ends here; none when there is nothing to tell.
    pub(super) fn ended(mut self, time: Timestamp) -> Option<Event> {
        let told = self.so_far(time);
        drop(self.work);
        told
    }

    /// Stops the work, and waits until what it was about when it was stopped is on record too.
    pub(super) async fn stopped(mut self, time: Timestamp) -> Option<Event> {
        self.work.abort();
        // However the work ends: it is over. What does not stop in time is not waited for.
        let _ = timeout(Duration::from_millis(STOPPED_MS_MAX), &mut self.work).await;
        self.dossier.closed().await;
        self.ended(time)
    }
}
