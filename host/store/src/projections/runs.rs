//! Runs: which are open, what those that ended became, and what each has drawn on its accounts.

use crate::sql::{Columns, Sql, int};
use domain::budget::Amount;
use domain::event::{RunEnded, RunStarted};
use domain::id::{RunId, SessionId};
use rusqlite::params;

/// Maximum that one change adds or takes away. No sum of these comes near 63 bits.
const COUNTED_MAX: u64 = 1 << 50;
/// Maximum of a stored sum.
const KEPT_MAX: u64 = 1 << 60;

pub(super) fn started(sql: &Sql<'_>, started: &RunStarted) -> rusqlite::Result<()> {
    sql.write(
        "INSERT INTO runs (id, session, agent, started_at, accounts, user_id) VALUES (?1, ?2, ?3, \
         ?4, ?5, ?6)",
        params![
            started.run.to_string(),
            started.session.to_string(),
            started.agent.to_string(),
            int(started.time.0),
            (!started.accounts.is_empty()).then(|| started.accounts.address()),
            started.user_id.as_str(),
        ],
    )
}

/// Adds to the amounts that a run draws on its accounts, and subtracts what was reserved.
pub(super) fn draws(sql: &Sql<'_>, run: RunId, more: Amount, less: Amount) -> rusqlite::Result<()> {
    if more == less {
        return Ok(());
    }
    let counted = |number: u64| int(number.min(COUNTED_MAX));
    sql.write(
        "UPDATE runs SET tokens = max(0, min(tokens + ?2 - ?3, ?8)), calls = max(0, min(calls + ?4 \
         - ?5, ?8)), cost_micros = max(0, min(cost_micros + ?6 - ?7, ?8)) WHERE id = ?1",
        params![
            run.to_string(),
            counted(more.tokens),
            counted(less.tokens),
            more.calls,
            less.calls,
            counted(more.cost_micros),
            counted(less.cost_micros),
            int(KEPT_MAX),
        ],
    )
}

pub(super) fn ended(sql: &Sql<'_>, ended: &RunEnded) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE runs SET turn = ?2, outcome = ?3, ended_at = ?4 WHERE id = ?1",
        params![
            ended.run.to_string(),
            ended.turn.map(|turn| turn.0.0),
            ended.end.as_str(),
            int(ended.time.0)
        ],
    )
}

/// Returns the session of a run; none when its start was erased.
pub(super) fn needs_session(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Option<SessionId>> {
    sql.row(
        "SELECT session FROM runs WHERE id = ?1",
        [run.to_string()],
        |row| row.id(0),
    )
}
