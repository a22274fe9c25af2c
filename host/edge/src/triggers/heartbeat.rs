//! A heartbeat that is due. Its active hours, its checklist, its budget and the state of its
//! session decide whether it fires, before its trigger event is accepted.

use super::clock::{self, DueOutcome};
use super::scan::{self, FileWanted};
use super::{Shared, posting, recording};
use crate::core::Core;
use broker::Error;
use domain::event::{Event, SkipReason, TriggerEventAccepted};
use domain::time::Timestamp;
use domain::trigger::{
    BUSY_RETRY_MS, BeatFacts, CHECKLIST_BYTES_MAX, HeartbeatSpec, LATE_MS_MAX, ScheduleError,
    TriggerEvent, TriggerSpec,
};
use std::time::Duration;
use store::TriggerRow;

/// Time limit for reading a checklist in milliseconds. A checklist on a disk that does not respond
/// counts as missing.
const READ_MS_MAX: u64 = 5_000;

/// The reason why the outcome of a heartbeat cannot be determined.
#[derive(Debug, thiserror::Error)]
enum Untold {
    /// Its times cannot be computed.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The store cannot be read.
    #[error(transparent)]
    Host(#[from] Error),
}

/// Accepts a heartbeat that is due, or passes it over.
///
/// # Errors
/// The store cannot be read, or does not take it.
pub(super) async fn beat(
    shared: &Shared,
    row: &TriggerRow,
    spec: &HeartbeatSpec,
) -> Result<(), Error> {
    let core = &shared.core;
    let now = core.now();
    let outcome = match trigger_events_due(core, row, spec, now).await {
        Ok(outcome) => outcome,
        Err(Untold::Host(error)) => return Err(error),
        Err(Untold::Schedule(error)) => {
            // It would fail again until the trigger's definition changes.
            tracing::error!(
                trigger.name = %row.name,
                error = &error as &dyn std::error::Error,
                "the times of a heartbeat cannot be computed; it is paused"
            );
            clock::uncomputed(row, 1, &error, now)
        }
    };
    if clock::accept(core, vec![outcome], now).await? > 0 {
        shared.open.notify_one();
    }
    Ok(())
}

/// Returns the record of a heartbeat that is due.
async fn trigger_events_due(
    core: &Core,
    row: &TriggerRow,
    spec: &HeartbeatSpec,
    now: Timestamp,
) -> Result<DueOutcome, Untold> {
    let due = row.next_due.unwrap_or(now);
    let schedule = row.spec.schedule()?;
    let next = match &schedule {
        Some(schedule) => clock::scheduled(row, schedule).next(due.max(now))?,
        None => None,
    };
    // A missed heartbeat is not made up for.
    if now.since_ms(due) > LATE_MS_MAX || schedule.is_none() {
        return Ok(clock::passed_over(row, SkipReason::Missed, next, now));
    }
    let day_start = spec.day_start(now)?;
    let checklist = checklist(core, &row.spec, spec).await;
    let Known {
        is_busy,
        tokens,
        runs,
    } = known(core, row, day_start).await?;
    let facts = BeatFacts {
        now,
        checklist: checklist.as_deref(),
        is_busy,
        tokens,
        runs,
    };
    if let Some(reason) = spec.skip(&facts)? {
        // If the session is busy it is tried again; in all other cases it waits for its next time.
        let next = next.map(|next| match reason {
            SkipReason::Busy => next.min(now.plus_ms(BUSY_RETRY_MS)),
            SkipReason::Missed
            | SkipReason::EmptyChecklist
            | SkipReason::Inactive
            | SkipReason::Budget
            | SkipReason::Chain => next,
        });
        return Ok(clock::passed_over(row, reason, next, now));
    }
    let what = TriggerEvent::Heartbeat { due, checklist };
    let accepted = TriggerEventAccepted {
        next_due: next,
        scheduled: true,
        ..recording::accepted(&row.name, what, now)
    };
    Ok(DueOutcome {
        name: row.name.clone(),
        due: row.next_due,
        events: vec![Event::TriggerEventAccepted(accepted)],
    })
}

/// The facts that the store knows of a heartbeat.
struct Known {
    is_busy: bool,
    tokens: u64,
    runs: u32,
}

async fn known(core: &Core, row: &TriggerRow, day_start: Timestamp) -> Result<Known, Error> {
    let usage = core.store().trigger_usage(&row.name, day_start).await?;
    Ok(Known {
        is_busy: row.pending > 0 || is_busy(core, row).await?,
        tokens: usage.tokens,
        runs: u32::try_from(usage.trigger_runs).unwrap_or(u32::MAX),
    })
}

/// Returns whether the target session of a heartbeat has a run or waiting inputs. A new session has
/// neither.
async fn is_busy(core: &Core, row: &TriggerRow) -> Result<bool, Error> {
    if row.spec.is_isolated() {
        return Ok(false);
    }
    let Some(user) = posting::user(row) else {
        return Ok(false);
    };
    let to = posting::address(&row.spec.target);
    // A missing target is reported when the trigger is fired.
    let Ok(Some((session, _))) = core.broker.messages().where_to(user, &to, "").await else {
        return Ok(false);
    };
    let session = core.store().session(session).await?;
    Ok(session.is_some_and(|session| session.open_run.is_some() || session.waiting > 0))
}

/// Returns the text of a heartbeat's checklist; none if it is not configured, missing or
/// unreadable.
pub(super) async fn checklist(
    core: &Core,
    trigger: &TriggerSpec,
    spec: &HeartbeatSpec,
) -> Option<String> {
    let file = spec.checklist.as_ref()?;
    let entry = core.component(trigger.component())?;
    let mut granted = entry.grant.directories.iter();
    let grant = granted.find(|it| it.at == file.component_directory)?;
    let wanted = FileWanted {
        grant: grant.clone(),
        file: file.file.clone(),
        bytes_max: CHECKLIST_BYTES_MAX,
    };
    let read = tokio::task::spawn_blocking(move || scan::read(&wanted));
    let read = tokio::time::timeout(Duration::from_millis(READ_MS_MAX), read).await;
    match read {
        Ok(Ok(Ok(text))) => Some(text),
        Ok(Ok(Err(error))) => {
            tracing::debug!(
                file = file.file,
                error = &error as &dyn std::error::Error,
                "a checklist cannot be read"
            );
            None
        }
        Ok(Err(_)) | Err(_) => None,
    }
}
