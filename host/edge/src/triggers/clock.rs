//! Times that come due: each becomes a trigger event, accepted in the commit that sets the
//! trigger's next time.
//!
//! Due triggers are read by index, page by page, and many are accepted at a time, so a hundred
//! thousand schedules that are due at once cost a bounded share of the host. A guard of the commit
//! ensures that each time is accepted once, even if it is read twice.

use super::{Shared, heartbeat, recording};
use crate::core::Core;
use crate::journal::Context;
use broker::Error;
use domain::event::{Event, PauseReason, SkipReason, TriggerEventAccepted, TriggerEventsSkipped};
use domain::time::Timestamp;
use domain::trigger::{
    Catching, ComeDue, Consequence, Failures, HeartbeatSpec, Owner, PENDING_MAX, Schedule,
    ScheduleError, Scheduled, TriggerEvent, TriggerKind, TriggerName,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use store::{Clash, Commit, CommitError, Guard, TriggerGuard, TriggerRow};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Triggers that are read, and accepted, at a time.
const PAGE: usize = 128;
/// Heartbeats that are checked at a time: each reads a file and the state of a session.
const POLLS_MAX: usize = 8;
/// The longest sleep, in milliseconds. A clock that was set is noticed after it.
const SLEEP_MS_MAX: u64 = 1_000;
/// The shortest sleep while a due trigger cannot be processed yet, in milliseconds.
const ROUND_MS: u64 = 20;
/// Milliseconds until triggers are read again that could not be read, and until the next time of a
/// schedule is computed again that could not be computed.
const TROUBLE_MS: u64 = 1_000;

/// The record of one trigger that was due.
pub(super) struct DueOutcome {
    pub(super) name: TriggerName,
    /// The time that was due.
    pub(super) due: Option<Timestamp>,
    pub(super) events: Vec<Event>,
}

/// The due triggers that cannot be processed now. Nothing depends on it.
#[derive(Default)]
struct NotNow {
    /// Heartbeats that are being checked.
    inspected: HashSet<TriggerName>,
    /// Triggers whose next time could not be computed, with how often, and until when they wait.
    in_trouble: HashMap<TriggerName, (Failures, Instant)>,
}

impl NotNow {
    fn holds(&self, name: &TriggerName, now: Instant) -> bool {
        let waits = self.in_trouble.get(name);
        self.inspected.contains(name) || waits.is_some_and(|(_, until)| *until > now)
    }

    fn len(&self) -> usize {
        self.inspected.len() + self.in_trouble.len()
    }
}

/// Accepts due triggers until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut not_now = NotNow::default();
    let mut scans: JoinSet<TriggerName> = JoinSet::new();
    loop {
        let now = shared.core.now();
        let sleep_ms = match round(&shared, &mut not_now, &mut scans, now).await {
            Ok(sleep_ms) => sleep_ms,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "what is due of triggers cannot be read or accepted now"
                );
                TROUBLE_MS
            }
        };
        tokio::select! {
            Some(inspected) = scans.join_next() => {
                match inspected {
                    Ok(name) => {
                        not_now.inspected.remove(&name);
                    }
                    // A check panicked. A commit accepts each time once, whichever task checks
                    // again.
                    Err(_) => not_now.inspected.clear(),
                }
            }
            () = shared.due.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(sleep_ms)) => {}
        }
    }
}

