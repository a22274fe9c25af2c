//! Recovery of a turn after an unrequested end of the host.
//!
//! It is recorded before any work is done again. A turn that ends the process each time would end
//! every later one too. It is given up once isolation has found it (`isolation.rs`).

use super::state::Driver;
use crate::performance::result::CommitExtras;
use crate::shared::DriverError;
use domain::event::Event;
use domain::run::intake::wakes;
use domain::run::recover::{given_up, goes_on, recovered};

impl Driver {
    /// Records that the turn is recovered, once after such an end. Ends a turn that ended the
    /// process too often. Returns whether it did either.
    pub(super) async fn recover(&mut self) -> Result<bool, DriverError> {
        let Some(driving) = self.phase.driving() else {
            return Ok(false);
        };
        let session = self.context.session;
        let run = driving.run.started.run;
        if let Some(ends) = self.context.core.recovering.suspects.over(session, run) {
            tracing::error!(session.id = %session, run.id = %run, ends, "a turn is given up, and \
                its inputs become dead letters: the host ended each time it worked on them");
            self.fail(given_up(ends)).await?;
            self.context.core.recovering.suspects.forget(session);
            return Ok(true);
        }
        if !self.context.core.recovering.has(session) {
            return Ok(false);
        }
        if self.phase.beginning().is_none() && !self.would_go_on().await? {
            self.context.core.recovering.take(session);
            return Ok(false);
        }
        // A run that is not stored would begin again each time. So it is stored before its agent is
        // called for the first time.
        self.commit_start().await?;
        let Some(driving) = self.phase.driving() else {
            return Ok(false);
        };
        let event = recovered(&driving.run, self.context.core.now());
        let run = event.run;
        let count = event.count;
        // A recovery is no progress: the panics of a driver that keeps panicking are not reset.
        let failures = self.failures;
        store::point("broker.recover.before");
        self.commit_run_event(Event::RunRecovered(event), CommitExtras::default())
            .await?;
        store::point("broker.recover.after");
        self.failures = failures;
        self.context.core.recovering.take(self.context.session);
        tracing::warn!(session.id = %self.context.session, run.id = %run, count, "a turn is gone on with \
            after the host ended without being told to");
        Ok(true)
    }

    /// Returns whether the open run has anything to do, and does not only wait.
    async fn would_go_on(&self) -> Result<bool, DriverError> {
        let hears = !self.joinable_inputs().await?.is_empty();
        let Some(driving) = self.phase.driving() else {
            return Ok(false);
        };
        let run = &driving.run;
        Ok(goes_on(run, self.context.core.now())
            || run.deferred.is_some()
            || wakes(run, &[], hears))
    }
}
