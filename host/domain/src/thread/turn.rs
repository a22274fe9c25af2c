//! Turns: immutable nodes of a content-addressed tree, and the arithmetic of walking it.

use crate::thread::message::MessageId;
use crate::thread::model::Usage;
use crate::values::digest::Digest;
use crate::values::id::{RunId, TurnId};
use crate::values::text::words;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kind of end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// It ended with a reply.
    Replied,
    /// It ended with the end of its structured session.
    Completed,
    /// The agent, the host or a limit caused the failure.
    Failed,
    /// It was cancelled.
    Aborted,
}

words!(TurnEnd {
    Replied = "replied",
    Completed = "completed",
    Failed = "failed",
    Aborted = "aborted",
});

/// A turn: the commit of this system. Never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnNode {
    /// The hash of all the content below.
    pub id: TurnId,
    /// The turn before it.
    pub parent: Option<TurnId>,
    /// An earlier ancestor, so that any ancestor can be reached in a logarithmic number of steps.
    pub jump: Option<TurnId>,
    /// Number of turns in its thread, itself included.
    pub depth: u64,
    /// The run that made it. Its messages are that run's messages.
    pub run: RunId,
    /// Its first message's place in the thread.
    pub first_message: MessageId,
    /// The place of its last message; one less than that of the first if it has no messages.
    pub last_message: MessageId,
    /// Salted digests of its messages, in order.
    pub messages: Vec<Digest>,
    /// The digest of the session's state after it, a blob.
    pub session_state: Digest,
    /// The kind of its end.
    pub end: TurnEnd,
    /// Tokens that it used.
    pub usage: Usage,
    /// The models that took part.
    pub models: Vec<String>,
}

/// A turn's place in its thread, as the jump rule needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPlace {
    /// Its depth.
    pub depth: u64,
    /// Its jump's depth; 0 for none.
    pub jump_depth: u64,
}

impl TurnNode {
    /// The id derived from parent, messages, session state and end.
    #[must_use]
    pub fn compute_id(&self) -> TurnId {
        let parent = self.parent.map_or([0; 32], |TurnId(Digest(bytes))| bytes);
        let messages: Vec<u8> = self.messages.iter().flat_map(|digest| digest.0).collect();
        let place = [self.depth.to_be_bytes(), self.first_message.to_be_bytes()].concat();
        TurnId(Digest::of_parts(&[
            b"turn",
            &parent,
            self.run.0.as_bytes(),
            &place,
            &messages,
            &self.session_state.0,
            self.end.as_str().as_bytes(),
        ]))
    }
}

/// Returns whether a new turn's jump pointer leads to the jump of its parent's jump target.
/// Otherwise it leads to the parent.
///
/// The skew-binary rule of Myers ("An applicative random-access stack", 1983): if the parent's jump
/// and the jump before it span the same distance, join them; otherwise point to the parent. Any
/// ancestor is then O(log depth) steps away.
#[must_use]
pub fn jumps_over(parent: TurnPlace, parent_jump: TurnPlace) -> bool {
    parent.jump_depth > 0
        && parent.depth - parent.jump_depth == parent_jump.depth - parent_jump.jump_depth
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a chain by the rule and walks from its end to each ancestor.
    #[test]
    fn any_ancestor_is_a_logarithmic_number_of_steps_away() {
        let mut places = vec![TurnPlace {
            depth: 0,
            jump_depth: 0,
        }];
        for depth in 1..=10_000_u64 {
            let parent = places[usize::try_from(depth).unwrap() - 1];
            let jump = places[usize::try_from(parent.jump_depth).unwrap()];
            let jump_depth = if jumps_over(parent, jump) {
                jump.jump_depth
            } else {
                parent.depth
            };
            places.push(TurnPlace { depth, jump_depth });
        }
        for target in [1_u64, 2, 77, 5_000, 9_999] {
            let mut at = 10_000_u64;
            let mut steps = 0;
            while at != target {
                let jump = places[usize::try_from(at).unwrap()].jump_depth;
                at = if jump >= target { jump } else { at - 1 };
                steps += 1;
            }
            assert!(steps <= 60, "{steps} steps to {target}");
        }
    }
}