/// Accepts due triggers, at most a page. Returns the milliseconds until another one is due.
async fn round(
    shared: &Arc<Shared>,
    not_now: &mut NotNow,
    scans: &mut JoinSet<TriggerName>,
    now: Timestamp,
) -> Result<u64, Error> {
    let core = &shared.core;
    let limit = PAGE + not_now.len();
    let rows = core.store().due_triggers(now, limit).await?;
    let is_full = rows.len() >= limit;
    if rows.is_empty() {
        not_now.in_trouble.clear();
    }
    let instant = Instant::now();
    let mut batch: Vec<DueOutcome> = Vec::new();
    for row in rows {
        if not_now.holds(&row.name, instant) {
            continue;
        }
        if let TriggerKind::Heartbeat(spec) = &row.spec.on {
            if scans.len() < POLLS_MAX {
                not_now.inspected.insert(row.name.clone());
                let spec = spec.clone();
                inspect(shared.clone(), scans, row, spec);
            }
            continue;
        }
        let name = row.name.clone();
        match trigger_events_due(&row, now) {
            Ok(outcome) => {
                not_now.in_trouble.remove(&name);
                batch.push(outcome);
            }
            Err(error) => batch.extend(not_computed(&row, &error, not_now, now)),
        }
    }
    let accepted = accept(core, batch, now).await?;
    if accepted > 0 {
        shared.open.notify_one();
    }
    if accepted > 0 && is_full {
        return Ok(0);
    }
    let next = core.store().next_trigger_due().await?;
    let now = core.now();
    Ok(match next {
        // It cannot be processed now, or came due just now.
        Some(next) if next <= now => ROUND_MS,
        Some(next) => next.since_ms(now).min(SLEEP_MS_MAX),
        None => SLEEP_MS_MAX,
    })
}

/// Checks a heartbeat, separately from all other due triggers.
fn inspect(
    shared: Arc<Shared>,
    scans: &mut JoinSet<TriggerName>,
    row: TriggerRow,
    spec: HeartbeatSpec,
) {
    scans.spawn(store::in_background(async move {
        let name = row.name.clone();
        if let Err(error) = heartbeat::beat(&shared, &row, &spec).await {
            tracing::warn!(
                trigger.name = %name,
                error = &error as &dyn std::error::Error,
                "a heartbeat cannot be accepted now; it is looked at again"
            );
            shared.core.sleep_ms(TROUBLE_MS).await;
        }
        name
    }));
}

/// Returns the record of a trigger that is due.
fn trigger_events_due(row: &TriggerRow, now: Timestamp) -> Result<DueOutcome, ScheduleError> {
    let schedule = row.spec.schedule()?;
    let (Some(schedule), Some(due), TriggerKind::Schedule(spec)) =
        (schedule, row.next_due, &row.spec.on)
    else {
        // A trigger without a schedule has nothing due any more.
        return Ok(passed_over(row, SkipReason::Missed, None, now));
    };
    let scheduled = scheduled(row, &schedule);
    let outcome = Catching::from(spec).come_due(&scheduled, due, now)?;
    Ok(recorded(row, &outcome, now))
}

/// Returns a trigger's schedule with its owner.
pub(super) fn scheduled<'a>(row: &'a TriggerRow, schedule: &'a Schedule) -> Scheduled<'a> {
    Scheduled {
        schedule,
        owner: Owner {
            name: &row.name,
            defined: row.defined,
        },
    }
}

/// Returns the events of due triggers. Those beyond the maximum of waiting trigger events are
/// skipped.
fn recorded(row: &TriggerRow, outcome: &ComeDue, now: Timestamp) -> DueOutcome {
    let name = &row.name;
    let next_due = outcome.next_due;
    let room = u64::from(PENDING_MAX).saturating_sub(row.pending);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let left_out = outcome.trigger_events.len().saturating_sub(room);
    let skipped = outcome.skipped.into_iter().chain(
        outcome
            .trigger_events
            .first()
            .filter(|_| left_out > 0)
            .map(|(due, _)| (*due, u32::try_from(left_out).unwrap_or(u32::MAX))),
    );
    let mut events: Vec<Event> = skipped
        .map(|(due, count)| {
            Event::TriggerEventsSkipped(TriggerEventsSkipped {
                name: name.clone(),
                due,
                count,
                reason: SkipReason::Missed,
                next_due,
                time: now,
            })
        })
        .collect();
    let kept = outcome.trigger_events.iter().skip(left_out);
    events.extend(kept.map(|(due, missed)| {
        let what = TriggerEvent::Due {
            due: *due,
            missed: *missed,
        };
        Event::TriggerEventAccepted(TriggerEventAccepted {
            next_due,
            scheduled: true,
            ..recording::accepted(name, what, now)
        })
    }));
    let is_over =
        next_due.is_none() && left_out == outcome.trigger_events.len() && row.pending == 0;
    events.extend(is_over.then(|| recording::paused(name, PauseReason::Done, now)));
    DueOutcome {
        name: name.clone(),
        due: row.next_due,
        events,
    }
}

