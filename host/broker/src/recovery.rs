//! Recovery, after a start, of the work that the last process left.
//!
//! It runs concurrently with all other work, with a bounded number of sessions at a time. A run
//! that only waits for people, times or other agents gets no driver: an answer or the timer task
//! wakes it.

use crate::core::Core;
use crate::inspections::STARTS_MAX;
use crate::panics::caught;
use crate::quarantine::{QuarantineCause, Quarantined};
use crate::refusals::not_quarantined;
use crate::shared::DriverError;
use crate::shared::runs::load_run;
use crate::shared::{Error, Quarantines};
use domain::id::SessionId;
use domain::run::Run;
use domain::run::recover::goes_on;
use futures::StreamExt;
use std::collections::HashSet;
use std::sync::Arc;

/// Number of sessions that are checked for work at the same time.
const INSPECTED_MAX: usize = 8;
/// Number of sessions that are noted together before they are checked.
const BATCH_MAX: usize = 64;

/// The sessions that a start continues with.
pub(crate) struct ToRecover {
    /// Sessions that were inspected, and are left to their drivers.
    found: Vec<SessionId>,
    /// Sessions to inspect.
    rest: Vec<SessionId>,
}

/// Inspects the sessions that may have ended the last starts: one at a time, and before any work
/// begins that such an end would interrupt. Sessions that were noted too often are put into
/// quarantine unread.
pub(crate) async fn inspect_suspects(
    core: &Arc<Core>,
    was_ended: bool,
    work: Vec<SessionId>,
) -> ToRecover {
    let suspects = core
        .noted_inspections
        .begin(&core.store, was_ended, &work)
        .await;
    let mut found = Vec::new();
    for session in &suspects {
        if core.noted_inspections.are_over(*session) {
            leave_unread(core, *session);
        }
        found.extend(inspect(core, &[*session]).await);
    }
    let suspects: HashSet<SessionId> = suspects.into_iter().collect();
    let mut rest = work;
    rest.retain(|session| !suspects.contains(session));
    ToRecover { found, rest }
}

fn leave_unread(core: &Core, session: SessionId) {
    tracing::error!(session.id = %session, "a session is put into quarantine unread: to read it \
        ended the host at {STARTS_MAX} starts");
    core.quarantine.put(Quarantined {
        session,
        why: QuarantineCause::Stuck,
        reason: format!(
            "the host ended at {STARTS_MAX} starts while it read this, and was not told to"
        ),
        since: core.now(),
    });
}

/// Goes on with the sessions that may have work.
pub(crate) async fn go_on(core: Arc<Core>, sessions: ToRecover) {
    let ToRecover { found, rest } = sessions;
    let all = async {
        wake(&core, found).await;
        for batch in rest.chunks(BATCH_MAX) {
            let found = inspect(&core, batch).await;
            wake(&core, found).await;
        }
    };
    core.stopping.run_until_cancelled(all).await;
}

impl Quarantines<'_> {
    /// Releases a session from quarantine and wakes it. A session that still cannot continue is put
    /// there again.
    ///
    /// # Errors
    /// The session is not in quarantine.
    pub fn release(&self, session: SessionId) -> Result<(), Error> {
        if !self.core.quarantine.release(session) {
            return Err(not_quarantined(session).into());
        }
        tracing::info!(session.id = %session, "a session was released from quarantine");
        self.core
            .spawn(go_on_with_released(self.core.clone(), session));
        Ok(())
    }
}

/// Continues a session that was released. It stays noted until it has been read: a start after an
/// end of the process leaves it unread again.
async fn go_on_with_released(core: Arc<Core>, session: SessionId) {
    if core.noted_inspections.has(session) {
        core.noted_inspections.note(&core.store, &[session]).await;
        needs_driver(has_work(&core, session)).await;
        core.noted_inspections.remove(&core.store, &[session]).await;
    }
    core.wake(session);
}

async fn wake(core: &Arc<Core>, sessions: Vec<SessionId>) {
    for session in sessions {
        core.wake_in_turn(session).await;
        core.recovered_one();
    }
}

/// Looks at sessions side by side, noted for as long as that takes. Returns those that are left to
/// their drivers.
async fn inspect(core: &Arc<Core>, sessions: &[SessionId]) -> Vec<SessionId> {
    let mut noted = sessions.to_vec();
    noted.retain(|session| !core.quarantine.has(*session));
    for _ in noted.len()..sessions.len() {
        core.recovered_one();
    }
    core.noted_inspections.note(&core.store, &noted).await;
    let found: Vec<SessionId> = futures::stream::iter(noted.clone())
        .map(|session| left_to_driver(core.clone(), session))
        .buffered(INSPECTED_MAX)
        .filter_map(futures::future::ready)
        .collect()
        .await;
    core.noted_inspections.remove(&core.store, &noted).await;
    found
}

/// Inspects a session, and returns it if it is left to its driver.
async fn left_to_driver(core: Arc<Core>, session: SessionId) -> Option<SessionId> {
    if needs_driver(has_work(&core, session)).await {
        return Some(session);
    }
    core.recovering.take(session);
    core.recovered_one();
    None
}

/// Returns whether a session is left to its driver, by an inspection of its work. That includes
/// sessions that cannot be read, or over which the host panics.
async fn needs_driver(inspection: impl Future<Output = Result<bool, DriverError>>) -> bool {
    !matches!(caught(Box::pin(inspection)).await, Ok(Ok(false)))
}

/// Returns whether a session has work for which no other event will wake it.
async fn has_work(core: &Core, session: SessionId) -> Result<bool, DriverError> {
    let Some(row) = core.store.session(session).await? else {
        return Ok(false);
    };
    let Some(run) = row.open_run else {
        return Ok(true);
    };
    // Read even if its driver will be woken anyway: the session is noted here, but not there.
    let (run, _) = load_run(&core.store, run).await?;
    if row.waiting > 0 {
        return Ok(true);
    }
    Ok(goes_on(&run, core.now()) || run.deferred.is_some() || is_to_be_ended(core, &run).await?)
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
    use crate::shared::DriverError;
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
