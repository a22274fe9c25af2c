//! The tree of turns as it is read: every turn is what its id says, its messages are those that it
//! commits to, and it stands where its parent puts it. One tree at a time, so that no more than the
//! largest is in memory.

use crate::read::messages_of_turn;
use crate::sql::{self, FromRow, Sql, row, select};
use domain::digest::Digest;
use domain::id::TurnId;
use domain::message::Message;
use domain::transcript::{Break, Verification, verify};
use domain::turn::TurnNode;

/// The first turn that is not what it says, if there is one.
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

row! {
    struct StoredTurn from "turns" {
        id: TurnId,
        parent: Option<TurnId>,
        jump: Option<TurnId>,
        depth: u64,
        run: String,
        first_message: u64,
        last_message: u64,
        session_state: Digest,
        node: String,
    }
}

impl StoredTurn {
    /// Returns whether what stands beside the node is what the node says.
    fn is_of(&self, node: &TurnNode) -> bool {
        node.id == self.id
            && node.parent == self.parent
            && node.jump == self.jump
            && node.depth == self.depth
            && node.run.to_string() == self.run
            && node.first_message == self.first_message
            && node.last_message == self.last_message
            && node.session_state == self.session_state
    }
}

fn of_tree(sql: &Sql<'_>, root: Digest) -> sql::Result<Option<String>> {
    let mut turns: Vec<(TurnNode, Vec<Option<Message>>)> = Vec::new();
    let mut statement = sql
        .connection()
        .prepare(select!(StoredTurn, "WHERE root = ?1 ORDER BY depth, id"))?;
    let mut rows = statement.query([root])?;
    while let Some(row) = rows.next()? {
        let turn = StoredTurn::from_row(&row)?;
        let id = turn.id;
        let unreadable = |what: &str| Ok(Some(format!("turn {id} of the table `turns`: {what}")));
        let Ok(node) = serde_json::from_str::<TurnNode>(&turn.node) else {
            return unreadable("its node cannot be read");
        };
        if !turn.is_of(&node) {
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
