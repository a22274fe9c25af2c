//! Sessions with which a driver cannot go on, however often it tries: they are left alone, and the operator is told.

use super::{Driver, Trouble};
use crate::quarantine::{Quarantined, Why};
use store::ReadError;

/// Looks in a row at a session that could not be read or folded, after which it is left alone.
const UNREADABLE_MAX: u32 = 5;
/// Panics of a driver in a row after which not even the end of what it was about can be recorded.
const PANICS_MAX: u32 = 6;

impl Driver {
    /// The reason to leave the session alone after this trouble; none when it may pass.
    pub(super) fn is_stuck(&mut self, trouble: &Trouble) -> Option<String> {
        if !is_unreadable(trouble) {
            return None;
        }
        self.unreadable += 1;
        (self.unreadable >= UNREADABLE_MAX).then(|| with_causes(trouble))
    }

    /// The same after a panic.
    pub(super) fn is_stuck_panicking(&self, panic: &str) -> Option<String> {
        (self.panics >= PANICS_MAX).then(|| format!("the host panics whatever it tries for it: {panic}"))
    }

    /// Leaves the session alone. Nothing of it that is in memory could be recorded. False when it was released meanwhile, and is to be looked
    /// at again.
    pub(super) async fn quarantine(&mut self, reason: String) -> bool {
        let session = self.session;
        let since = self.core.now();
        tracing::error!(session.id = %session, reason, "a session is put into quarantine: nothing is done for it until it is released");
        self.core.quarantine.put(Quarantined { session, why: Why::Stuck, reason, since });
        if let Some(driving) = &mut self.driving {
            driving.stop_all(since).await;
        }
        self.driving = None;
        self.owed = None;
        self.afterwards.clear();
        self.ticket = None;
        self.stale = true;
        (self.unreadable, self.panics) = (0, 0);
        self.core.retire(session, &self.mailbox)
    }
}

/// True if what is stored does not read as what it should be, which passes by the operator's doing alone.
fn is_unreadable(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Corrupt(_) | Trouble::Missing(_) => true,
        Trouble::Read(error) => matches!(error, ReadError::Unreadable { .. } | ReadError::Missing { .. }),
        Trouble::Commit(_) | Trouble::Refused(_) | Trouble::Busy => false,
    }
}

/// Trouble with its causes, on one line.
fn with_causes(trouble: &Trouble) -> String {
    let mut text = trouble.to_string();
    let mut cause = std::error::Error::source(trouble);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
