//! The outbox: operations that were started and have not settled.

use crate::sql::{Columns, Sql, int};
use domain::budget::Spent;
use domain::id::{OperationId, RunId, SessionId};
use rusqlite::params;

/// An operation without its id and its owner.
#[derive(Default)]
pub(super) struct Started {
    /// The session that it was handed to.
    pub(super) waits_for: Option<SessionId>,
    /// Amount reserved for a model's call, and the charges of the attempts before the newest.
    pub(super) reserved: Spent,
}

/// Records that an operation is open. A question of it waits under an id of its own until its run
/// ends.
pub(super) fn started(
    sql: &Sql<'_>,
    id: OperationId,
    run: RunId,
    session: SessionId,
    it: &Started,
) -> rusqlite::Result<()> {
    let Started {
        waits_for,
        reserved,
    } = it;
    sql.execute(
        "INSERT INTO operations (id, run, session, waits_for, reserved_tokens, reserved_micros) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            id.0.0,
            run.to_string(),
            session.to_string(),
            waits_for.map(|session| session.to_string()),
            int(reserved.tokens),
            int(reserved.cost_micros),
        ],
    )?;
    Ok(())
}

/// Sets the amount that an operation draws. Returns its run and the amount that it drew before.
pub(super) fn attempted(
    sql: &Sql<'_>,
    id: OperationId,
    drawn: Spent,
) -> rusqlite::Result<Option<(RunId, Spent)>> {
    let found = sql.row(
        "SELECT run, reserved_tokens, reserved_micros FROM operations WHERE id = ?1",
        [id.0.0],
        |row| {
            Ok((
                row.id(0)?,
                Spent {
                    tokens: row.uint(1)?,
                    calls: 0,
                    cost_micros: row.uint(2)?,
                },
            ))
        },
    )?;
    if found.is_some() {
        let text = "UPDATE operations SET reserved_tokens = ?2, reserved_micros = ?3 WHERE id = ?1";
        sql.execute(
            text,
            params![id.0.0, int(drawn.tokens), int(drawn.cost_micros)],
        )?;
    }
    Ok(found)
}

/// Removes an operation. Returns its run and the amount that it drew.
pub(super) fn settled(sql: &Sql<'_>, id: OperationId) -> rusqlite::Result<Option<(RunId, Spent)>> {
    sql.row(
        "DELETE FROM operations WHERE id = ?1 RETURNING run, reserved_tokens, reserved_micros",
        [id.0.0],
        |row| {
            Ok((
                row.id(0)?,
                Spent {
                    tokens: row.uint(1)?,
                    calls: 0,
                    cost_micros: row.uint(2)?,
                },
            ))
        },
    )
}

/// Returns the run and the session of an operation; none when it is not open.
pub(super) fn whose(
    sql: &Sql<'_>,
    id: OperationId,
) -> rusqlite::Result<Option<(RunId, SessionId)>> {
    sql.row(
        "SELECT run, session FROM operations WHERE id = ?1",
        [id.0.0],
        |row| Ok((row.id(0)?, row.id(1)?)),
    )
}

/// Returns the operations of a run.
pub(super) fn of_run(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Vec<OperationId>> {
    sql.rows(
        "SELECT id FROM operations WHERE run = ?1",
        [run.to_string()],
        |row| row.digest(0).map(OperationId),
    )
}
