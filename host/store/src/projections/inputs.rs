//! The ingress: inputs from acceptance until a run has consumed them.

use crate::read::dispatches::tree_of;
use crate::sql::{Columns, Sql, int, to_json};
use domain::event::InputAccepted;
use domain::id::{InputId, RunId, SessionId};
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::params;

/// Records that an input was accepted and waits. An input without a sender belongs to its session's
/// user.
pub(super) fn accepted(
    sql: &Sql<'_>,
    accepted: &InputAccepted,
    due: Option<Timestamp>,
    position: u64,
) -> rusqlite::Result<()> {
    sql.execute(
        "INSERT INTO inputs (id, session, session_number, position, state, words, due, waits_for, \
         priority, arrived, user_id) \
         VALUES (?1, ?2, (SELECT number FROM sessions WHERE id = ?2), ?3, 'waiting', ?4, ?5, ?6, \
         ?7, ?8, \
         coalesce(?9, (SELECT user_id FROM sessions WHERE id = ?2), 'local'))",
        params![
            accepted.input.to_string(),
            accepted.session.to_string(),
            int(position),
            accepted.source.may_join(),
            due.map(|due| int(due.0)),
            to_json(&accepted.waits_for())?,
            accepted.priority().as_str(),
            int(accepted.time.0),
            accepted.user_id.as_ref().map(UserId::as_str),
        ],
    )?;
    Ok(())
}

/// Records that an input is work that a run handed over. It counts against that run and its tree of
/// agents until it has ended. Without a known run it counts against the tree of the agent that does
/// it.
pub(super) fn handed_over(
    sql: &Sql<'_>,
    accepted: &InputAccepted,
    by_run: Option<RunId>,
) -> rusqlite::Result<()> {
    let by = by_run
        .map(|run| {
            sql.row(
                "SELECT agent FROM runs WHERE id = ?1",
                [run.to_string()],
                |row| row.id(0),
            )
        })
        .transpose()?;
    let agent = match by.flatten() {
        Some(agent) => Some(agent),
        None => sql.row(
            "SELECT agent FROM sessions WHERE id = ?1",
            [accepted.session.to_string()],
            |row| row.id(0),
        )?,
    };
    let tree = agent.map(|agent| tree_of(sql, agent)).transpose()?;
    sql.execute(
        "UPDATE inputs SET by_run = ?2, tree = ?3 WHERE id = ?1",
        params![
            accepted.input.to_string(),
            by_run.map(|run| run.to_string()),
            tree.map(|tree| tree.to_string())
        ],
    )?;
    Ok(())
}

/// A run deals with it.
pub(super) fn claimed(sql: &Sql<'_>, input: InputId, run: RunId) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE inputs SET state = 'claimed', run = ?2 WHERE id = ?1",
        params![input.to_string(), run.to_string()],
    )?;
    Ok(())
}

/// A run that dealt with some ended.
pub(super) fn consumed(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE inputs SET state = 'consumed' WHERE run = ?1 AND state = 'claimed'",
        [run.to_string()],
    )?;
    Ok(())
}

/// Records that an input was cancelled or dropped; an event has the reason.
pub(super) fn gone(sql: &Sql<'_>, input: InputId, state: &str) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE inputs SET state = ?2 WHERE id = ?1",
        params![input.to_string(), state],
    )?;
    Ok(())
}

/// Records that an input became a dead letter; the event at `position` has the reason.
pub(super) fn died(sql: &Sql<'_>, input: InputId, position: u64) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE inputs SET state = 'dead', died = ?2 WHERE id = ?1",
        params![input.to_string(), int(position)],
    )?;
    Ok(())
}

/// Makes an input wait again at its original place, and returns its due time.
pub(super) fn requeued(sql: &Sql<'_>, input: InputId) -> rusqlite::Result<Option<Timestamp>> {
    let id = input.to_string();
    sql.execute(
        "UPDATE inputs SET state = 'waiting', run = NULL, died = NULL WHERE id = ?1",
        [&id],
    )?;
    let due = sql.row("SELECT due FROM inputs WHERE id = ?1", [&id], |row| {
        row.uint_opt(0)
    })?;
    Ok(due.flatten().map(Timestamp))
}

/// Returns when the debounce of the last input that waits in a session's queue is over. None when
/// nothing waits there, or while a run is open: its end asks again.
pub(super) fn debounced_until(
    sql: &Sql<'_>,
    session: SessionId,
) -> rusqlite::Result<Option<Timestamp>> {
    let until = sql.row(
        "SELECT arrived + json_extract(waits_for, '$.debounce_ms') FROM inputs \
         WHERE session_number = (SELECT number FROM sessions WHERE id = ?1) AND state = 'waiting' \
         AND json_extract(waits_for, '$.kind') = 'queued' AND EXISTS (SELECT 1 FROM sessions WHERE \
         id = ?1 AND open_run IS NULL) \
         ORDER BY position DESC LIMIT 1",
        [session.to_string()],
        |row| row.uint_opt(0),
    )?;
    Ok(until.flatten().map(Timestamp))
}
