//! Due times: timers, deadlines, pauses and reminders, in one mechanism.

use crate::sql::{Sql, int};
use domain::id::SessionId;
use domain::time::Timestamp;
use rusqlite::params;

/// A subject becomes due, or does not.
pub(super) fn set(
    sql: &Sql<'_>,
    subject: &str,
    kind: &'static str,
    session: SessionId,
    due: Option<Timestamp>,
) -> rusqlite::Result<()> {
    if let Some(due) = due {
        sql.execute(
            "INSERT INTO wakes (subject, kind, session, due) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (subject, kind) DO UPDATE SET due = excluded.due",
            params![subject, kind, session.to_string(), int(due.0)],
        )?;
    }
    Ok(())
}

/// Removes all due times of a subject.
pub(super) fn remove(sql: &Sql<'_>, subject: &str) -> rusqlite::Result<()> {
    sql.execute("DELETE FROM wakes WHERE subject = ?1", [subject])?;
    Ok(())
}

/// Removes a subject's due time of one kind.
pub(super) fn remove_kind(
    sql: &Sql<'_>,
    subject: &str,
    kind: &'static str,
) -> rusqlite::Result<()> {
    sql.execute(
        "DELETE FROM wakes WHERE subject = ?1 AND kind = ?2",
        params![subject, kind],
    )?;
    Ok(())
}
