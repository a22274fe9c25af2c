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
    /// True if it waits for a person.
    pub(super) asks: bool,
}

/// An operation that is open no more.
pub(super) struct Gone {
    pub(super) run: RunId,
    /// Amount that it drew.
    pub(super) drawn: Amount,
    /// The part of it that counts.
    pub(super) counted: Counted,
    /// True if it waited for another session.
    pub(super) waits: bool,
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
        counted,
        asks,
    } = it;
    let (counts, reserved, model) = match counted {
        Counted::Model { asked, drawn } => (MODEL, *drawn, asked.as_deref()),
        Counted::Call => (CALL, Amount::default(), None),
        Counted::Time => (TIME, Amount::default(), None),
    };
    sql.write(
        "INSERT INTO operations (id, run, session, waits_for, reserved_tokens, reserved_micros, \
         counts, model, asks) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            id.0.0,
            run.to_string(),
            session.to_string(),
            waits_for.map(|session| session.to_string()),
            int(reserved.tokens),
            int(reserved.cost_micros),
            counts,
            model,
            asks,
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

/// Records whether an operation waits for a person.
pub(super) fn asks(sql: &Sql<'_>, id: OperationId, asks: bool) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE operations SET asks = ?2 WHERE id = ?1 AND asks <> ?2",
        params![id.0.0, asks],
    )
}

/// Removes an operation, and returns it.
pub(super) fn settled(sql: &Sql<'_>, id: OperationId) -> rusqlite::Result<Option<Gone>> {
    sql.row(
        "DELETE FROM operations WHERE id = ?1 RETURNING run, reserved_tokens, reserved_micros, \
         counts, model, waits_for IS NOT NULL",
        [id.0.0],
        |row| gone(row, 5),
    )
}

/// Reads an operation that is gone; the column says whether it waited for another session.
fn gone(row: &Row<'_>, waits: usize) -> rusqlite::Result<Gone> {
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
        waits: row.get(waits)?,
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
         counts, model, id, waits_for IS NOT NULL",
        [run.to_string()],
        |row| Ok((OperationId(row.digest(5)?), gone(row, 6)?)),
    )
}
