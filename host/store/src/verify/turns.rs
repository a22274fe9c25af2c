//! Verification of the tree of turns: every turn matches its id, its messages match its commitment,
//! and its place follows from its parent. One tree at a time, so that no more than the largest is
//! in memory.

use crate::read::{NODE_COLUMNS, messages_of_turn};
use crate::sql::{self, Columns, FromRow, Sql, text};
use domain::digest::Digest;
use domain::id::TurnId;
use domain::message::Message;
use domain::transcript::{Break, Verification, verify};
use domain::turn::TurnNode;

/// Returns the first turn that fails, if any.
pub(super) fn problem(sql: &Sql<'_>) -> sql::Result<Option<String>> {
    let astray = "SELECT id FROM turns t WHERE NOT EXISTS (SELECT 1 FROM turns r WHERE r.id = \
                  t.root AND r.parent IS NULL) LIMIT 1";
    if let Some(turn) = sql.one::<TurnId>(astray, [])? {
        return Ok(Some(format!(
            "turn {turn} of the table `turns` hangs on no tree: the first turn of its thread is \
             not there"
        )));
    }
    for root in sql.all::<Digest>("SELECT id FROM turns WHERE parent IS NULL ORDER BY id", [])? {
        if let Some(problem) = of_tree(sql, root)? {
            return Ok(Some(problem));
        }
    }
    Ok(None)
}

fn of_tree(sql: &Sql<'_>, root: Digest) -> sql::Result<Option<String>> {
    let mut turns: Vec<(TurnNode, Vec<Option<Message>>)> = Vec::new();
    let text = text!(
        "SELECT ",
        NODE_COLUMNS,
        " FROM turns WHERE root = ?1 ORDER BY depth, id"
    );
    let mut statement = sql.connection().prepare(text)?;
    let mut rows = statement.query([root])?;
    while let Some(row) = rows.next()? {
        let id: TurnId = row.get(0)?;
        let Ok(node) = TurnNode::from_row(sql, &row) else {
            return Ok(Some(format!(
                "turn {id} of the table `turns` cannot be read"
            )));
        };
        let Ok(messages) = messages_of_turn(sql, &node) else {
            return Ok(Some(format!(
                "turn {id}: a message of it in the table `messages` cannot be read"
            )));
        };
        turns.push((node, messages));
    }
    let verdicts = verify(
        turns
            .iter()
            .map(|(node, messages)| (node, messages.as_slice())),
    );
    Ok(verdicts
        .into_iter()
        .find_map(|(turn, verdict)| match verdict {
            // The events record whether a missing one was erased or never existed.
            Verification::Sound | Verification::Erased(_) => None,
            Verification::Broken(broken) => {
                let table = match broken {
                    Break::Message { .. } | Break::MessagePlace { .. } => "messages",
                    _ => "turns",
                };
                Some(format!("turn {turn}, in the table `{table}`: {broken}"))
            }
        }))
}
