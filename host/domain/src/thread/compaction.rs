//! Compaction: a thread that fills its model's window gets a turn with a summary of its earlier
//! turns.
//!
//! The turn is made by a separate run in which no agent decides. Its one message is a notice with
//! the summary, together with a [`Mark`]. The mark names the summarised turns, and the first turn
//! that is kept unchanged. Nothing is removed from the tree. The summarised turns stay before the
//! new turn, unchanged. They can still be addressed, found, exported and forked, and a fork from
//! before the compaction sees the whole thread. Only a model's view of the whole thread begins with
//! the newest summary ([`shown`]).
//!
//! This module knows neither the owner of a turn nor the storage of threads.

mod cut;
mod material;
#[cfg(test)]
mod tests;

pub use cut::{Cut, CutTurn, cut, cut_turns};
pub(crate) use material::clipped;
pub use material::{bytes_for, fitting_messages, material};

use crate::access::user::UserId;
use crate::thread::message::{Message, MessageId, Part, Role};
use crate::thread::model::arrange;
use crate::values::id::{SessionId, TurnId};
use serde::{Deserialize, Serialize};

/// Percentage of a model's window at which a thread is due for compaction. It is measured by the
/// newest call of a turn.
pub const DUE_PERCENT: u64 = 90;
/// Tokens of turns that are kept unchanged.
pub const KEPT_TOKENS_MAX: u64 = 30_000;
/// The largest part of the window for these turns: a quarter.
pub const KEPT_PART: u64 = 4;
/// Tokens of a summary.
pub const SUMMARY_TOKENS_MAX: u64 = 8_192;
/// The largest part of the window for the summary: an eighth.
pub const SUMMARY_PART: u64 = 8;
/// The most automatic attempts at a compaction after one turn. After them, its session continues
/// uncompacted until the next turn.
pub const ATTEMPTS_MAX: usize = 2;
/// Bytes of text that count as one token if there is no exact count.
pub const TOKEN_BYTES: u64 = 4;
/// The estimate of tokens for a blob.
pub const BLOB_TOKENS: u64 = 1_000;
/// Tokens added for each message in addition to its content.
pub const MESSAGE_TOKENS: u64 = 4;
/// Origin of a compaction's message.
pub const ORIGIN: &str = "host:compaction";
/// Origin of a compaction's message that another program made, in an imported session.
pub const ORIGIN_IMPORTED: &str = "pi:compaction";
/// Text before a summary in a model's view.
pub const PREFACE: &str = "What was said before this point is summarised here. The newest turns may follow word for \
     word.";

/// The provider and the model of the part that contains a mark: no request is ever sent to them.
const MARKED_BY: (&str, &str) = ("agent-host", "compaction");

/// The task of a run that compacts its thread, decided when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The last turn that it summarises.
    pub summarized_through: TurnId,
    /// The last message of that.
    pub through_message: MessageId,
    /// The first turn that is kept unchanged; none if none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_kept: Option<TurnId>,
    /// Tokens of the thread in a model's latest view.
    pub tokens_before: u64,
    /// Estimated tokens of the kept turns.
    pub kept_tokens: u64,
    /// Tokens that the summary may have.
    pub summary_tokens_max: u32,
    /// True if any summarised content came from outside the user's and the operator's control.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// The user who requested it; none if it was automatic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<UserId>,
    /// The conversation that is summarised instead of this one, and from which the user returns.
    /// The thread itself is then left unchanged; the turn and the message above are of that
    /// conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Return>,
}

/// A conversation from which a user returns: one with another agent, to which the user had
/// switched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    /// Its session.
    pub session: SessionId,
    /// The definition of the other agent.
    pub agent: String,
    /// The first message since the switch.
    pub first_message: MessageId,
}

impl Return {
    /// Origin of the notice.
    pub const ORIGIN: &'static str = "host:return";

    /// Returns the text of the notice with the summary.
    #[must_use]
    pub fn notice(&self, summary: &str) -> String {
        format!(
            "The user was with the agent `{}` meanwhile (session {}), and is back. What came of \
             it:\n\n{summary}",
            self.agent, self.session
        )
    }
}

