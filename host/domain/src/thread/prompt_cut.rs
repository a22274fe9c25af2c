//! The recorded cut of a run's prompts: when a turn's tool results outgrow its model's window,
//! later prompts omit the oldest of them.
//!
//! The thread loses nothing. The cut names what the run's models no longer see. It is recorded
//! before the next model call, and applies to every later prompt of the run for the same model.
//! [`extended`] chooses what to omit, [`PromptCut::apply`] omits it. Calls are never separated from
//! their results: both go by the place of the call.
//!
//! This module requests no summaries, and does not know its run.

#[cfg(test)]
mod tests;

use crate::thread::compaction::{Mark, TOKEN_BYTES, clipped, estimated_tokens, text_tokens};
use crate::thread::message::{Draft, Message, MessageId, Part, Role, text_of};
use crate::values::digest::Salt;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Percentage of a model's window that a prompt may fill after a cut. It is well below the
/// percentage that triggers a cut, so that the next calls share the same beginning.
pub const TARGET_PERCENT: u64 = 60;
/// The model's newest replies that stay word for word, each with the results of its calls.
pub const EXCHANGES_KEPT: usize = 2;
/// Tokens from which a result is replaced by a stub.
pub const STUB_TOKENS_MIN: u64 = 250;
/// Bytes of a result that its stub shows, from its beginning and its end.
const STUB_BYTES_MAX: usize = 320;
/// The same for a message of the user.
const STUB_OF_WORDS_BYTES_MAX: usize = 2_000;
/// The most tokens of the notice about omitted messages, without its summary.
const NOTICE_TOKENS: u64 = 50;
/// The least room for a summary, in tokens, even if the omitted content is hardly longer. The
/// prompt has to become shorter all the same.
const SUMMARY_TOKENS_MIN: u64 = 64;
/// Origin of that notice.
pub const ORIGIN: &str = "host:cut";

/// The part of a conversation that the models of a run no longer see, or see shortened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PromptCut {
    /// The results of calls, and messages of the user, that are replaced by stubs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stubs: BTreeSet<MessageId>,
    /// The last omitted message, together with all before it except the user's; 0 for none. A
    /// result is omitted with its call, wherever it is.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub left_out_through: MessageId,
    /// A model's summary of the omitted messages, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// True if any summarised content came from outside the user's and the operator's control.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// Estimated tokens of the prompt before this cut.
    pub tokens_before: u64,
    /// Estimated tokens of the prompt after this cut.
    pub tokens_after: u64,
}

/// The token limits of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The most tokens after a cut.
    pub target: u64,
    /// The most tokens that fit.
    pub most: u64,
    /// Tokens of the rest of the prompt.
    pub around: u64,
    /// Tokens of a summary of the omitted messages.
    pub summary: u64,
}

impl Room {
    /// Returns the room for messages in a model's window, after a reply and this many other tokens
    /// of the prompt. A reply counts as at most half of the window.
    #[must_use]
    pub fn of(window: u64, reply: u64, around: u64) -> Self {
        let most = window.saturating_sub(reply.min(window / 2));
        Self {
            target: (window / 100).saturating_mul(TARGET_PERCENT).min(most),
            most,
            around,
            summary: u64::from(crate::thread::compaction::summary_tokens_max(window)),
        }
    }

    /// Returns the room after a model refused a prompt of this many estimated tokens: half of them.
    #[must_use]
    pub fn after_refusal(self, refused: u64) -> Self {
        let most = self.most.min(refused / 2);
        Self {
            target: self.target.min(most),
            most,
            summary: self.summary.min(most / 4),
            ..self
        }
    }
}

impl PromptCut {
    /// Returns whether it shows less than another.
    #[must_use]
    pub fn goes_beyond(&self, former: &Self) -> bool {
        self.left_out_through > former.left_out_through || !self.stubs.is_subset(&former.stubs)
    }

    /// Returns the visible conversation: without the omitted messages, with a notice in their
    /// place, and with stubs. The messages are in the order of their places.
    #[must_use]
    pub fn apply(&self, messages: Vec<Message>) -> Vec<Message> {
        let mut shown = Vec::with_capacity(messages.len());
        let mut notice_at = None;
        let mut left_out = 0_u64;
        for message in messages {
            if self.leaves_out(&message) {
                left_out += 1;
                continue;
            }
            if notice_at.is_none() && message.id > self.left_out_through {
                notice_at = Some(shown.len());
            }
            shown.push(if self.stubs.contains(&message.id) {
                stub(&message)
            } else {
                message
            });
        }
        if left_out > 0 {
            let at = notice_at.unwrap_or(shown.len());
            shown.insert(at, self.notice(left_out));
        }
        shown
    }

