//! The outbox: operations that were started and have not settled.

use crate::sql::{Columns, Sql};
use domain::id::{OperationId, RunId, SessionId};
use rusqlite::params;

/// It is open, or a question of it waits under an id of its own until its run ends. `waits_for` is the session that it was handed to.
pub(super) fn started(
    sql: &Sql<'_>,
    id: OperationId,
    run: RunId,
    session: SessionId,
    waits_for: Option<SessionId>,
) -> rusqlite::Result<()> {
    sql.execute(
        "INSERT INTO operations (id, run, session, waits_for) VALUES (?1, ?2, ?3, ?4)",
        params![id.0.0, run.to_string(), session.to_string(), waits_for.map(|session| session.to_string())],
    )?;
    Ok(())
}

/// It is not any more.
pub(super) fn settled(sql: &Sql<'_>, id: OperationId) -> rusqlite::Result<()> {
    sql.execute("DELETE FROM operations WHERE id = ?1", [id.0.0])?;
    Ok(())
}

/// Whose it is; none when it is not open.
pub(super) fn whose(sql: &Sql<'_>, id: OperationId) -> rusqlite::Result<Option<(RunId, SessionId)>> {
    sql.row("SELECT run, session FROM operations WHERE id = ?1", [id.0.0], |row| Ok((row.id(0)?, row.id(1)?)))
}

/// Those of a run.
pub(super) fn of_run(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Vec<OperationId>> {
    sql.rows("SELECT id FROM operations WHERE run = ?1", [run.to_string()], |row| row.digest(0).map(OperationId))
}
