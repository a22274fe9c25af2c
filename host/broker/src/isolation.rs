//! The isolation, after a start, of the sessions whose work may have ended the process.
//!
//! The rule is [`domain::isolation`]. Suspects wait in quarantine until it is their group's turn,
//! while all other sessions continue.

use crate::core::Core;
use crate::panics::caught;
use crate::quarantine::{QuarantineCause, Quarantined};
use crate::shared::DriverError;
use crate::shared::runs::load_run;
use domain::id::SessionId;
use domain::isolation::{Found, Suspicions, groups, suspected};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time that a start runs without suspects, in milliseconds. A host that is repeatedly ended
/// from outside ends without them.
const REST_MS: u64 = 1_000;
/// The time for which nothing of a group is computed before the next is resumed, in milliseconds.
const QUIET_MS: u64 = 500;
/// The longest time for which a group keeps the next one waiting, in milliseconds.
const GROUP_MS_MAX: u64 = 10_000;
/// The pause between two polls at whether anything of a group is computed, in milliseconds.
const POLL_MS: u64 = 20;
/// Number of sessions that are noted together before their runs are read.
const BATCH_MAX: usize = 64;

/// Notes the sessions that the last end of the process makes suspect, and puts all suspects into
/// quarantine. Returns the groups in which they are resumed. `computed` are the sessions that were
/// computed for as it ended, none if the end was requested. From here on the present computations
/// are noted in place of the last process's, which are in the store now.
pub(crate) async fn begin(
    core: &Core,
    computed: &BTreeSet<SessionId>,
    work: &[SessionId],
) -> Vec<Vec<SessionId>> {
    let before = core.store.noted_suspicions().await.unwrap_or_else(|error| {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the note of the sessions that may have ended the host cannot be read"
        );
        Suspicions::new()
    });
    let mut asked = work.to_vec();
    asked.retain(|session| before.contains_key(session) || computed.contains(session));
    let found = find(core, &asked).await;
    let after = suspected(&before, &found, computed);
    store::point("broker.suspicions.before");
    let noted = match after == before {
        true => Ok(()),
        false => core.store.note_suspicions(after.clone()).await,
    };
    match noted {
        Ok(()) => core.computing.renew(core.store.folder()),
        // The next start has to find the same suspects.
        Err(error) => tracing::warn!(
            error = &error as &dyn std::error::Error,
            "it cannot be noted which sessions may have ended the host, nor what it computes for"
        ),
    }
    let groups = groups(&after);
    for session in groups.iter().flatten() {
        hold(core, *session, after.get(session).map_or(0, |of| of.ends));
    }
    core.recovering.suspects.begin(after);
    groups
}

/// Reads the open runs of sessions, noted meanwhile. Those that cannot be read are left to their
/// drivers.
async fn find(core: &Core, sessions: &[SessionId]) -> Vec<Found> {
    let mut found = Vec::new();
    for batch in sessions.chunks(BATCH_MAX) {
        let mut batch = batch.to_vec();
        batch.retain(|session| !core.quarantine.has(*session));
        core.noted_inspections.note(&core.store, &batch).await;
        for session in &batch {
            if let Ok(Ok(one)) = caught(Box::pin(inspect(core, *session))).await {
                found.push(one);
            }
        }
        core.noted_inspections.remove(&core.store, &batch).await;
    }
    found
}

async fn inspect(core: &Core, session: SessionId) -> Result<Found, DriverError> {
    let row = core.store.session(session).await?;
    let run = row.and_then(|row| row.open_run);
    let has_progressed = match run {
        Some(run) => load_run(&core.store, run).await?.0.recoveries == 0,
        None => false,
    };
    Ok(Found {
        session,
        run,
        has_progressed,
    })
}

fn hold(core: &Core, session: SessionId, ends: u32) {
    tracing::warn!(session.id = %session, ends, "a session waits until others were resumed: the \
        host was at work on it each time that it ended without being told to");
    core.quarantine.put(Quarantined {
        session,
        why: QuarantineCause::Suspected,
        reason: format!(
            "the host was at work on it the last {ends} times that it ended without being told \
             to; it goes on by itself when others like it have gone on, a few at a time"
        ),
        since: core.now(),
    });
}

/// Resumes suspects, group by group.
pub(crate) async fn resume(core: Arc<Core>, groups: Vec<Vec<SessionId>>) {
    let all = async {
        if !groups.is_empty() {
            sleep(Duration::from_millis(REST_MS)).await;
        }
        for group in groups {
            for session in &group {
                if core
                    .quarantine
                    .release_if(*session, QuarantineCause::Suspected)
                {
                    tracing::info!(session.id = %session, beside = group.len() - 1, "a session that \
                        waited after ends of the host goes on");
                    core.wake_in_turn(*session).await;
                }
            }
            until_quiet(&core, &group).await;
        }
    };
    core.stopping.run_until_cancelled(all).await;
}

/// Waits until nothing of a group was computed for a while.
async fn until_quiet(core: &Core, group: &[SessionId]) {
    let until = Instant::now() + Duration::from_millis(GROUP_MS_MAX);
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_millis(QUIET_MS) && Instant::now() < until {
        sleep(Duration::from_millis(POLL_MS)).await;
        if group.iter().any(|session| core.computing.has(*session)) {
            last = Instant::now();
        }
    }
}