/// Returns the record that a trigger's time was passed over, for a reason.
pub(super) fn passed_over(
    row: &TriggerRow,
    reason: SkipReason,
    next_due: Option<Timestamp>,
    now: Timestamp,
) -> DueOutcome {
    let skipped = TriggerEventsSkipped {
        name: row.name.clone(),
        due: row.next_due.unwrap_or(now),
        count: 1,
        reason,
        next_due,
        time: now,
    };
    DueOutcome {
        name: row.name.clone(),
        due: row.next_due,
        events: vec![Event::TriggerEventsSkipped(skipped)],
    }
}

/// Counts a next time that could not be computed. Returns the pause that follows from it, if one
/// does.
fn not_computed(
    row: &TriggerRow,
    error: &ScheduleError,
    not_now: &mut NotNow,
    now: Timestamp,
) -> Option<DueOutcome> {
    let until = Instant::now() + Duration::from_millis(TROUBLE_MS);
    let nothing = (Failures::default(), until);
    let (failures, again) = not_now
        .in_trouble
        .entry(row.name.clone())
        .or_insert(nothing);
    *again = until;
    let is_over = failures
        .after_schedule_error()
        .contains(&Consequence::Disable);
    let errors = failures.schedule_errors;
    tracing::warn!(
        trigger.name = %row.name,
        errors,
        error = error as &dyn std::error::Error,
        "the next time of a trigger cannot be computed"
    );
    is_over.then(|| {
        not_now.in_trouble.remove(&row.name);
        uncomputed(row, errors, error, now)
    })
}

/// Returns the record that a trigger is paused, as its next time cannot be computed.
pub(super) fn uncomputed(
    row: &TriggerRow,
    errors: u32,
    error: &ScheduleError,
    now: Timestamp,
) -> DueOutcome {
    let reason = PauseReason::Schedule {
        errors,
        error: error.to_string(),
    };
    DueOutcome {
        name: row.name.clone(),
        due: row.next_due,
        events: vec![recording::paused(&row.name, reason, now)],
    }
}

/// Records due triggers in one commit. A trigger that has changed since it was read is left out,
/// and read again. Returns the number of recorded triggers.
pub(super) async fn accept(
    core: &Core,
    mut batch: Vec<DueOutcome>,
    now: Timestamp,
) -> Result<usize, Error> {
    let context = Context::new("clock", now);
    while !batch.is_empty() {
        let mut commit = Commit::new();
        for outcome in &batch {
            commit = commit.guard(TriggerGuard::NextDue {
                trigger: outcome.name.clone(),
                due: outcome.due,
            });
            commit = recording::append(commit, &outcome.name, &context, outcome.events.clone());
        }
        store::point("edge.due.before");
        let committed = core.store().commit(commit).await;
        store::point("edge.due.after");
        match committed {
            Ok(_) => break,
            Err(CommitError::Conflict(conflict)) => {
                let Clash::Guard(Guard::Trigger(TriggerGuard::NextDue { trigger, .. })) =
                    &conflict.clash
                else {
                    return Err(CommitError::Conflict(conflict).into());
                };
                let before = batch.len();
                batch.retain(|outcome| outcome.name != *trigger);
                if batch.len() == before {
                    return Err(CommitError::Conflict(conflict).into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(batch.len())
}

#[cfg(test)]
mod tests;
