//! The frames of a visitor's stream.

use crate::wire::{ChoiceView, Time, written};
use broker::{Frame, Show};
use bytes::Bytes;
use domain::connector::Choice;
use domain::event::{InputAccepted, OutboundMessageCause, OutboundMessageQueued, Source};
use domain::id::{InputId, OperationId, OutboundMessageId, SessionId};
use domain::message::text_of;
use domain::time::Timestamp;
use serde::Serialize;
use store::OutboundMessageRow;

/// A frame of a chat with a visitor.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub(crate) enum VisitorFrame<'a> {
    /// Comes first: the chat as it is now.
    Connected {
        /// The visitor's id.
        visitor_id: &'a str,
        /// The questions that wait for an answer. All others are closed.
        open_question_ids: Vec<OperationId>,
        /// True if a reply is in the making.
        typing: bool,
    },
    /// Something was said to the visitor.
    Message {
        /// Its id.
        outbound_message_id: OutboundMessageId,
        /// Its text, in Markdown.
        text: String,
        /// The time at which it was said, ISO 8601.
        time: Time,
    },
    /// An agent got what the visitor said, on this page or on another one of theirs.
    Said {
        /// Its id.
        input_id: InputId,
        /// The `message_id` of each message in it: what is said within a moment is one.
        message_ids: Vec<String>,
        /// Its text.
        text: String,
        /// The time at which it was taken, ISO 8601.
        time: Time,
    },
    /// The visitor is asked something.
    Question {
        /// Its id.
        outbound_message_id: OutboundMessageId,
        /// The question, by which `question_closed` names it.
        question_id: OperationId,
        /// Its text, in Markdown.
        text: String,
        /// The choices; none for a question that is answered in words, as a message.
        choices: Vec<ChoiceView>,
        /// True if it waits for an answer.
        is_open: bool,
        /// The time at which it was asked, ISO 8601.
        time: Time,
    },
    /// A question is not to be answered any more: it was answered, here or elsewhere, or is
    /// asked no longer.
    QuestionClosed {
        /// The question.
        question_id: OperationId,
    },
    /// A reply is in the making, or is not any more.
    Typing {
        /// True if one is.
        typing: bool,
    },
    /// A chunk of a reply in the making, where the operator lets those be shown. The whole
    /// follows as a message.
    Delta {
        /// The reply that it is a chunk of.
        reply_id: OperationId,
        /// The attempt at that reply: chunks of an earlier one are void.
        attempt: u32,
        /// Its place in the attempt.
        seq: u64,
        /// The text.
        text: String,
    },
    /// The whole text of a reply in the making up to now, in place of its chunks.
    DeltaSoFar {
        /// The reply.
        reply_id: OperationId,
        /// The attempt at that reply.
        attempt: u32,
        /// The place of the last chunk that is in it.
        seq: u64,
        /// The text.
        text: String,
    },
    /// All chunks of an attempt at a reply are void.
    DeltaDiscarded {
        /// The reply.
        reply_id: OperationId,
        /// The attempt.
        attempt: u32,
    },
    /// The stream starts over: the page's position is not one that this host has assigned, as
    /// after a restored backup. Its `id` replaces that position.
    Reset {
        /// The reason, for people.
        reason: &'a str,
    },
    /// The host ends the stream.
    Disconnected {
        /// The reason.
        reason: &'a str,
    },
}

/// Something that was said to a visitor.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisitorLine<'a> {
    position: u64,
    outbound_message: OutboundMessageId,
    text: &'a str,
    choices: &'a [Choice],
    cause: &'a OutboundMessageCause,
    time: Timestamp,
}

impl<'a> VisitorLine<'a> {
    /// Returns what is stored of an outbound message.
    pub(super) fn stored(row: &'a OutboundMessageRow) -> Self {
        Self {
            position: row.position,
            outbound_message: row.outbound_message,
            text: &row.text,
            choices: &row.choices,
            cause: &row.cause,
            time: row.queued,
        }
    }

    /// An outbound message that was queued just now, at a position.
    pub(super) fn queued(position: u64, queued: &'a OutboundMessageQueued) -> Self {
        Self {
            position,
            outbound_message: queued.outbound_message,
            text: &queued.text,
            choices: &queued.choices,
            cause: &queued.cause,
            time: queued.time,
        }
    }

    /// Returns the question that it is, with its session.
    pub(super) fn question(&self) -> Option<(OperationId, SessionId)> {
        match self.cause {
            OutboundMessageCause::Question {
                session, operation, ..
            } => Some((*operation, *session)),
            OutboundMessageCause::Turn { .. }
            | OutboundMessageCause::Input { .. }
            | OutboundMessageCause::Host { .. }
            | OutboundMessageCause::Test { .. } => None,
        }
    }

