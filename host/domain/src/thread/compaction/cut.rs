//! The cut of a thread: the turns to summarise, and those to keep word for word.

use super::{Mark, estimated_tokens};
use crate::thread::message::{Message, MessageId};
use crate::values::id::TurnId;

/// A turn of a thread, as the cut needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutTurn {
    /// The turn.
    pub turn: TurnId,
    /// Its first message.
    pub first: MessageId,
    /// Its last message.
    pub last: MessageId,
    /// Number of tokens, estimated.
    pub tokens: u64,
}

/// The place at which a thread is cut. It is between turns, so that no call is separated from its
/// result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The last turn that is summarised.
    pub through: CutTurn,
    /// The first turn that is kept; none if none is kept.
    pub first_kept: Option<CutTurn>,
    /// Tokens of the kept turns.
    pub kept_tokens: u64,
}

/// Returns the turns that a model sees of a thread, from their places and messages, oldest first.
/// Turns that are summaries, or have no messages, are left out.
#[must_use]
pub fn cut_turns(turns: &[(TurnId, MessageId, MessageId)], messages: &[Message]) -> Vec<CutTurn> {
    let place = |id: MessageId| messages.partition_point(|message| message.id < id);
    let mut cut_turns = Vec::new();
    for &(turn, first, last) in turns {
        let said = messages
            .get(place(first)..place(last + 1))
            .unwrap_or_default();
        if said.iter().any(|message| Mark::of(message).is_none()) {
            cut_turns.push(CutTurn {
                turn,
                first,
                last,
                tokens: estimated_tokens(said),
            });
        }
    }
    cut_turns
}

/// Cuts a thread. It keeps as many of the newest turns as have at most this many tokens together;
/// none if that is the whole thread. The newest turn is summarised too if it alone is larger.
#[must_use]
pub fn cut(cut_turns: &[CutTurn], kept_tokens_max: u64) -> Option<Cut> {
    let mut kept_tokens = 0_u64;
    let mut first_kept = cut_turns.len();
    for (place, cut_turn) in cut_turns.iter().enumerate().rev() {
        let with_it = kept_tokens.saturating_add(cut_turn.tokens);
        if with_it > kept_tokens_max {
            break;
        }
        (kept_tokens, first_kept) = (with_it, place);
    }
    let through = *cut_turns.get(first_kept.checked_sub(1)?)?;
    Some(Cut {
        through,
        first_kept: cut_turns.get(first_kept).copied(),
        kept_tokens,
    })
}
