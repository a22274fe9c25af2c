//! Due times: timers, deadlines, pauses and reminders, in one mechanism.

use crate::sql::{self, Sql, ToValue, args, insert, named};
use domain::id::{InputId, OperationId, SessionId};
use domain::time::Timestamp;

/// The wake of a queue whose debounce is over.
const DEBOUNCE: &str = "debounce";
/// The wake of a session that its memory agent is to read.
pub(super) const MEMORY: &str = "memory";

/// A subject becomes due, or does not.
pub(super) fn set(
    sql: &Sql<'_>,
    subject: &impl ToValue,
    kind: &'static str,
    session: SessionId,
    due: Option<Timestamp>,
) -> sql::Result<()> {
    if let Some(due) = due {
        insert!(
            sql,
            wakes {
                subject,
                kind,
                session,
                due
            },
            "ON CONFLICT (subject, kind) DO UPDATE SET due = excluded.due"
        )?;
    }
    Ok(())
}

/// Wakes a session at the deadline of an input that waits for room.
pub(super) fn blocked(
    sql: &Sql<'_>,
    input: InputId,
    session: SessionId,
    deadline: Timestamp,
) -> sql::Result<()> {
    sql.write(
        "INSERT INTO wakes (subject, kind, session, due) SELECT id, 'blocked', :session, :deadline \
         FROM inputs WHERE id = :id AND blocked > 0",
        named![id = input, session, deadline],
    )
}

/// Sets the pause of an operation in its session; an operation that is not open needs none.
pub(super) fn pause(
    sql: &Sql<'_>,
    operation: OperationId,
    due: Option<Timestamp>,
) -> sql::Result<()> {
    if let Some(due) = due {
        sql.execute(
            "INSERT INTO wakes (subject, kind, session, due) SELECT :operation, 'pause', session, \
             :due FROM operations WHERE id = :id ON CONFLICT (subject, kind) DO UPDATE SET due = \
             excluded.due",
            named![operation, id = operation, due],
        )?;
    }
    Ok(())
}

/// Wakes a session when the debounce of the last waiting input in its queue is over. It is not
/// woken when no input waits, or while a run is open: the run checks at its end.
pub(super) fn debounce(sql: &Sql<'_>, session: SessionId) -> sql::Result<()> {
    let set = sql.execute(
        "INSERT INTO wakes (subject, kind, session, due) SELECT ?1, ?2, ?1, until FROM (SELECT \
         arrived + debounce_ms AS until FROM inputs WHERE session_number = (SELECT number FROM \
         sessions WHERE id = ?1) AND state = 'waiting' AND wait_kind = 'queued' AND EXISTS (SELECT \
         1 FROM sessions WHERE id = ?1 AND open_run IS NULL) ORDER BY position DESC LIMIT 1) WHERE until IS NOT NULL ON \
         CONFLICT (subject, kind) DO UPDATE SET due = excluded.due",
        args![session, DEBOUNCE],
    )?;
    match set {
        0 => debounced(sql, session),
        _ => Ok(()),
    }
}

/// Removes the wake of a session's queue.
pub(super) fn debounced(sql: &Sql<'_>, session: SessionId) -> sql::Result<()> {
    remove_kind(sql, &session, DEBOUNCE)
}

pub(super) fn remove(sql: &Sql<'_>, subject: &impl ToValue) -> sql::Result<()> {
    sql.write("DELETE FROM wakes WHERE subject = ?1", [subject])
}

/// Removes the pause of an operation.
pub(super) fn unpause(sql: &Sql<'_>, operation: OperationId) -> sql::Result<()> {
    remove_kind(sql, &operation, "pause")
}

/// Removes the wake of one kind.
pub(super) fn remove_kind(
    sql: &Sql<'_>,
    subject: &impl ToValue,
    kind: &'static str,
) -> sql::Result<()> {
    sql.write(
        "DELETE FROM wakes WHERE subject = ?1 AND kind = ?2",
        args![subject, kind],
    )
}
