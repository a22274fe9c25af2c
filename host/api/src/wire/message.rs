//! Messages in public form.

use super::ContentDigest;
use domain::compaction::Mark;
use domain::cut_off::CutOff;
use domain::id::TurnId;
use domain::message::{Draft, Message, Part, Role, text_of};
use domain::speaker::Speaker;
use domain::thinking;
use serde::Serialize;

/// One message of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Message)]
pub(crate) struct MessageView {
    /// Its place in the thread, from 1; none while it has no place yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<u64>,
    /// The role of its author.
    pub(crate) role: Role,
    /// Its texts, joined by line breaks.
    pub(crate) text: String,
    /// All of its parts, in order. Absent where `text` is the only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<PartView>,
    /// The calls that the model made in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) calls: Vec<CallView>,
    /// The call that it answers, if it is the result of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answers: Option<AnswersView>,
    /// The origin of the message: `api`, `model:<name>`, `tool:<name>`, `agent:<path>`, `host`.
    pub(crate) origin: String,
    /// True if its content came from outside the user's and the operator's control.
    pub(crate) untrusted: bool,
    /// The one whose words it is, an object with its `kind`: `user` (`user_id`), `agent` (`agent`,
    /// and `response_id` of an answer that comes as a message), `trigger` (`trigger`), `connector`
    /// (`connector`, `chat`), `tool` (`tool`), `reminder`, `memory` or `import`. Absent of a
    /// model's reply and of the host's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) speaker: Option<Speaker>,
    /// The reason why it is not whole; absent if it is. `length`: the model reached the limit of
    /// its reply; `content_filter`: the provider withheld the rest; `refusal`: the model declined
    /// to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<CutOff>,
    /// The extent of the summary, if it is one of a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compaction: Option<CompactionView>,
}

/// The extent of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Compaction)]
pub(crate) struct CompactionView {
    /// The last turn that was summarised.
    pub(crate) summarized_through_turn_id: TurnId,
    /// The first turn that models see word for word; none when none before the summary is.
    pub(crate) first_kept_turn_id: Option<TurnId>,
    /// Tokens of the thread as a model saw it before.
    pub(crate) tokens_before: u64,
    /// The same after it, estimated.
    pub(crate) tokens_after: u64,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Part)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum PartView {
    /// Plain text, which stands in the message's `text`.
    Text {
        /// The number of its characters there, as Unicode code points. One line break more stands
        /// between two texts.
        length: usize,
    },
    /// Bytes kept outside the message.
    Blob {
        /// The digest under which they are kept.
        digest: ContentDigest,
        /// Their media type.
        media_type: String,
        /// The number of bytes.
        size: u64,
    },
    /// A call that the model made: see the message's `calls`.
    Call {
        /// Its index there.
        index: usize,
    },
    /// Something that only the provider understands, such as signed thinking.
    Opaque {
        /// The provider.
        provider: String,
        /// The thinking in it, as far as the provider shows it.
        #[serde(skip_serializing_if = "Option::is_none")]
        thinking: Option<String>,
    },
}

/// A call that the model made.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Call)]
pub(crate) struct CallView {
    /// Its index within the message, from 0.
    pub(crate) index: u32,
    /// The tool.
    pub(crate) name: String,
    /// The arguments as the model wrote them: not necessarily JSON.
    pub(crate) arguments: String,
}

/// The call that a message answers.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Answers)]
pub(crate) struct AnswersView {
    /// The message that made the call.
    pub(crate) message: u64,
    /// The call's index in it.
    pub(crate) index: u32,
    /// The tool.
    pub(crate) name: String,
    /// True if the call failed.
    pub(crate) failed: bool,
}

/// A message that has its place.
pub(crate) fn message(message: &Message) -> MessageView {
    let Message {
        id,
        role,
        parts,
        origin,
        untrusted,
        speaker: _,
        answers,
        marked_elsewhere: _,
        salt: _,
    } = message;
    let answers = answers.as_ref().map(|answers| AnswersView {
        message: answers.message,
        index: answers.index,
        name: answers.name.clone(),
        failed: answers.failed,
    });
    let calls = message.calls().map(|(index, _, name, arguments)| CallView {
        index,
        name: name.into(),
        arguments: arguments.into(),
    });
    MessageView {
        id: Some(*id),
        role: *role,
        text: message.text(),
        parts: part_views(parts),
        calls: calls.collect(),
        answers,
        origin: origin.clone(),
        untrusted: *untrusted,
        speaker: message.said_by(),
        stop: CutOff::of_parts(parts),
        compaction: Mark::of(message).as_ref().map(compaction),
    }
}

/// A message that has no place yet.
pub(super) fn draft(draft: &Draft) -> MessageView {
    MessageView {
        id: None,
        role: draft.role,
        text: text_of(&draft.parts),
        parts: part_views(&draft.parts),
        calls: Vec::new(),
        answers: None,
        origin: draft.origin.clone(),
        untrusted: draft.untrusted,
        speaker: draft.said_by(),
        stop: CutOff::of_parts(&draft.parts),
        compaction: None,
    }
}

fn compaction(mark: &Mark) -> CompactionView {
    CompactionView {
        summarized_through_turn_id: mark.summarized_through,
        first_kept_turn_id: mark.first_kept,
        tokens_before: mark.tokens_before,
        tokens_after: mark.tokens_after,
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Notice => "notice",
    }
}

fn part_views(parts: &[Part]) -> Vec<PartView> {
    if let [] | [Part::Text { .. }] = parts {
        return Vec::new();
    }
    let mut calls = 0..;
    parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => PartView::Text {
                length: text.chars().count(),
            },
            Part::Blob {
                digest,
                media_type,
                size,
            } => PartView::Blob {
                digest: ContentDigest(*digest),
                media_type: media_type.clone(),
                size: *size,
            },
            Part::Call { .. } => PartView::Call {
                index: calls.next().unwrap_or_default(),
            },
            Part::Opaque { provider, .. } => PartView::Opaque {
                provider: provider.clone(),
                thinking: thinking::of_part(part).map(str::to_owned),
            },
        })
        .collect()
}
