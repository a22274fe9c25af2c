//! Triggers: the definition of each, its next due time, its state, and its failures in a row.

use super::trigger_events;
use crate::sql::{self, Sql, args, insert, named, to_json};
use domain::event::{
    PauseReason, Recorded, TriggerDefined, TriggerEventAccepted, TriggerEventFailed,
    TriggerEventsSkipped, TriggerFired, TriggerOrigin, TriggerPaused, TriggerRemoved,
    TriggerResumed, TriggerTrouble, TriggerTroubled,
};
use domain::id::{Stream, TriggerId};
use domain::time::Timestamp;
use domain::trigger::TriggerName;

/// The kind of the event that a trigger was fired, which counts also when its payload is erased.
const FIRED: &str = "trigger.fired.v1";
/// The same of the event that a trigger event failed.
const FAILED: &str = "trigger.event.failed.v1";

/// Records a new or changed trigger. It keeps its state and the user's pause. If its definition
/// changed, earlier failures no longer count. A trigger that was removed starts over.
pub(super) fn defined(sql: &Sql<'_>, it: &TriggerDefined, position: u64) -> sql::Result<()> {
    let spec = to_json(&it.spec)?;
    let id = it.name.id();
    sql.execute(
        "DELETE FROM triggers WHERE id = ?1 AND removed_at IS NOT NULL",
        [id],
    )?;
    if needs_other_spec(sql, id, &spec)? {
        recovered(sql, &it.name)?;
        sql.execute(
            "UPDATE triggers SET paused = NULL WHERE id = ?1 AND paused_kind <> 'user'",
            [id],
        )?;
    }
    let (user, agent) = match &it.origin {
        TriggerOrigin::Configuration => (it.spec.user.as_ref(), None),
        TriggerOrigin::Api { user } => (Some(user), None),
        TriggerOrigin::Agent { agent, user, .. } => (Some(user), Some(*agent)),
    };
    if let Some(agent) = &agent {
        insert!(
            sql,
            trigger_makers {
                agent,
                id,
                name: it.name
            },
            "ON CONFLICT DO NOTHING"
        )?;
    }
    insert!(
        sql,
        triggers {
            id,
            name: it.name,
            kind: it.spec.on.key(),
            spec,
            origin: to_json(&it.origin)?,
            user_id: user,
            agent,
            enabled: it.spec.enabled,
            next_due: it.next_due,
            due_position: position,
            defined_at: it.time
        },
        "ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, spec = excluded.spec, origin = \
         excluded.origin, user_id = excluded.user_id, agent = excluded.agent, enabled = \
         excluded.enabled, next_due = excluded.next_due, due_position = excluded.due_position, \
         defined_at = excluded.defined_at"
    )
}

/// Reads whether a trigger exists with another definition than this.
fn needs_other_spec(sql: &Sql<'_>, id: TriggerId, spec: &str) -> sql::Result<bool> {
    sql.exists(
        "SELECT 1 FROM triggers WHERE id = ?1 AND spec <> ?2",
        args![id, spec],
    )
}

/// Records the removal of a trigger. Its open trigger events are still processed, unless it was
/// paused or disabled.
pub(super) fn removed(sql: &Sql<'_>, it: &TriggerRemoved, position: u64) -> sql::Result<()> {
    let id = it.name.id();
    if needs_rest(sql, id)? {
        trigger_events::given_up(sql, &it.name)?;
    }
    sql.write(
        "UPDATE triggers SET removed_at = :removed_at, next_due = NULL, due_position = \
         :due_position WHERE id = :id",
        named![id, removed_at = it.time, due_position = position],
    )
}

/// Reads whether a trigger is not fired.
fn needs_rest(sql: &Sql<'_>, id: TriggerId) -> sql::Result<bool> {
    sql.exists(
        "SELECT 1 FROM triggers WHERE id = ?1 AND (paused IS NOT NULL OR enabled = 0)",
        [id],
    )
}

pub(super) fn paused(sql: &Sql<'_>, it: &TriggerPaused) -> sql::Result<()> {
    let schedule_errors = match &it.reason {
        PauseReason::Schedule { errors, .. } => Some(*errors),
        PauseReason::User { .. } | PauseReason::Failures { .. } | PauseReason::Done => None,
    };
    sql.write(
        "UPDATE triggers SET paused = :paused, schedule_errors = coalesce(:schedule_errors, \
         schedule_errors) WHERE id = :id",
        named![
            id = it.name.id(),
            paused = to_json(&it.reason)?,
            schedule_errors
        ],
    )
}

