//! Recovery, after a start, of the work that the last process left.
//!
//! It goes on beside everything else, with a bounded number of sessions at a time. A run that only
//! waits for people, for times or for other agents gets no driver: an answer wakes it, or the watch
//! over timers.

use crate::core::Core;
use crate::driver::{DriverError, load_run};
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
        // A session that cannot be read is left to its driver.
        match has_work(&core, session).await {
            Ok(false) => core.recovering.take(session),
            Ok(true) | Err(_) => core.wake_in_turn(session).await,
        }
    }
    core.recovered_one();
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