    /// Returns the frame, for a question with whether it waits for its answer.
    pub(super) fn frame(&self, is_open: bool) -> Bytes {
        let outbound_message_id = self.outbound_message;
        let text = self.text.to_owned();
        let time = Time(self.time);
        let said = match self.question() {
            None => VisitorFrame::Message {
                outbound_message_id,
                text,
                time,
            },
            Some((question_id, _)) => VisitorFrame::Question {
                outbound_message_id,
                question_id,
                text,
                choices: self.choices.iter().map(Into::into).collect(),
                is_open,
                time,
            },
        };
        said.placed(self.position)
    }
}

impl VisitorFrame<'_> {
    /// It as bytes, without a position.
    pub(super) fn bytes(&self) -> Bytes {
        written(None, self).into()
    }

    /// It as bytes, with the position to continue from.
    pub(super) fn placed(&self, position: u64) -> Bytes {
        written(Some(&position.to_string()), self).into()
    }
}

/// Returns the frame of what the visitor said, which an agent got at a position.
pub(super) fn own(position: u64, accepted: &InputAccepted) -> Bytes {
    let message_ids: &[String] = match &accepted.source {
        Source::Connector { messages, .. } => messages,
        Source::Api
        | Source::Trigger { .. }
        | Source::Opening
        | Source::Dispatch { .. }
        | Source::LateReply { .. }
        | Source::Reminder { .. } => &[],
    };
    let message = accepted.message.as_ref();
    let said = VisitorFrame::Said {
        input_id: accepted.input,
        message_ids: message_ids.to_vec(),
        text: message
            .map(|draft| text_of(&draft.parts))
            .unwrap_or_default(),
        time: Time(accepted.time),
    };
    said.placed(position)
}

/// Returns the frame of something ephemeral; none if visitors are not shown it.
pub(super) fn shown(frame: &Frame) -> Option<Bytes> {
    let reply_id = frame.operation;
    let attempt = frame.attempt;
    let seq = frame.seq;
    let shown = match &frame.show {
        Show::Text(text) => VisitorFrame::Delta {
            reply_id,
            attempt,
            seq,
            text: text.clone(),
        },
        Show::SoFar(text) => VisitorFrame::DeltaSoFar {
            reply_id,
            attempt,
            seq,
            text: text.concat(),
        },
        Show::Discarded => VisitorFrame::DeltaDiscarded { reply_id, attempt },
        // What an agent thinks, and which tools it calls, is not for people outside.
        Show::Thinking(_)
        | Show::CallStarted { .. }
        | Show::OwnCall { .. }
        | Show::Note(_)
        | Show::Performing { .. } => return None,
    };
    Some(shown.bytes())
}

/// The frame by which the stream starts over at a position.
pub(super) fn reset(position: u64) -> Bytes {
    let reason = "the host was restored from a backup, or is another one; the chat is shown again";
    VisitorFrame::Reset { reason }.placed(position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::id::RunId;
    use serde_json::{Value, json};
    use uuid::Uuid;

    fn queued(cause: OutboundMessageCause, choices: Vec<Choice>) -> OutboundMessageQueued {
        OutboundMessageQueued {
            connector: "site".parse().unwrap(),
            outbound_message: OutboundMessageId::mint(
                domain::id::ConnectorId::of_name("site"),
                "visitor",
                "cause",
                0,
            ),
            chat: "visitor".to_owned(),
            text: "One\nor two?".to_owned(),
            choices,
            without_buttons: None,
            cause,
            time: Timestamp(0),
        }
    }

    fn data(frame: &Bytes) -> Value {
        let text = std::str::from_utf8(frame).unwrap();
        let data = text.lines().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(data.unwrap()).unwrap()
    }

    #[test]
    fn a_message_and_a_question_have_the_position_to_continue_from() {
        let session = SessionId(Uuid::nil());
        let run = RunId(Uuid::nil());
        let message = queued(OutboundMessageCause::Turn { session, run }, Vec::new());
        let frame = VisitorLine::queued(7, &message).frame(false);
        assert!(frame.starts_with(b"id: 7\nevent: message\ndata: {"));
        assert_eq!(data(&frame)["text"], "One\nor two?");
        let question = OutboundMessageCause::Question {
            session,
            run,
            operation: OperationId::mint(run, 0, "a"),
        };
        let choices = vec![Choice {
            label: "One".to_owned(),
            value: "1".to_owned(),
        }];
        let question = queued(question, choices);
        let frame = VisitorLine::queued(8, &question).frame(true);
        assert!(frame.starts_with(b"id: 8\nevent: question\ndata: {"));
        let data = data(&frame);
        assert_eq!(
            (&data["choices"], &data["is_open"]),
            (&json!([{ "label": "One", "value": "1" }]), &json!(true))
        );
    }
}
