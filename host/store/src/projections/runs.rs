//! Runs: which are open, and what those that ended became.

use crate::sql::{Columns, Sql, int};
use domain::event::{RunEnded, RunStarted};
use domain::id::{RunId, SessionId};
use domain::turn::TurnEnd;
use rusqlite::params;

/// A run is open.
pub(super) fn started(sql: &Sql<'_>, started: &RunStarted) -> rusqlite::Result<()> {
    sql.execute(
        "INSERT INTO runs (id, session, agent, started_at) VALUES (?1, ?2, ?3, ?4)",
        params![started.run.to_string(), started.session.to_string(), started.agent.to_string(), int(started.time.0)],
    )?;
    Ok(())
}

/// It ended.
pub(super) fn ended(sql: &Sql<'_>, ended: &RunEnded) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE runs SET turn = ?2, outcome = ?3, ended_at = ?4 WHERE id = ?1",
        params![ended.run.to_string(), ended.turn.map(|turn| turn.0.0), name(ended.end), int(ended.time.0)],
    )?;
    Ok(())
}

/// Whose run it is; none when its start was erased.
pub(super) fn session(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Option<SessionId>> {
    sql.row("SELECT session FROM runs WHERE id = ?1", [run.to_string()], |row| row.id(0))
}

fn name(end: TurnEnd) -> &'static str {
    match end {
        TurnEnd::Replied => "replied",
        TurnEnd::Completed => "completed",
        TurnEnd::Failed => "failed",
        TurnEnd::Aborted => "aborted",
    }
}
