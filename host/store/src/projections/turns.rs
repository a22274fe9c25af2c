//! The tree of turns, with what walking it needs beside each node.

use crate::sql::{Columns, Sql, int, to_json};
use domain::digest::Digest;
use domain::id::{SessionId, TurnId};
use domain::time::Timestamp;
use domain::turn::TurnNode;
use rusqlite::params;

/// Imported content counts as content from outside, whatever the file says of it.
pub(super) const IMPORTED_IS_UNTRUSTED: Option<bool> = Some(true);

/// A turn joined the tree: in which session, whether its event says that it rests on content from
/// outside, and when it was committed.
pub(super) fn committed(
    sql: &Sql<'_>,
    turn: &TurnNode,
    session: SessionId,
    untrusted: Option<bool>,
    time: Timestamp,
) -> rusqlite::Result<()> {
    let untrusted = match untrusted {
        Some(untrusted) => untrusted,
        // Its event is from before it said so.
        None => {
            let text =
                "SELECT 1 FROM messages WHERE run = ?1 AND json_extract(message, '$.untrusted')";
            sql.exists(text, [turn.run.to_string()])?
        }
    };
    let (of_parent, root) = match turn.parent {
        Some(parent) => {
            let text = "SELECT untrusted, root FROM turns WHERE id = ?1";
            let found = sql.row(text, [parent.0.0], |row| {
                Ok((row.get::<_, bool>(0)?, row.digest_opt(1)?))
            })?;
            found.unwrap_or((false, None))
        }
        None => (false, Some(turn.id.0)),
    };
    let jump_message = match turn.jump {
        Some(jump) => sql.row(
            "SELECT last_message FROM turns WHERE id = ?1",
            [jump.0.0],
            |row| row.uint(0),
        )?,
        None => None,
    };
    sql.execute(
        "INSERT INTO turns (id, parent, jump, jump_message, depth, run, first_message, \
         last_message, session_state, node, root, session, \
         time, untrusted) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        params![
            turn.id.0.0,
            turn.parent.map(|parent| parent.0.0),
            turn.jump.map(|jump| jump.0.0),
            jump_message.map(int),
            int(turn.depth),
            turn.run.to_string(),
            int(turn.first_message),
            int(turn.last_message),
            turn.session_state.0,
            to_json(turn)?,
            root.map(|Digest(root)| root),
            session.to_string(),
            int(time.0),
            untrusted || of_parent,
        ],
    )?;
    Ok(())
}

/// Puts an erased turn back in its place. It goes below the turns above it, which are folded before
/// it.
pub(super) fn put_back(
    sql: &Sql<'_>,
    turn: &TurnNode,
    session: SessionId,
    time: Timestamp,
) -> rusqlite::Result<()> {
    if sql.exists("SELECT 1 FROM turns WHERE id = ?1", [turn.id.0.0])? {
        return Ok(());
    }
    committed(sql, turn, session, IMPORTED_IS_UNTRUSTED, time)?;
    let root = sql
        .row(
            "SELECT root FROM turns WHERE id = ?1",
            [turn.id.0.0],
            |row| row.digest_opt(0),
        )?
        .flatten();
    adopt(sql, turn.id, root)
}

/// Adds the turns above a turn to its tree, once its place in the tree is known. They rest on it.
fn adopt(sql: &Sql<'_>, turn: TurnId, root: Option<Digest>) -> rusqlite::Result<()> {
    let mut above = vec![turn];
    while let Some(turn) = above.pop() {
        let text = "SELECT id FROM turns WHERE parent = ?1 AND root IS NULL";
        for child in sql.rows(text, [turn.0.0], |row| row.digest(0))? {
            sql.execute(
                "UPDATE turns SET root = ?2, untrusted = TRUE, jump_message = (SELECT \
                 j.last_message FROM turns j WHERE j.id = turns.jump) WHERE id = ?1",
                params![child.0, root.map(|Digest(root)| root)],
            )?;
            above.push(TurnId(child));
        }
    }
    Ok(())
}