    /// Returns the estimated tokens by which it shortens a conversation.
    #[must_use]
    pub fn saved_tokens<'m>(&self, messages: impl IntoIterator<Item = &'m Message>) -> u64 {
        let mut saved = 0_u64;
        let mut left_out = 0_u64;
        for message in messages {
            if self.leaves_out(message) {
                left_out += 1;
                saved += tokens(message);
            } else if self.stubs.contains(&message.id) {
                saved += tokens(message).saturating_sub(tokens(&stub(message)));
            }
        }
        let reported = (left_out > 0).then(|| tokens(&self.notice(left_out)));
        saved.saturating_sub(reported.unwrap_or_default())
    }

    /// Returns the messages that this cut omits and the former does not. They are summarised
    /// together with the former summary.
    #[must_use]
    pub fn newly_left_out(&self, former: &Self, messages: &[Message]) -> Vec<Message> {
        messages
            .iter()
            .filter(|message| self.leaves_out(message) && !former.leaves_out(message))
            .cloned()
            .collect()
    }

    /// Returns the room in tokens for a summary of the omitted messages. With it the prompt is no
    /// longer than [`Self::tokens_after`].
    #[must_use]
    pub fn summary_room(&self, messages: Vec<Message>, room: Room) -> u64 {
        let bare = Self {
            summary: None,
            ..self.clone()
        };
        let tokens = room.around + estimated_tokens(&bare.apply(messages));
        self.tokens_after.saturating_sub(tokens).min(room.summary)
    }

    /// Returns it with a summary of all omitted messages, cut to the available room. Without a
    /// text, the present summary stays.
    #[must_use]
    pub fn summarised(mut self, text: &str, summary_tokens_max: u64) -> Self {
        let bytes_max = usize::try_from(summary_tokens_max.saturating_mul(TOKEN_BYTES));
        let text = clipped(text.trim(), bytes_max.unwrap_or(usize::MAX));
        if !text.is_empty() {
            self.summary = Some(text);
        }
        self
    }

    fn leaves_out(&self, message: &Message) -> bool {
        place(message) <= self.left_out_through && !stays(message)
    }

    fn notice(&self, left_out: u64) -> Message {
        let messages = if left_out == 1 { "message" } else { "messages" };
        let mut text = format!(
            "{left_out} earlier {messages} of this conversation are not shown here, because there \
             is no room for them."
        );
        match &self.summary {
            Some(summary) => {
                text.push_str(" This is a summary of them, or of the oldest of them:\n\n");
                text.push_str(summary);
            }
            None => text.push_str(" Call a tool again if you need a result of it once more."),
        }
        let mut draft = Draft::text(Role::Notice, ORIGIN, text);
        draft.untrusted = self.untrusted && self.summary.is_some();
        draft.at(self.left_out_through, Salt::default())
    }
}

/// Returns the place by which a message is cut: that of its call for a result, otherwise its own.
fn place(message: &Message) -> MessageId {
    message
        .answers
        .as_ref()
        .map_or(message.id, |answers| answers.message)
}

/// Returns whether a message is never omitted: the user's messages, and the summary of a
/// compaction.
fn stays(message: &Message) -> bool {
    message.role == Role::User || Mark::of(message).is_some()
}

/// Returns a shortened result or message of the user: its beginning and end, its size, and the
/// place of the whole.
fn stub(message: &Message) -> Message {
    let text = text_of(&message.parts);
    let mut whole = Vec::new();
    let mut bytes = text.len() as u64;
    for part in &message.parts {
        if let Part::Blob {
            digest,
            media_type,
            size,
        } = part
        {
            whole.push(format!(
                "{media_type} of {size} bytes, {}",
                digest.reference()
            ));
            bytes = bytes.max(*size);
        }
    }
    let kept = if whole.is_empty() {
        format!("the whole is message {} of the conversation", message.id)
    } else {
        format!("the whole is kept: {}", whole.join("; "))
    };
    let said = if message.answers.is_some() {
        let shown = clipped(&text, STUB_BYTES_MAX);
        format!(
            "[This result of {bytes} bytes is cut here to make room; {kept}. Call the tool again \
             if you need it once more.]\n{shown}"
        )
    } else {
        let shown = clipped(&text, STUB_OF_WORDS_BYTES_MAX);
        format!(
            "[This message of {bytes} bytes is too long to be shown whole, and is cut here; {kept}. \
             If the rest matters, say so and ask for it in parts.]\n{shown}"
        )
    };
    Message {
        parts: vec![Part::text(said)],
        ..message.clone()
    }
}

/// Estimated tokens of one message.
fn tokens(message: &Message) -> u64 {
    estimated_tokens([message])
}

/// The state of a choice: the cut so far, and the resulting prompt.
struct Choice<'m> {
    cut: PromptCut,
    /// The visible messages so far.
    shown: Vec<&'m Message>,
    total: u64,
    /// Tokens of the notice so far.
    noticed: u64,
    /// The place of the oldest reply that stays word for word.
    kept_from: MessageId,
}

