//! The outbox: operations that were started and have not settled.

use crate::sql::{Columns, Sql, int};
use domain::budget::Amount;
use domain::id::{OperationId, RunId, SessionId};
use rusqlite::{Row, params};

/// An operation without its id and its owner.
#[derive(Default)]
pub(super) struct Started {
    /// The session that it was handed to.
    pub(super) waits_for: Option<SessionId>,
    /// Amount reserved for a model's call, and the charges of the attempts before the newest.
    pub(super) reserved: Amount,
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
    sql.write(
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
    )
}

/// Reads the run of an operation, and the amount that the operation draws.
pub(super) fn needs_drawn(
    sql: &Sql<'_>,
    id: OperationId,
) -> rusqlite::Result<Option<(RunId, Amount)>> {
    sql.row(
        "SELECT run, reserved_tokens, reserved_micros FROM operations WHERE id = ?1",
        [id.0.0],
        drawn,
    )
}

pub(super) fn attempted(sql: &Sql<'_>, id: OperationId, drawn: Amount) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE operations SET reserved_tokens = ?2, reserved_micros = ?3 WHERE id = ?1",
        params![id.0.0, int(drawn.tokens), int(drawn.cost_micros)],
    )
}

/// Removes an operation. Returns its run and the amount that it drew.
pub(super) fn settled(sql: &Sql<'_>, id: OperationId) -> rusqlite::Result<Option<(RunId, Amount)>> {
    sql.row(
        "DELETE FROM operations WHERE id = ?1 RETURNING run, reserved_tokens, reserved_micros",
        [id.0.0],
        drawn,
    )
}

fn drawn(row: &Row<'_>) -> rusqlite::Result<(RunId, Amount)> {
    Ok((
        row.id(0)?,
        Amount {
            tokens: row.uint(1)?,
            calls: 0,
            cost_micros: row.uint(2)?,
        },
    ))
}

/// Records that a question of an operation is open, in its run and session. Nobody waits for the
/// answer when the operation is not open.
pub(super) fn asked(
    sql: &Sql<'_>,
    question: OperationId,
    operation: OperationId,
) -> rusqlite::Result<()> {
    sql.write(
        "INSERT INTO operations (id, run, session, waits_for, reserved_tokens, reserved_micros) \
         SELECT ?1, run, session, NULL, 0, 0 FROM operations WHERE id = ?2",
        params![question.0.0, operation.0.0],
    )
}

/// Removes all operations of a run, and returns them.
pub(super) fn ended(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Vec<OperationId>> {
    sql.rows(
        "DELETE FROM operations WHERE run = ?1 RETURNING id",
        [run.to_string()],
        |row| row.digest(0).map(OperationId),
    )
}
