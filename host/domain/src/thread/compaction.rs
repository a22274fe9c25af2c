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

use crate::access::user::UserId;
use crate::thread::message::{Message, MessageId, Part, Role};
use crate::thread::model::arrange;
use crate::thread::speaker::do_several_speak;
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
            _ => None,
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

// The cut of a thread: the turns to summarise, and those to keep word for word.

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

// The input for a model's summary: a conversation as plain text, shortened to fit the model's
// window.
//
// It is text and not the conversation itself. So the model does not continue it, and needs none of
// the conversation's tools.

/// Bytes of one part of a conversation. A longer one loses its middle.
const CHUNK_BYTES_MAX: [usize; 3] = [4_000, 1_000, 200];
/// The largest fraction of the room for a former summary: a half.
const FORMER_PART: usize = 2;
/// The least room in bytes, for any window.
const ROOM_BYTES_MIN: usize = 1_024;
/// Tokens left for the text around the conversation.
const AROUND_TOKENS: u64 = 512;

/// Returns the bytes of material that fit into a model's window together with a summary of this
/// many tokens. A quarter is left free, because bytes are only an estimate of tokens.
#[must_use]
pub fn bytes_for(window: u64, summary_tokens_max: u32) -> usize {
    let tokens = window
        .saturating_sub(u64::from(summary_tokens_max))
        .saturating_sub(AROUND_TOKENS);
    usize::try_from(tokens.saturating_mul(TOKEN_BYTES) / 4 * 3)
        .unwrap_or(usize::MAX)
        .max(ROOM_BYTES_MIN)
}

/// Returns a former summary and the conversation since, as text of at most `bytes_max` bytes. If it
/// is longer, long parts lose their middle first. If that is not enough, the oldest part is left
/// out, and the text says so.
#[must_use]
pub fn material(former: Option<&str>, messages: &[Message], bytes_max: usize) -> String {
    let mut text = String::new();
    if let Some(former) = former {
        let room = (bytes_max / FORMER_PART).saturating_sub(FORMER.0.len() + FORMER.1.len());
        let former = clipped(&without_ends(former), room);
        text = format!("{}{former}{}", FORMER.0, FORMER.1);
    }
    let room = bytes_max.saturating_sub(text.len() + SAID.0.len() + SAID.1.len() + LEFT_OUT_BYTES);
    let names_users = do_several_speak(messages);
    let mut said = Vec::new();
    for chunk_bytes_max in CHUNK_BYTES_MAX {
        said = messages
            .iter()
            .flat_map(|message| lines(message, names_users, chunk_bytes_max))
            .collect();
        if bytes(&said) <= room {
            break;
        }
    }
    let mut left_out = 0;
    let mut too_many = bytes(&said).saturating_sub(room);
    for line in &said {
        if too_many == 0 {
            break;
        }
        too_many = too_many.saturating_sub(line.len() + 1);
        left_out += 1;
    }
    text.push_str(SAID.0);
    if left_out > 0 {
        text.push_str(&format!("[{left_out} pieces before this are left out]\n"));
    }
    for line in said.iter().skip(left_out) {
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(SAID.1);
    text
}

/// Returns how many of some messages, from the first on, fit into at most `bytes_max` bytes of
/// material. None of them is omitted or shortened more than usual. At least one, if there are any.
#[must_use]
pub fn fitting_messages(messages: &[Message], bytes_max: usize) -> usize {
    let [chunk_bytes_max, ..] = CHUNK_BYTES_MAX;
    let room = bytes_max.saturating_sub(SAID.0.len() + SAID.1.len() + LEFT_OUT_BYTES);
    let names_users = do_several_speak(messages);
    let mut used = 0;
    let fitting = messages.iter().take_while(|message| {
        let said: Vec<String> = lines(message, names_users, chunk_bytes_max).collect();
        used += bytes(&said);
        used <= room
    });
    fitting.count().max(1).min(messages.len())
}

/// Around a former summary.
const FORMER: (&str, &str) = ("<former-summary>\n", "\n</former-summary>\n\n");
/// Markers around the conversation.
const SAID: (&str, &str) = ("<conversation>\n", "</conversation>");
/// Bytes of the line about omitted text.
const LEFT_OUT_BYTES: usize = 64;

fn bytes(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

/// A message, with one line for each of its parts. Further lines of a part are indented, so that
/// they do not look like another speaker's.
fn lines(
    message: &Message,
    names_users: bool,
    chunk_bytes_max: usize,
) -> impl Iterator<Item = String> {
    let who = match (message.role, &message.answers) {
        (Role::User, _) => match message.said_by() {
            Some(speaker) if names_users || !speaker.is_user() => speaker.label(),
            _ => "User".to_owned(),
        },
        (Role::Assistant, _) => "Assistant".to_owned(),
        (Role::Notice, _) => "Notice".to_owned(),
        (Role::Tool, Some(answers)) if answers.failed => format!("Failure of {}", answers.name),
        (Role::Tool, Some(answers)) => format!("Result of {}", answers.name),
        (Role::Tool, None) => "Result".to_owned(),
    };
    let who = match (message.role, message.untrusted) {
        (Role::User | Role::Tool | Role::Notice, true) => format!("{who} (untrusted)"),
        _ => who,
    };
    let cut_turn = move |text: &str| {
        let indented = without_ends(text.trim_end()).replace('\n', "\n  ");
        clipped(&indented, chunk_bytes_max)
    };
    message.parts.iter().filter_map(move |part| match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(format!("{who}: {}", cut_turn(text))),
        Part::Call {
            name, arguments, ..
        } => Some(format!(
            "{who} calls {}: {}",
            cut_turn(name),
            cut_turn(arguments)
        )),
        Part::Blob {
            media_type, size, ..
        } => Some(format!("{who}: [{media_type}, {size} bytes]")),
        Part::Opaque { .. } => None,
    })
}

/// A text that cannot close the tag of the conversation or of the former summary.
fn without_ends(text: &str) -> String {
    text.replace("</conversation", "< /conversation")
        .replace("</former-summary", "< /former-summary")
}

/// A text of at most so many bytes: head and tail of a longer one.
pub(crate) fn clipped(text: &str, bytes_max: usize) -> String {
    const BETWEEN: &str = " […] ";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let side = bytes_max.saturating_sub(BETWEEN.len()) / 2;
    let head = (0..=side)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default();
    let tail = (text.len() - side..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let kept = format!(
        "{}{BETWEEN}{}",
        text.get(..head).unwrap_or_default(),
        text.get(tail..).unwrap_or_default()
    );
    if kept.len() <= bytes_max {
        kept
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests;