/// The models' view of a compacted thread: the newest summary, the kept messages, and all later
/// ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The message with the summary.
    pub summary: MessageId,
    /// The first message that is kept; the summary itself if none is kept.
    pub kept_from: MessageId,
}

/// Data in the message of a compaction besides its summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The last turn that was summarised.
    pub summarized_through: TurnId,
    /// The first turn that was kept unchanged; none if none was kept.
    pub first_kept: Option<TurnId>,
    /// Tokens of the thread in a model's view before it.
    pub tokens_before: u64,
    /// Estimated tokens of the thread in a model's view after it.
    pub tokens_after: u64,
}

impl Mark {
    /// The part of a message that contains it. It is sent to no provider, and only the host writes
    /// one.
    #[must_use]
    pub fn part(&self) -> Part {
        let (provider, model) = MARKED_BY;
        Part::Opaque {
            provider: provider.to_owned(),
            model: model.to_owned(),
            value: serde_json::json!(self),
        }
    }

    /// Returns the mark of a message; none if the message is not that of a compaction.
    #[must_use]
    pub fn of(message: &Message) -> Option<Self> {
        if message.role != Role::Notice
            || ![ORIGIN, ORIGIN_IMPORTED].contains(&message.origin.as_str())
        {
            return None;
        }
        message.parts.iter().find_map(|part| match part {
            Part::Opaque {
                provider,
                model,
                value,
            } if (provider.as_str(), model.as_str()) == MARKED_BY => Self::deserialize(value).ok(),
            Part::Opaque { .. } | Part::Text { .. } | Part::Blob { .. } | Part::Call { .. } => None,
        })
    }
}

/// Returns whether a call with this many tokens makes its thread due for compaction. It does if it
/// fills at least [`DUE_PERCENT`] of its model's window.
#[must_use]
pub fn is_due(tokens: u64, window: u64) -> bool {
    u128::from(tokens) * 100 >= u128::from(window) * u128::from(DUE_PERCENT)
}

/// Tokens of turns that are kept unchanged for a model with this window.
#[must_use]
pub fn kept_tokens_max(window: u64) -> u64 {
    KEPT_TOKENS_MAX.min(window / KEPT_PART)
}

/// The most tokens of a summary for a model with this window.
#[must_use]
pub fn summary_tokens_max(window: u64) -> u32 {
    u32::try_from(SUMMARY_TOKENS_MAX.min(window / SUMMARY_PART).max(1)).unwrap_or(u32::MAX)
}

/// Returns the estimated number of tokens of some messages, if there is no exact count.
#[must_use]
pub fn estimated_tokens<'m>(messages: impl IntoIterator<Item = &'m Message>) -> u64 {
    messages
        .into_iter()
        .map(|message| message.parts.iter().map(part_tokens).sum::<u64>() + MESSAGE_TOKENS)
        .sum()
}

fn part_tokens(part: &Part) -> u64 {
    let bytes = match part {
        Part::Text { text } => text.len(),
        Part::Call {
            name, arguments, ..
        } => name.len() + arguments.len(),
        Part::Opaque { value, .. } => value.to_string().len(),
        Part::Blob { .. } => return BLOB_TOKENS,
    };
    text_tokens(bytes)
}

/// Returns the estimated number of tokens of some parts of a message, if there is no exact count.
#[must_use]
pub fn parts_tokens(parts: &[Part]) -> u64 {
    parts.iter().map(part_tokens).sum()
}

/// Returns the estimated number of tokens of a text of this many bytes, if there is no exact count.
#[must_use]
pub fn text_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(TOKEN_BYTES)
}

/// Returns a model's view of a compacted thread: the summary, then the kept turns and the later
/// ones. Older summaries are part of the newest, and are not shown again.
#[must_use]
pub fn shown(summary: Message, kept: Vec<Message>) -> Vec<Message> {
    let mut first = summary;
    first.parts.retain(|part| matches!(part, Part::Text { .. }));
    first.parts.insert(0, Part::text(PREFACE));
    let kept = kept
        .into_iter()
        .filter(|message| Mark::of(message).is_none())
        .collect();
    // Arranged separately: a summary's place is after the kept messages, and results are moved to
    // their calls by their places.
    std::iter::once(first).chain(arrange(kept)).collect()
}
