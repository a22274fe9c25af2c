//! The end of the open run on a command's request, in one commit with the command's own events: a
//! crash cannot separate the two.

use super::record::{OVERTAKEN_MAX, is_overtaken};
use super::state::Driver;
use crate::refusals::changing;
use crate::shared::DriverError;
use crate::signal::Aborted;
use domain::run::end::Cause;
use store::{Clash, Commit, CommitError};

impl Driver {
    /// Aborts the open run, if there is one, however often work of other sessions settles in it
    /// meanwhile.
    pub(super) async fn abort(
        &mut self,
        reason: String,
        with: &Commit,
    ) -> Result<Aborted, DriverError> {
        let cause = Cause::Aborted { reason };
        for _ in 0..OVERTAKEN_MAX {
            self.stale = true;
            if !self.refresh().await? {
                return Ok(Aborted::NoneOpen);
            }
            match self.end_with(cause.clone(), with.clone()).await {
                Ok(()) => return Ok(Aborted::Ended),
                Err(failure) if is_outdated(&failure, with) => return Ok(Aborted::Outdated),
                Err(failure) if is_overtaken(&failure) => {}
                Err(failure) => return Err(failure),
            }
        }
        Err(DriverError::Refused(changing("the session")))
    }
}

/// Returns whether a guard of the command no longer holds.
fn is_outdated(failure: &DriverError, with: &Commit) -> bool {
    let DriverError::Commit(CommitError::Conflict(conflict)) = failure else {
        return false;
    };
    matches!(&conflict.clash, Clash::Guard(guard) if with.guards.contains(guard))
}
