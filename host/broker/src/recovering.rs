//! The sessions whose turns are recovered after an unrequested end of the host, and those whose
//! work may have caused it.

use domain::id::{RunId, SessionId};
use domain::isolation::Suspicions;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::Store;

/// The sessions that had work at an unrequested end of the host. The recovery of their turns is
/// recorded.
#[derive(Debug, Default)]
pub(crate) struct Recovering {
    sessions: Mutex<HashSet<SessionId>>,
    /// The sessions over whose work it may have ended.
    pub(crate) suspects: Suspects,
}

impl Recovering {
    /// Notes these sessions, and that the host is at work from here on.
    pub(crate) async fn begin(&self, store: &Store, was_ended: bool, work: &[SessionId]) {
        if !was_ended {
            tracing::warn!(
                sessions = work.len(),
                "the host did not end cleanly last time; work that is recovered is recorded"
            );
            self.sessions().extend(work);
        }
        // A failure leaves the last mark: the next end then counts as a wanted one.
        if let Err(error) = store.begin_work().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "it cannot be noted that the host is at work"
            );
        }
    }

    pub(crate) fn has(&self, session: SessionId) -> bool {
        self.sessions().contains(&session)
    }

    /// Drops a session: its recovery is recorded, or it had no work.
    pub(crate) fn take(&self, session: SessionId) {
        self.sessions().remove(&session);
    }

    fn sessions(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The suspicions that this process began with.
#[derive(Debug, Default)]
pub(crate) struct Suspects(Mutex<Suspicions>);

impl Suspects {
    pub(crate) fn begin(&self, suspicions: Suspicions) {
        *self.suspicions() = suspicions;
    }

    /// Returns the number of ends of the process because of which a session's run will be given up;
    /// none otherwise.
    pub(crate) fn over(&self, session: SessionId, run: RunId) -> Option<u32> {
        let suspicions = self.suspicions();
        let suspicion = suspicions.get(&session)?;
        let is_of_run = suspicion.run.is_none_or(|suspect| suspect == run);
        (is_of_run && suspicion.is_over()).then_some(suspicion.ends)
    }

    /// Forgets a session: its work was given up.
    pub(crate) fn forget(&self, session: SessionId) {
        self.suspicions().remove(&session);
    }

    fn suspicions(&self) -> MutexGuard<'_, Suspicions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
