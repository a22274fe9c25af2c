//! The outbox: operations that were started and have not settled.

use crate::sql::{self, Sql, args, insert, named, row, text};
use domain::budget::Amount;
use domain::id::{OperationId, RunId, SessionId};
use domain::usage::Counted;

/// Values of the column that states the kind of usage of an operation.
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

/// An operation that is no longer open.
pub(super) struct Gone {
    pub(super) run: RunId,
    /// Amount that it drew.
    pub(super) drawn: Amount,
    /// The part of its usage that counts.
    pub(super) counted: Counted,
    /// True if it waited for another session.
    pub(super) waits: bool,
}

/// Records that an operation is open. If it asks a question, that waits under an id of its own
/// until its run ends.
pub(super) fn started(
    sql: &Sql<'_>,
    id: OperationId,
    run: RunId,
    session: SessionId,
    it: &Started,
) -> sql::Result<()> {
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
    insert!(
        sql,
        operations {
            id,
            run,
            session,
            waits_for,
            reserved_tokens: reserved.tokens,
            reserved_micros: reserved.cost_micros,
            counts,
            model,
            asks
        }
    )
}

/// Reads the run of an operation, and the amount that the operation draws.
pub(super) fn needs_drawn(sql: &Sql<'_>, id: OperationId) -> sql::Result<Option<(RunId, Amount)>> {
    let text = "SELECT run, reserved_tokens, reserved_micros FROM operations WHERE id = ?1";
    let found = sql.one(text, [id])?;
    Ok(found.map(|(run, tokens, cost_micros)| (run, drawn(tokens, cost_micros))))
}

pub(super) fn attempted(sql: &Sql<'_>, id: OperationId, drawn: Amount) -> sql::Result<()> {
    sql.write(
        "UPDATE operations SET reserved_tokens = :reserved_tokens, reserved_micros = \
         :reserved_micros WHERE id = :id",
        named![
            id,
            reserved_tokens = drawn.tokens,
            reserved_micros = drawn.cost_micros
        ],
    )
}

/// Records whether an operation waits for a person.
pub(super) fn asks(sql: &Sql<'_>, id: OperationId, asks: bool) -> sql::Result<()> {
    sql.write(
        "UPDATE operations SET asks = ?2 WHERE id = ?1 AND asks <> ?2",
        args![id, asks],
    )
}

/// Removes an operation, and returns it.
pub(super) fn settled(sql: &Sql<'_>, id: OperationId) -> sql::Result<Option<Gone>> {
    let text = text!(
        "DELETE FROM operations WHERE id = ?1 RETURNING ",
        StoredGone::COLUMNS
    );
    let gone: Option<StoredGone> = sql.one(text, [id])?;
    Ok(gone.map(Gone::from))
}

row! {
    /// An operation as it was stored.
    struct StoredGone {
        run: RunId,
        reserved_tokens: u64,
        reserved_micros: u64,
        counts: String,
        model: Option<String>,
        waits: bool = "waits_for IS NOT NULL",
    }
}

impl From<StoredGone> for Gone {
    fn from(it: StoredGone) -> Self {
        let drawn = drawn(it.reserved_tokens, it.reserved_micros);
        Self {
            run: it.run,
            drawn,
            counted: match it.counts.as_str() {
                MODEL => Counted::Model {
                    asked: it.model,
                    drawn,
                },
                CALL => Counted::Call,
                _ => Counted::Time,
            },
            waits: it.waits,
        }
    }
}

fn drawn(tokens: u64, cost_micros: u64) -> Amount {
    Amount {
        tokens,
        calls: 0,
        cost_micros,
    }
}

/// Records that a question of an operation is open, in its run and session. Nobody waits for the
/// answer when the operation is not open.
pub(super) fn asked(
    sql: &Sql<'_>,
    question: OperationId,
    operation: OperationId,
) -> sql::Result<()> {
    sql.write(
        "INSERT INTO operations (id, run, session, waits_for, reserved_tokens, reserved_micros) \
         SELECT ?1, run, session, NULL, 0, 0 FROM operations WHERE id = ?2",
        args![question, operation],
    )
}

/// Removes all operations of a run, and returns them.
pub(super) fn ended(sql: &Sql<'_>, run: RunId) -> sql::Result<Vec<(OperationId, Gone)>> {
    let text = text!(
        "DELETE FROM operations WHERE run = ?1 RETURNING id, ",
        StoredGone::COLUMNS
    );
    let gone: Vec<(OperationId, StoredGone)> = sql.all(text, [run])?;
    Ok(gone.into_iter().map(|(id, it)| (id, it.into())).collect())
}
