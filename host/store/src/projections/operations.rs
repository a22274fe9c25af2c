//! The outbox: operations that were started and have not settled.

use crate::sql::{Columns, Sql, int};
use domain::budget::Amount;
use domain::id::{OperationId, RunId, SessionId};
use domain::usage::Counted;
use rusqlite::{Row, params};

/// Words by which the table says what counts of an operation.
const MODEL: &str = "model";
const CALL: &str = "call";
const TIME: &str = "time";

/// An operation without its id and its owner.
#[derive(Default)]
pub(super) struct Started {
    /// The session that it was handed to.
    pub(super) waits_for: Option<SessionId>,
    /// The part that counts when it settles, with the amount reserved for a model's call.
    pub(super) counted: Counted,
}

/// An operation that is open no more.
pub(super) struct Gone {
    pub(super) run: RunId,
    /// Amount that it drew.
    pub(super) drawn: Amount,
    /// The part of it that counts.
    pub(super) counted: Counted,
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
    let Started { waits_for, counted } = it;
    let (counts, reserved, model) = match counted {
        Counted::Model { asked, drawn } => (MODEL, *drawn, asked.as_deref()),
        Counted::Call => (CALL, Amount::default(), None),
        Counted::Time => (TIME, Amount::default(), None),
    };
    sql.write(
        "INSERT INTO operations (id, run, session, waits_for, reserved_tokens, reserved_micros, \
         counts, model) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            id.0.0,
            run.to_string(),
            session.to_string(),
            waits_for.map(|session| session.to_string()),
            int(reserved.tokens),
            int(reserved.cost_micros),
            counts,
            model,
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

/// Removes an operation, and returns it.
pub(super) fn settled(sql: &Sql<'_>, id: OperationId) -> rusqlite::Result<Option<Gone>> {
    sql.row(
        "DELETE FROM operations WHERE id = ?1 RETURNING run, reserved_tokens, reserved_micros, \
         counts, model",
        [id.0.0],
        gone,
    )
}

fn gone(row: &Row<'_>) -> rusqlite::Result<Gone> {
    let (run, drawn) = drawn(row)?;
    let counted = match row.text(3)? {
        MODEL => Counted::Model {
            asked: row.get(4)?,
            drawn,
        },
        CALL => Counted::Call,
        _ => Counted::Time,
    };
    Ok(Gone {
        run,
        drawn,
        counted,
    })
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
pub(super) fn ended(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<Vec<(OperationId, Gone)>> {
    sql.rows(
        "DELETE FROM operations WHERE run = ?1 RETURNING run, reserved_tokens, reserved_micros, \
         counts, model, id",
        [run.to_string()],
        |row| Ok((OperationId(row.digest(5)?), gone(row)?)),
    )
}
