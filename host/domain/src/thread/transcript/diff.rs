//! The difference of two threads: their common part, and the rest of each.

use super::thread::{BrokenThread, Tree};
use crate::thread::message::{Message, Role};
use crate::thread::turn::TurnNode;
use crate::values::id::TurnId;
use serde::Serialize;

/// Two threads side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The last common turn; none if there is none.
    pub common_ancestor: Option<TurnId>,
    /// Turns that only the first thread has, in order.
    pub only_in_a: Vec<TurnText>,
    /// Turns that only the second thread has, in order.
    pub only_in_b: Vec<TurnText>,
}

/// A turn as it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnText {
    /// The turn.
    pub turn: TurnId,
    /// Its messages with their authors' roles, in order. A message without text has an empty one;
    /// erased ones are left out.
    pub messages: Vec<(Role, String)>,
}

pub(super) fn diff<'m>(
    tree: &Tree<'_>,
    a: TurnId,
    b: TurnId,
    messages: impl Fn(TurnId) -> &'m [Option<Message>],
) -> Result<Diff, BrokenThread> {
    let common_ancestor = tree.common_ancestor(a, b)?;
    let shared = common_ancestor
        .map(|turn| tree.node(turn))
        .transpose()?
        .map_or(0, |node| node.depth);
    let alone = |thread: Vec<&TurnNode>| -> Vec<TurnText> {
        let alone = thread.into_iter().filter(|node| node.depth > shared);
        alone
            .map(|node| messages_of(node.id, messages(node.id)))
            .collect()
    };
    Ok(Diff {
        common_ancestor,
        only_in_a: alone(tree.thread(a)?),
        only_in_b: alone(tree.thread(b)?),
    })
}

fn messages_of(turn: TurnId, messages: &[Option<Message>]) -> TurnText {
    TurnText {
        turn,
        messages: messages
            .iter()
            .flatten()
            .map(|message| (message.role, message.text()))
            .collect(),
    }
}
