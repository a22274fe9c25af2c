//! Recovery, after a start, of the work that the last process left.
//!
//! It goes on beside everything else, with a bounded number of sessions at a time. A run that only
//! waits for people, for times or for other agents gets no driver: an answer wakes it, or the watch
//! over timers.

use crate::core::Core;
use crate::driver::{DriverError, load_run};
use crate::panics::caught;
use domain::id::SessionId;
use domain::run::Run;
use domain::run::recover::goes_on;
use futures::StreamExt;
use std::sync::Arc;

/// Number of sessions that are checked for work at the same time.
const LOOKED_AT_MAX: usize = 8;

/// Goes on with the sessions that may have work.
pub(crate) async fn go_on(core: Arc<Core>, sessions: Vec<SessionId>) {
    let all = futures::stream::iter(sessions)
        .for_each_concurrent(LOOKED_AT_MAX, |session| look_at(core.clone(), session));
    core.stopping.run_until_cancelled(all).await;
}

async fn look_at(core: Arc<Core>, session: SessionId) {
    if !core.quarantine.has(session) {
        if needs_driver(has_work(&core, session)).await {
            core.wake_in_turn(session).await;
        } else {
            core.recovering.take(session);
        }
    }
    core.recovered_one();
}

/// Returns whether a session is left to its driver, by a look at its work. So is one that cannot be
/// read, or over which the host panics.
async fn needs_driver(look: impl Future<Output = Result<bool, DriverError>>) -> bool {
    !matches!(caught(Box::pin(look)).await, Ok(Ok(false)))
}

/// Returns whether a session has work that nobody else will wake it for.
async fn has_work(core: &Core, session: SessionId) -> Result<bool, DriverError> {
    let Some(row) = core.store.session(session).await? else {
        return Ok(false);
    };
    let Some(run) = row.open_run.filter(|_| row.waiting == 0) else {
        return Ok(true);
    };
    let (run, _) = load_run(&core.store, run).await?;
    Ok(goes_on(&run, core.now()) || run.held.is_some() || is_to_be_ended(core, &run).await?)
}

/// Returns whether the host has to end a run: no agent could lead it, or its work is no longer
/// wanted.
async fn is_to_be_ended(core: &Core, run: &Run) -> Result<bool, DriverError> {
    let started = &run.started;
    let served = core.served();
    if served.catalogue.definition(&started.definition).is_none() {
        return Ok(true);
    }
    if core
        .store
        .agent(started.agent)
        .await?
        .is_none_or(|row| !row.active)
    {
        return Ok(true);
    }
    match started
        .reply_to
        .filter(|reply_to| reply_to.attached && !run.replied)
    {
        Some(reply_to) => Ok(core
            .store
            .operation_owner(reply_to.operation)
            .await?
            .is_none()),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::needs_driver;
    use crate::driver::DriverError;
    use futures::future::{lazy, ready};

    #[tokio::test]
    async fn a_session_over_whose_look_the_host_panics_is_left_to_its_driver() {
        let panics = lazy(|_| -> Result<bool, DriverError> { panic!("a test wants it so") });
        assert!(needs_driver(panics).await);
        let unreadable = DriverError::Missing("its run".to_owned());
        assert!(needs_driver(ready(Err(unreadable))).await);
        assert!(needs_driver(ready(Ok(true))).await);
        assert!(!needs_driver(ready(Ok(false))).await);
    }
}
