//! Events of triggers: the state of each, and the history.

use super::open_items::OpenItems;
use crate::sql::{self, Sql, args, insert, named};
use domain::event::{
    PostedMessage, TriggerEventAccepted, TriggerEventFailed, TriggerEventsSkipped, TriggerFired,
    TriggerPosted,
};
use domain::id::TriggerEventId;
use domain::trigger::TriggerName;
use uuid::Uuid;

/// The event of a trigger run without a trigger event: a purge leaves such runs to preserve the
/// trigger's state.
pub(crate) const NO_TRIGGER_EVENT: TriggerEventId = TriggerEventId(Uuid::nil());

/// The trigger events that are not done with, by trigger.
const OPEN: OpenItems = OpenItems {
    two_oldest: "SELECT position, is_first FROM trigger_events WHERE trigger_name = ?1 AND state \
                 IN ('waiting', 'fired') ORDER BY position LIMIT 2",
    mark: "UPDATE trigger_events SET is_first = ?2 WHERE position = ?1",
};

pub(super) fn accepted(sql: &Sql<'_>, it: &TriggerEventAccepted, position: u64) -> sql::Result<()> {
    sql.write(
        "INSERT INTO trigger_events (position, id, trigger_name, state, is_first, next_try) VALUES \
         (:position, :trigger_event, :trigger_name, 'waiting', NOT EXISTS (SELECT 1 FROM trigger_events \
         WHERE trigger_name = :trigger_name AND state IN ('waiting', 'fired')), :time)",
        named![
            position,
            trigger_event = it.trigger_event,
            trigger_name = it.name,
            time = it.time
        ],
    )
}

/// Trigger events were passed over: a line of the history.
pub(super) fn skipped(sql: &Sql<'_>, it: &TriggerEventsSkipped, position: u64) -> sql::Result<()> {
    if it.count == 0 {
        return Ok(());
    }
    insert!(
        sql,
        trigger_events {
            position,
            trigger_name: it.name,
            state: "skipped",
            next_try: it.due
        }
    )
}

/// The trigger was fired. Without messages that is all.
pub(super) fn fired(sql: &Sql<'_>, it: &TriggerFired, position: u64) -> sql::Result<()> {
    let state = match (&it.rejected, it.messages.is_empty()) {
        (Some(_), _) => "rejected",
        (None, true) => "done",
        (None, false) => "fired",
    };
    sql.execute(
        "UPDATE trigger_events SET state = :state, is_first = is_first AND :state = 'fired', attempts = \
         0, next_try = :next_try, fired = :fired, fired_at = :next_try, messages = :messages WHERE \
         id = :id",
        named![
            id = it.trigger_event,
            state,
            next_try = it.time,
            fired = position,
            messages = it.messages.len()
        ],
    )?;
    OPEN.find_first(sql, [it.name.as_str()])
}

pub(super) fn failed(sql: &Sql<'_>, it: &TriggerEventFailed, position: u64) -> sql::Result<()> {
    sql.execute(
        "UPDATE trigger_events SET state = CASE WHEN :retry_at IS NULL THEN 'given_up' ELSE state END, \
         is_first = is_first AND :retry_at IS NOT NULL, attempts = :attempts, failed = :failed, \
         next_try = coalesce(:retry_at, next_try) WHERE id = :id",
        named![
            id = it.trigger_event,
            attempts = it.attempt,
            failed = position,
            retry_at = it.retry_at
        ],
    )?;
    OPEN.find_first(sql, [it.name.as_str()])
}

/// The messages were handed over.
pub(super) fn posted(sql: &Sql<'_>, it: &TriggerPosted, position: u64) -> sql::Result<()> {
    let id = it.trigger_event;
    sql.execute(
        "UPDATE trigger_events SET state = 'done', is_first = 0, posted = ?2 WHERE id = ?1",
        args![id, position],
    )?;
    for result in &it.results {
        let PostedMessage::Accepted { session, .. } = result else {
            continue;
        };
        insert!(
            sql,
            trigger_event_sessions {
                session,
                trigger_event: id
            },
            "ON CONFLICT DO NOTHING"
        )?;
    }
    OPEN.find_first(sql, [it.name.as_str()])
}

/// Records that a turn begun by the trigger event does not end.
pub(super) fn stuck(sql: &Sql<'_>, trigger_event: TriggerEventId) -> sql::Result<()> {
    sql.write(
        "UPDATE trigger_events SET stuck = 1 WHERE id = ?1",
        [trigger_event],
    )
}

/// Records that a trigger's open trigger events are dropped.
pub(super) fn given_up(sql: &Sql<'_>, name: &TriggerName) -> sql::Result<()> {
    sql.write(
        "UPDATE trigger_events SET state = 'given_up', is_first = 0 WHERE trigger_name = ?1 AND state \
         IN ('waiting', 'fired')",
        [name],
    )
}