pub(super) fn resumed(sql: &Sql<'_>, it: &TriggerResumed, position: u64) -> sql::Result<()> {
    recovered(sql, &it.name)?;
    sql.execute(
        "UPDATE triggers SET paused = NULL WHERE id = ?1",
        [it.name.id()],
    )?;
    due(sql, &it.name, it.next_due, position)
}

/// Records an accepted trigger event. For a scheduled one, the next time of the schedule is set.
pub(super) fn accepted(sql: &Sql<'_>, it: &TriggerEventAccepted, position: u64) -> sql::Result<()> {
    if it.scheduled {
        due(sql, &it.name, it.next_due, position)?;
    }
    trigger_events::accepted(sql, it, position)
}

pub(super) fn skipped(sql: &Sql<'_>, it: &TriggerEventsSkipped, position: u64) -> sql::Result<()> {
    due(sql, &it.name, it.next_due, position)?;
    trigger_events::skipped(sql, it, position)
}

/// Sets the next time of a trigger's schedule, according to the event at `position`.
fn due(
    sql: &Sql<'_>,
    name: &TriggerName,
    next_due: Option<Timestamp>,
    position: u64,
) -> sql::Result<()> {
    sql.write(
        "UPDATE triggers SET next_due = CASE WHEN removed_at IS NULL THEN :next_due END, \
         due_position = :due_position WHERE id = :id",
        named![id = name.id(), next_due, due_position = position],
    )
}

/// Records a trigger run. A run without a trigger event only sets the trigger's state: a purge left
/// it.
pub(super) fn fired(sql: &Sql<'_>, it: &TriggerFired, position: u64) -> sql::Result<()> {
    if let Some(state) = &it.state {
        sql.execute(
            "UPDATE triggers SET state_format = :state_format, state = :state, state_position = \
             :state_position WHERE id = :id",
            named![
                id = it.name.id(),
                state_format = state.format,
                state = state.bytes,
                state_position = position
            ],
        )?;
    }
    if it.trigger_event == trigger_events::NO_TRIGGER_EVENT {
        return Ok(());
    }
    recovered(sql, &it.name)?;
    trigger_events::fired(sql, it, position)
}

pub(super) fn failed(sql: &Sql<'_>, it: &TriggerEventFailed, position: u64) -> sql::Result<()> {
    failed_once_more(sql, it.name.id())?;
    trigger_events::failed(sql, it, position)
}

fn failed_once_more(sql: &Sql<'_>, id: TriggerId) -> sql::Result<()> {
    sql.write(
        "UPDATE triggers SET failures = CASE WHEN failures < ?2 THEN failures + 1 ELSE failures \
         END WHERE id = ?1",
        args![id, u32::MAX],
    )
}

pub(super) fn troubled(sql: &Sql<'_>, it: &TriggerTroubled) -> sql::Result<()> {
    let id = it.name.id();
    match &it.trouble {
        TriggerTrouble::Failing { failures } => sql.write(
            "UPDATE triggers SET failures = ?2 WHERE id = ?1",
            args![id, failures],
        ),
        TriggerTrouble::BreakerOpened { until } => sql.write(
            "UPDATE triggers SET open_until = ?2 WHERE id = ?1",
            args![id, until],
        ),
        TriggerTrouble::Recovered => recovered(sql, &it.name),
        TriggerTrouble::Stuck { trigger_event } => trigger_events::stuck(sql, *trigger_event),
    }
}

/// A trigger has no failures in a row.
fn recovered(sql: &Sql<'_>, name: &TriggerName) -> sql::Result<()> {
    without_failures(sql, name.id())
}

fn without_failures(sql: &Sql<'_>, id: TriggerId) -> sql::Result<()> {
    sql.write(
        "UPDATE triggers SET failures = 0, schedule_errors = 0, open_until = NULL WHERE id = ?1 \
         AND (failures > 0 OR schedule_errors > 0 OR open_until IS NOT NULL)",
        [id],
    )
}

/// Records an erased event of a trigger's stream. It still counts as a failure, or ends a row of
/// failures: a purge must not change whether a trigger is failing.
pub(super) fn erased(sql: &Sql<'_>, recorded: &Recorded) -> sql::Result<()> {
    if recorded.kind != FIRED && recorded.kind != FAILED {
        return Ok(());
    }
    let Ok(Stream::Trigger(id)) = recorded.stream.parse() else {
        return Ok(());
    };
    if recorded.kind == FIRED {
        without_failures(sql, id)
    } else {
        failed_once_more(sql, id)
    }
}
