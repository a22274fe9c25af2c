//! The tree of turns, with what walking it needs beside each node.

use crate::sql::{Columns, Sql, int, to_json};
use domain::digest::Digest;
use domain::id::SessionId;
use domain::time::Timestamp;
use domain::turn::TurnNode;
use rusqlite::params;

/// A turn joined the tree: in which session, and when it was committed.
pub(super) fn committed(sql: &Sql<'_>, turn: &TurnNode, session: SessionId, time: Timestamp) -> rusqlite::Result<()> {
    let root = match turn.parent {
        Some(parent) => sql.row("SELECT root FROM turns WHERE id = ?1", [parent.0.0], |row| row.digest_opt(0))?.flatten(),
        None => Some(turn.id.0),
    };
    let jump_message = match turn.jump {
        Some(jump) => sql.row("SELECT last_message FROM turns WHERE id = ?1", [jump.0.0], |row| row.uint(0))?,
        None => None,
    };
    sql.execute(
        "INSERT INTO turns (id, parent, jump, jump_message, depth, run, first_message, last_message, session_state, node, root, session, \
         time) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
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
        ],
    )?;
    Ok(())
}
