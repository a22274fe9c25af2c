//! Quarantine of sessions with which a driver cannot continue, however often it tries.
//!
//! The operator is notified.

use super::phase::Phase;
use super::state::{Driver, Failures};
use crate::core::Core;
use crate::quarantine::{QuarantineCause, Quarantined};
use crate::shared::DriverError;
use domain::id::SessionId;
use std::sync::Arc;
use std::time::Duration;
use store::ReadError;
use tokio::time::sleep;

/// Number of checks in a row that find a session unreadable, after which it is put into quarantine.
const UNREADABLE_MAX: u32 = 5;
/// The time between two checks for a disk failure after a session was put into quarantine, in
/// milliseconds. It is shorter than the time for which a failure counts.
const POLL_AGAIN_MS: u64 = 1_000;
/// Number of panics in a row, after which not even the end of the turn can be recorded.
const PANICS_MAX: u32 = 6;

impl Driver {
    /// Counts this trouble, and returns the reason for a quarantine; none when the trouble may
    /// pass, as any does while the disk fails to read.
    pub(super) fn is_stuck(&mut self, failure: &DriverError) -> Option<String> {
        if !is_unreadable(failure) || self.context.core.store.is_disk_failing() {
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

    /// Puts the session into quarantine. Data that exist only in memory could not be recorded.
    ///
    /// Returns false if it was released meanwhile, and has to be checked again.
    pub(super) async fn quarantine(&mut self, reason: String) -> bool {
        let session = self.context.session;
        let since = self.context.core.now();
        tracing::error!(session.id = %session, reason, "a session is put into quarantine: nothing \
                                                        is done for it until it is released");
        let core = &self.context.core;
        core.quarantine.put(Quarantined {
            session,
            why: QuarantineCause::Stuck,
            reason,
            since,
        });
        core.spawn(inspect_again(core.clone(), session));
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

/// Releases a session from quarantine if it turns out that the disk failed when the session was put
/// there: once the disk reads again.
async fn inspect_again(core: Arc<Core>, session: SessionId) {
    let inspection = async {
        sleep(Duration::from_millis(POLL_AGAIN_MS)).await;
        let mut has_failed = false;
        while core.store.is_disk_failing() {
            has_failed = true;
            sleep(Duration::from_millis(POLL_AGAIN_MS)).await;
        }
        if has_failed && core.quarantine.release_if(session, QuarantineCause::Stuck) {
            tracing::info!(session.id = %session, "a session goes on that was put into quarantine \
                while the disk failed");
            core.wake(session);
        }
    };
    core.stopping.run_until_cancelled(inspection).await;
}

/// Returns whether stored data is not in the expected form. Only the operator can change that.
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
