//! The tree of turns, and for each node the data that walking the tree needs.

use crate::sql::{self, Sql, named, to_json};
use domain::id::{SessionId, TurnId};
use domain::time::Timestamp;
use domain::turn::TurnNode;

/// Imported content counts as content from outside, whatever the file states.
pub(super) const IMPORTED_IS_UNTRUSTED: bool = true;

/// Records that a turn joined the tree: its session, whether its event is marked as depending on
/// content from outside, and the time of its commit.
pub(super) fn committed(
    sql: &Sql<'_>,
    turn: &TurnNode,
    session: SessionId,
    untrusted: bool,
    time: Timestamp,
) -> sql::Result<()> {
    sql.write(
        "INSERT INTO turns (id, parent, jump, jump_message, depth, run, first_message, \
         last_message, session_state, messages, outcome, used, models, root, session, time, \
         untrusted) VALUES (:id, :parent, \
         :jump, (SELECT last_message FROM turns WHERE id = :jump), :depth, :run, :first_message, \
         :last_message, :session_state, :messages, :outcome, :used, :models, CASE WHEN :parent IS NULL THEN :id ELSE (SELECT \
         root FROM turns WHERE id = :parent) END, :session, :time, :untrusted OR coalesce((SELECT \
         untrusted FROM turns WHERE id = :parent), 0))",
        named![
            id = turn.id,
            parent = turn.parent,
            jump = turn.jump,
            depth = turn.depth,
            run = turn.run,
            first_message = turn.first_message,
            last_message = turn.last_message,
            session_state = turn.session_state,
            messages = turn.messages.iter().flat_map(|it| it.0).collect::<Vec<u8>>(),
            outcome = turn.end,
            used = to_json(&turn.usage)?,
            models = to_json(&turn.models)?,
            session,
            time,
            untrusted
        ],
    )
}

/// Puts an erased turn back in its place, below its ancestors, which are folded first.
pub(super) fn put_back(
    sql: &Sql<'_>,
    turn: &TurnNode,
    session: SessionId,
    time: Timestamp,
) -> sql::Result<()> {
    if needs_turn(sql, turn.id)? {
        return Ok(());
    }
    committed(sql, turn, session, IMPORTED_IS_UNTRUSTED, time)?;
    adopt(sql, turn.id)
}

/// Reads whether a turn is in its place.
fn needs_turn(sql: &Sql<'_>, turn: TurnId) -> sql::Result<bool> {
    sql.exists("SELECT 1 FROM turns WHERE id = ?1", [turn])
}

/// Adds the ancestors of a turn to its tree, once its place in the tree is known. They depend on
/// it.
fn adopt(sql: &Sql<'_>, turn: TurnId) -> sql::Result<()> {
    sql.write(
        "WITH RECURSIVE above (id) AS (SELECT id FROM turns WHERE parent = ?1 AND root IS NULL \
         UNION ALL SELECT turns.id FROM above CROSS JOIN turns ON turns.parent = above.id WHERE \
         turns.root IS NULL) UPDATE turns SET root = (SELECT base.root FROM turns base WHERE \
         base.id = ?1), untrusted = TRUE, jump_message = (SELECT j.last_message FROM turns j WHERE \
         j.id = turns.jump) WHERE id IN (SELECT id FROM above)",
        [turn],
    )
}
