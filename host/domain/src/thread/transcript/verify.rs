//! Verification of turns against their ids, by recomputing the digests of messages and the ids of
//! turns.

use crate::thread::message::{Message, MessageId};
use crate::thread::turn::{TurnNode, TurnPlace, jumps_over};
use crate::values::id::TurnId;
use std::collections::HashMap;

/// The result of the verification of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// All of it matches its id.
    Sound,
    /// The rest of it matches its id, and these messages were erased.
    Erased(Vec<MessageId>),
    /// It does not match its id.
    Broken(Break),
}

/// The fault in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    /// Its id does not match its content.
    #[error("its id follows from other content: from what is here, {computed} follows")]
    Id {
        /// The computed id.
        computed: TurnId,
    },
    /// It commits to another number of messages.
    #[error("it commits to {committed} messages, and {given} are given")]
    Count {
        /// Number of its digests.
        committed: usize,
        /// Number of messages that are given.
        given: usize,
    },
    /// A message does not match the turn's commitment.
    #[error("message {message} is not the one that it commits to: its digest is another")]
    Message {
        /// The expected place of the message.
        message: MessageId,
    },
    /// A message has a wrong place.
    #[error("the message in the place of message {expected} says that it is message {found}")]
    MessagePlace {
        /// The expected place.
        expected: MessageId,
        /// The place that it states.
        found: MessageId,
    },
    /// Its first and last message do not match its parent and its messages.
    #[error("its messages should be {first} to {last}")]
    Span {
        /// The first's place.
        first: MessageId,
        /// The last's place.
        last: MessageId,
    },
    /// It is not one level deeper than its parent.
    #[error("it should have the depth {expected}")]
    Depth {
        /// The depth that it should have.
        expected: u64,
    },
    /// Its jump pointer does not follow the rule.
    #[error("its jump pointer is not the one that its parent's place demands")]
    Jump,
    /// Its parent is not among the turns before it.
    #[error("its parent {parent} is not among the turns before it")]
    ParentMissing {
        /// The parent.
        parent: TurnId,
    },
    /// A turn before it has the same id.
    #[error("a turn before it has the same id")]
    Twice,
}

/// Verifies turns, and returns one verdict for each, in the same order. Each turn follows its
/// parent and has its messages in order, with none in the place of an erased one.
#[must_use]
pub fn verify<'a>(
    turns: impl IntoIterator<Item = (&'a TurnNode, &'a [Option<Message>])>,
) -> Vec<(TurnId, Verification)> {
    let mut before: HashMap<TurnId, &TurnNode> = HashMap::new();
    let mut verdicts = Vec::new();
    for (node, messages) in turns {
        let broken = joined(node, &before)
            .and_then(|()| verified(node, messages))
            .err();
        let verdict = match broken {
            Some(broken) => Verification::Broken(broken),
            None => complete(node, messages),
        };
        verdicts.push((node.id, verdict));
        before.entry(node.id).or_insert(node);
    }
    verdicts
}

/// Checks that a turn's position matches its parent.
fn joined(node: &TurnNode, before: &HashMap<TurnId, &TurnNode>) -> Result<(), Break> {
    if before.contains_key(&node.id) {
        return Err(Break::Twice);
    }
    let parent = match node.parent {
        Some(parent) => Some(*before.get(&parent).ok_or(Break::ParentMissing { parent })?),
        None => None,
    };
    let expected = parent.map_or(1, |parent| parent.depth.saturating_add(1));
    if node.depth != expected {
        return Err(Break::Depth { expected });
    }
    let first = parent.map_or(1, |parent| parent.last_message.saturating_add(1));
    let last = first
        .saturating_add(node.messages.len() as u64)
        .saturating_sub(1);
    if (node.first_message, node.last_message) != (first, last) {
        return Err(Break::Span { first, last });
    }
    if node.jump == jump(parent, |id| before.get(&id).copied()) {
        Ok(())
    } else {
        Err(Break::Jump)
    }
}

/// Checks that a turn commits to exactly these messages.
fn verified(node: &TurnNode, messages: &[Option<Message>]) -> Result<(), Break> {
    if node.messages.len() != messages.len() {
        return Err(Break::Count {
            committed: node.messages.len(),
            given: messages.len(),
        });
    }
    for ((digest, message), expected) in
        node.messages.iter().zip(messages).zip(node.first_message..)
    {
        let Some(message) = message else { continue };
        if message.id != expected {
            return Err(Break::MessagePlace {
                expected,
                found: message.id,
            });
        }
        if message.digest() != *digest {
            return Err(Break::Message { message: expected });
        }
    }
    let computed = node.compute_id();
    if computed == node.id {
        Ok(())
    } else {
        Err(Break::Id { computed })
    }
}

fn complete(node: &TurnNode, messages: &[Option<Message>]) -> Verification {
    let erased: Vec<MessageId> = (node.first_message..)
        .zip(messages)
        .filter(|(_, message)| message.is_none())
        .map(|(id, _)| id)
        .collect();
    if erased.is_empty() {
        Verification::Sound
    } else {
        Verification::Erased(erased)
    }
}

/// Returns the target of the jump pointer for a parent's child, as in stores.
pub(super) fn jump<'a>(
    parent: Option<&'a TurnNode>,
    find: impl Fn(TurnId) -> Option<&'a TurnNode>,
) -> Option<TurnId> {
    let parent = parent?;
    let depth_of = |turn: Option<TurnId>| turn.and_then(&find).map_or(0, |node| node.depth);
    let Some(over) = parent.jump.and_then(&find) else {
        return Some(parent.id);
    };
    let here = TurnPlace {
        depth: parent.depth,
        jump_depth: over.depth,
    };
    let there = TurnPlace {
        depth: over.depth,
        jump_depth: depth_of(over.jump),
    };
    // In a broken tree a jump may lead downward; the rule subtracts.
    let upward = here.depth > here.jump_depth && there.depth > there.jump_depth;
    if upward && jumps_over(here, there) {
        over.jump
    } else {
        Some(parent.id)
    }
}
