//! Quarantine of sessions with which a driver cannot go on, however often it tries.
//!
//! The operator is told.

use super::error::DriverError;
use super::phase::Phase;
use super::state::{Driver, Failures};
use crate::quarantine::{Quarantined, Why};
use store::ReadError;

/// Number of looks in a row at an unreadable session, after which it is put into quarantine.
const UNREADABLE_MAX: u32 = 5;
/// Number of panics in a row, after which not even the end of the turn can be recorded.
const PANICS_MAX: u32 = 6;

impl Driver {
    /// Counts this trouble, and returns the reason for a quarantine; none when the trouble may
    /// pass.
    pub(super) fn is_stuck(&mut self, failure: &DriverError) -> Option<String> {
        if !is_unreadable(failure) {
            return None;
        }
        self.unreadable += 1;
        (self.unreadable >= UNREADABLE_MAX).then(|| with_causes(failure))
    }

    /// Returns the reason for a quarantine after a panic; none when another try may help.
    pub(super) fn is_stuck_panicking(&self, panic: &str) -> Option<String> {
        (self.failures.panics >= PANICS_MAX)
            .then(|| format!("the host panics whatever it tries for it: {panic}"))
    }

    /// Puts the session into quarantine. Nothing of it that is only in memory could be recorded.
    ///
    /// Returns false when it was released meanwhile, and is to be looked at again.
    pub(super) async fn quarantine(&mut self, reason: String) -> bool {
        let session = self.context.session;
        let since = self.context.core.now();
        tracing::error!(session.id = %session, reason, "a session is put into quarantine: nothing \
                                                        is done for it until it is released");
        self.context.core.quarantine.put(Quarantined {
            session,
            why: Why::Stuck,
            reason,
            since,
        });
        if let Some(driving) = self.phase.driving_mut() {
            driving.stop_all(since).await;
        }
        self.phase = Phase::Unknown;
        self.owed = None;
        self.afterwards.clear();
        self.ticket = None;
        self.stale = true;
        self.unreadable = 0;
        self.failures = Failures::default();
        self.context.core.retire(session, &self.mailbox)
    }
}

/// Returns whether stored data does not read as what it should be. Only the operator can change
/// that.
fn is_unreadable(failure: &DriverError) -> bool {
    match failure {
        DriverError::Corrupt(_) | DriverError::Missing(_) => true,
        DriverError::Read(error) => matches!(
            error,
            ReadError::Unreadable { .. } | ReadError::Missing { .. }
        ),
        DriverError::Commit(_) | DriverError::Refused(_) | DriverError::Busy => false,
    }
}

/// Returns the text of trouble with its causes, on one line.
fn with_causes(failure: &DriverError) -> String {
    let mut text = failure.to_string();
    let mut cause = std::error::Error::source(failure);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
