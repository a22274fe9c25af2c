//! Threads in a tree of turns: the path from a turn to its root, and the point where two of them
//! part.

use super::{Diff, diff};
use crate::thread::message::Message;
use crate::thread::turn::TurnNode;
use crate::values::id::TurnId;
use std::collections::HashMap;

/// Turns by their ids.
#[derive(Debug, Clone)]
pub struct Tree<'a> {
    nodes: HashMap<TurnId, &'a TurnNode>,
}

/// The reason why a thread cannot be traversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenThread {
    /// One of its turns is missing.
    #[error("turn {turn} is not among these turns")]
    Missing {
        /// The turn.
        turn: TurnId,
    },
    /// A turn is not one level deeper than the one before it.
    #[error(
        "turn {turn} has the depth {depth}, which is not one more than its parent's: the tree \
             is broken, verify it"
    )]
    Depth {
        /// The turn.
        turn: TurnId,
        /// Its depth.
        depth: u64,
    },
}

impl<'a> Tree<'a> {
    /// A tree of these turns, in any order.
    #[must_use]
    pub fn of(turns: impl IntoIterator<Item = &'a TurnNode>) -> Self {
        Self {
            nodes: turns.into_iter().map(|node| (node.id, node)).collect(),
        }
    }

    /// A turn.
    ///
    /// # Errors
    /// The turn is missing.
    pub fn node(&self, turn: TurnId) -> Result<&'a TurnNode, BrokenThread> {
        self.nodes
            .get(&turn)
            .copied()
            .ok_or(BrokenThread::Missing { turn })
    }

    /// The turn's thread, from its root.
    ///
    /// # Errors
    /// One of its turns is missing or misplaced.
    pub fn thread(&self, turn: TurnId) -> Result<Vec<&'a TurnNode>, BrokenThread> {
        let mut thread = vec![self.node(turn)?];
        let mut at = self.node(turn)?;
        // Each parent is one level higher, so a circle is no thread.
        while let Some(parent) = self.parent(at)? {
            thread.push(parent);
            at = parent;
        }
        thread.reverse();
        Ok(thread)
    }

    /// The last common turn of two threads; none if their roots differ. Takes a number of steps
    /// that is logarithmic in their depth.
    ///
    /// # Errors
    /// A turn of a thread is missing or misplaced.
    pub fn common_ancestor(&self, a: TurnId, b: TurnId) -> Result<Option<TurnId>, BrokenThread> {
        let mut a = self.node(a)?;
        let mut b = self.node(b)?;
        while a.id != b.id {
            if a.depth < b.depth {
                (a, b) = (b, a);
            }
            if a.depth > b.depth {
                let far = self.jump(a).filter(|far| far.depth >= b.depth);
                a = match far {
                    Some(far) => far,
                    None => self.parent(a)?.ok_or(BrokenThread::Depth {
                        turn: a.id,
                        depth: a.depth,
                    })?,
                };
                continue;
            }
            // At equal depth both jump to equal depth: if the jumps differ, the threads have not
            // met there.
            let jumps = self
                .jump(a)
                .zip(self.jump(b))
                .filter(|(a, b)| a.id != b.id && a.depth == b.depth);
            (a, b) = match (jumps, self.parent(a)?, self.parent(b)?) {
                (Some(jumps), ..) => jumps,
                (None, Some(a), Some(b)) => (a, b),
                (None, ..) => return Ok(None),
            };
        }
        Ok(Some(a.id))
    }

    /// Returns where two threads part, and the messages of each after that. Messages are given by
    /// turn, as many as are available.
    ///
    /// # Errors
    /// A turn of a thread is missing or misplaced.
    pub fn diff<'m>(
        &self,
        a: TurnId,
        b: TurnId,
        messages: impl Fn(TurnId) -> &'m [Option<Message>],
    ) -> Result<Diff, BrokenThread> {
        diff(self, a, b, messages)
    }

    /// The turn before another one; none for a root.
    fn parent(&self, node: &TurnNode) -> Result<Option<&'a TurnNode>, BrokenThread> {
        let parent = node.parent.map(|parent| self.node(parent)).transpose()?;
        let above = parent.map_or(0, |parent| parent.depth);
        if node.depth.checked_sub(1) == Some(above) {
            Ok(parent)
        } else {
            Err(BrokenThread::Depth {
                turn: node.id,
                depth: node.depth,
            })
        }
    }

    /// Returns the target of its jump, if that is upward.
    fn jump(&self, node: &TurnNode) -> Option<&'a TurnNode> {
        node.jump
            .and_then(|jump| self.nodes.get(&jump).copied())
            .filter(|far| far.depth < node.depth)
    }
}