/// Returns a cut that shows less than a former one, so that the conversation fits into its room. It
/// never makes the prompt longer.
///
/// Large results become stubs first, oldest first. If that is not enough, whole exchanges are
/// omitted, oldest first. The newest [`EXCHANGES_KEPT`] stay, and so do the user's messages. As a
/// last resort, results in the newest exchanges become stubs too. The newest result of all and the
/// user's messages are last in this order. The cut may still be insufficient: see
/// [`PromptCut::tokens_after`].
#[must_use]
pub fn extended(former: &PromptCut, messages: &[Message], room: Room) -> PromptCut {
    let shown: Vec<&Message> = messages
        .iter()
        .filter(|message| !former.leaves_out(message))
        .collect();
    let before = room.around + estimated_tokens(&former.apply(messages.to_vec()));
    let noticed = match messages.len() - shown.len() {
        0 => 0,
        left_out => tokens(&former.notice(left_out as u64)),
    };
    let replies = shown
        .iter()
        .rev()
        .filter(|message| message.role == Role::Assistant);
    let mut choice = Choice {
        cut: PromptCut {
            tokens_before: before,
            ..former.clone()
        },
        kept_from: replies
            .map(|message| message.id)
            .nth(EXCHANGES_KEPT - 1)
            .unwrap_or_default(),
        shown,
        total: before,
        noticed,
    };
    choice.stub(room.target, |choice, message| {
        message.answers.is_some() && place(message) < choice.kept_from
    });
    choice.leave_out(room);
    let newest = choice
        .shown
        .iter()
        .rev()
        .find(|message| message.answers.is_some())
        .map_or(0, |message| message.id);
    choice.stub(room.most, |choice, message| {
        message.answers.is_some() && message.id != newest && !choice.cut.leaves_out(message)
    });
    // A single message of the user, or a single result, may exceed the whole room.
    choice.stub(room.most, |choice, message| {
        let is_said = message.role == Role::User || message.answers.is_some();
        is_said && !choice.cut.leaves_out(message)
    });
    let untrusted = messages
        .iter()
        .any(|message| message.untrusted && choice.cut.leaves_out(message));
    PromptCut {
        untrusted,
        tokens_after: choice.total,
        ..choice.cut
    }
}

/// The tokens of some messages.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// Their tokens without the cut.
    whole: u64,
    /// Their tokens with the cut.
    shown: u64,
}

impl Choice<'_> {
    /// Replaces large messages by stubs, oldest first, until the prompt has at most this many
    /// tokens.
    fn stub(&mut self, most: u64, may: impl Fn(&Self, &Message) -> bool) {
        for message in self.shown.clone() {
            if self.total <= most {
                return;
            }
            let whole = tokens(message);
            if whole < STUB_TOKENS_MIN
                || self.cut.stubs.contains(&message.id)
                || !may(&*self, message)
            {
                continue;
            }
            let saved = whole.saturating_sub(tokens(&stub(message)));
            if saved > 0 {
                self.cut.stubs.insert(message.id);
                self.total = self.total.saturating_sub(saved);
            }
        }
    }

    /// Omits whole exchanges, oldest first, until the prompt fits its token budget. An exchange
    /// shorter than the notice that would replace it stays.
    fn leave_out(&mut self, room: Room) {
        if self.total <= room.target {
            return;
        }
        let mut at_place: BTreeMap<MessageId, Cost> = BTreeMap::new();
        for message in self.shown.iter().filter(|message| !stays(message)) {
            let cost = at_place.entry(place(message)).or_default();
            cost.whole += tokens(message);
            cost.shown += if self.cut.stubs.contains(&message.id) {
                tokens(&stub(message))
            } else {
                tokens(message)
            };
        }
        let until = self
            .kept_from
            .min(self.first_open().unwrap_or(MessageId::MAX));
        let mut saved = Cost::default();
        let mut through = self.cut.left_out_through;
        for (place, cost) in at_place.range(..until) {
            if self.total_without(saved, room) <= room.target {
                break;
            }
            saved.whole += cost.whole;
            saved.shown += cost.shown;
            through = *place;
        }
        let total = self.total_without(saved, room);
        if total < self.total {
            self.cut.left_out_through = through;
            self.total = total;
        }
    }

    /// Returns the prompt's tokens if more is omitted: with a notice in place of the present one,
    /// and the full room for a summary. That is half of the summarised content, including the
    /// former summary. It is less if the prompt would not become shorter.
    fn total_without(&self, saved: Cost, room: Room) -> u64 {
        let gone = self.noticed.saturating_add(saved.shown);
        let bare = self
            .total
            .saturating_add(NOTICE_TOKENS)
            .saturating_sub(gone);
        let former = text_tokens(self.cut.summary.as_ref().map_or(0, String::len));
        let worth = (saved.whole / 2)
            .max(SUMMARY_TOKENS_MIN)
            .saturating_add(former);
        let gained = self.total.saturating_sub(bare.saturating_add(1));
        // Without a new summary the former one stays.
        bare.saturating_add(room.summary.min(worth).min(gained).max(former))
    }

    /// Returns the place of the first reply with a call without a result. It stays: a later result
    /// would be omitted with it.
    fn first_open(&self) -> Option<MessageId> {
        let answered: BTreeSet<(MessageId, u32)> = self
            .shown
            .iter()
            .filter_map(|message| message.answers.as_ref())
            .map(|answers| (answers.message, answers.index))
            .collect();
        self.shown
            .iter()
            .find(|message| {
                message
                    .calls()
                    .any(|(index, ..)| !answered.contains(&(message.id, index)))
            })
            .map(|message| message.id)
    }
}
