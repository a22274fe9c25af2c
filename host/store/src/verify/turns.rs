//! The tree of turns as it is read: every turn is what its id says, its messages are those that it
//! commits to, and it stands where its parent puts it. One tree at a time, so that no more than the
//! largest is in memory.

use crate::read::messages_of_turn;
use crate::sql::{Columns, Sql};
use domain::digest::Digest;
use domain::id::TurnId;
use domain::message::Message;
use domain::transcript::{Break, Verification, verify};
use domain::turn::TurnNode;

/// The first turn that is not what it says, if there is one.
pub(super) fn problem(sql: &Sql<'_>) -> rusqlite::Result<Option<String>> {
    let astray = "SELECT id FROM turns t WHERE NOT EXISTS (SELECT 1 FROM turns r WHERE r.id = \
                  t.root AND r.parent IS NULL) LIMIT 1";
    if let Some(turn) = sql.row(astray, [], |row| row.digest(0).map(TurnId))? {
        return Ok(Some(format!(
            "turn {turn} of the table `turns` hangs on no tree: the first turn of its thread is \
             not there"
        )));
    }
    for root in sql.rows(
        "SELECT id FROM turns WHERE parent IS NULL ORDER BY id",
        [],
        |row| row.digest(0),
    )? {
        if let Some(problem) = of_tree(sql, root)? {
            return Ok(Some(problem));
        }
    }
    Ok(None)
}

fn of_tree(sql: &Sql<'_>, root: Digest) -> rusqlite::Result<Option<String>> {
    let mut turns: Vec<(TurnNode, Vec<Option<Message>>)> = Vec::new();
    let mut rows = sql.connection().prepare_cached(
        "SELECT id, parent, jump, depth, run, first_message, last_message, session_state, node \
         FROM turns WHERE root = ?1 ORDER BY depth, id",
    )?;
    let mut rows = rows.query([root.0])?;
    while let Some(row) = rows.next()? {
        let id = TurnId(row.digest(0)?);
        let unreadable = |what: &str| Ok(Some(format!("turn {id} of the table `turns`: {what}")));
        let Ok(node) = row.json::<TurnNode>(8) else {
            return unreadable("its node cannot be read");
        };
        let beside = node.id == id
            && row.digest_opt(1)?.map(TurnId) == node.parent
            && row.digest_opt(2)?.map(TurnId) == node.jump
            && row.uint(3)? == node.depth
            && row.get::<_, String>(4)? == node.run.to_string()
            && (row.uint(5)?, row.uint(6)?) == (node.first_message, node.last_message)
            && row.digest(7)? == node.session_state;
        if !beside {
            return unreadable("what stands beside its node is not what the node says");
        }
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
            // Whether one that is missing was erased, or never there, the events say.
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
