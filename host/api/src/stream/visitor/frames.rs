//! The frames of a visitor's stream.

use crate::wire::{ChoiceView, VisitorFrame};
use broker::{Frame, Show};
use bytes::Bytes;
use domain::connector::Choice;
use domain::event::{DeliveryCause, DeliveryQueued, InputAccepted, Source};
use domain::id::{DeliveryId, OperationId, SessionId};
use domain::message::text_of;
use domain::time::Timestamp;
use serde_json::{Value, json};
use store::DeliveryRow;

/// Something that was said to a visitor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said<'a> {
    position: u64,
    delivery: DeliveryId,
    text: &'a str,
    choices: &'a [Choice],
    cause: &'a DeliveryCause,
    time: Timestamp,
}

impl<'a> Said<'a> {
    /// Returns what is stored of a delivery.
    pub(super) fn stored(row: &'a DeliveryRow) -> Self {
        Self {
            position: row.position,
            delivery: row.delivery,
            text: &row.text,
            choices: &row.choices,
            cause: &row.cause,
            time: row.queued,
        }
    }

    /// A delivery that was queued just now, at a position.
    pub(super) fn queued(position: u64, queued: &'a DeliveryQueued) -> Self {
        Self {
            position,
            delivery: queued.delivery,
            text: &queued.text,
            choices: &queued.choices,
            cause: &queued.cause,
            time: queued.time,
        }
    }

    /// Returns the question that it is, with its session.
    pub(super) fn question(&self) -> Option<(OperationId, SessionId)> {
        match self.cause {
            DeliveryCause::Question {
                session, operation, ..
            } => Some((*operation, *session)),
            DeliveryCause::Turn { .. }
            | DeliveryCause::Input { .. }
            | DeliveryCause::Host { .. }
            | DeliveryCause::Test { .. } => None,
        }
    }

    /// Returns the frame, for a question with whether it waits for its answer.
    pub(super) fn frame(&self, is_open: bool) -> Bytes {
        let said = json!({
            "delivery_id": self.delivery, "text": self.text, "time": self.time.to_string(),
        });
        let Some((question, _)) = self.question() else {
            return written(Some(self.position), VisitorFrame::VisitorMessage, &said);
        };
        let choices: Vec<ChoiceView> = self.choices.iter().map(choice).collect();
        let asked = json!({
            "delivery_id": self.delivery, "question_id": question, "text": self.text,
            "choices": choices, "is_open": is_open, "time": self.time.to_string(),
        });
        written(Some(self.position), VisitorFrame::VisitorQuestion, &asked)
    }
}

/// Returns the frame of what the visitor said, which an agent got at a position.
pub(super) fn own(position: u64, accepted: &InputAccepted) -> Bytes {
    let ids: &[String] = match &accepted.source {
        Source::Connector { messages, .. } => messages,
        Source::Api
        | Source::Trigger { .. }
        | Source::Opening
        | Source::Dispatch { .. }
        | Source::LateReply { .. }
        | Source::Reminder { .. } => &[],
    };
    let message = accepted.message.as_ref();
    let text = message.map(|draft| text_of(&draft.parts));
    let data = json!({
        "input_id": accepted.input, "message_ids": ids, "text": text.unwrap_or_default(),
        "time": accepted.time.to_string(),
    });
    written(Some(position), VisitorFrame::VisitorWords, &data)
}

/// The first frame.
pub(super) fn connected(visitor: &str, open: &[OperationId], typing: bool) -> Bytes {
    let data = json!({ "visitor_id": visitor, "open_question_ids": open, "typing": typing });
    written(None, VisitorFrame::VisitorConnected, &data)
}

/// The frame of a question that is asked no longer.
pub(super) fn question_closed(question: OperationId) -> Bytes {
    let data = json!({ "question_id": question });
    written(None, VisitorFrame::VisitorQuestionClosed, &data)
}

/// The frame that says whether a reply is in the making.
pub(super) fn typing(typing: bool) -> Bytes {
    let data = json!({ "typing": typing });
    written(None, VisitorFrame::VisitorTyping, &data)
}

/// Returns the frame of something ephemeral; none if visitors are not shown it.
pub(super) fn shown(frame: &Frame) -> Option<Bytes> {
    let piece = |text: &str| {
        json!({
            "reply_id": frame.operation, "attempt": frame.attempt, "seq": frame.seq, "text": text,
        })
    };
    let (name, data) = match &frame.show {
        Show::Text(text) => (VisitorFrame::VisitorDelta, piece(text)),
        Show::SoFar(text) => (VisitorFrame::VisitorDeltaSoFar, piece(&text.concat())),
        Show::Discarded => {
            let data = json!({ "reply_id": frame.operation, "attempt": frame.attempt });
            (VisitorFrame::VisitorDeltaDiscarded, data)
        }
        // What an agent thinks, and which tools it calls, is not for people outside.
        Show::Thinking(_)
        | Show::CallStarted { .. }
        | Show::OwnCall { .. }
        | Show::Note(_)
        | Show::Performing { .. } => return None,
    };
    Some(written(None, name, &data))
}

/// The frame by which the stream starts over at a position.
pub(super) fn reset(position: u64) -> Bytes {
    let reason = "the host was restored from a backup, or is another one; the chat is shown again";
    let data = json!({ "reason": reason });
    written(Some(position), VisitorFrame::VisitorReset, &data)
}

/// The frame with the reason why the stream ends.
pub(super) fn disconnected(reason: &str) -> Bytes {
    let data = json!({ "reason": reason });
    written(None, VisitorFrame::VisitorDisconnected, &data)
}

/// JSON has no line breaks of its own, so data is one line.
fn written(position: Option<u64>, name: VisitorFrame, data: &Value) -> Bytes {
    let id = position.map_or_else(String::new, |position| format!("id: {position}\n"));
    Bytes::from(format!("{id}event: {}\ndata: {data}\n\n", name.as_str()))
}

fn choice(choice: &Choice) -> ChoiceView {
    ChoiceView {
        label: choice.label.clone(),
        value: choice.value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::id::RunId;
    use uuid::Uuid;

    fn queued(cause: DeliveryCause, choices: Vec<Choice>) -> DeliveryQueued {
        DeliveryQueued {
            connector: "site".parse().unwrap(),
            delivery: DeliveryId::mint(
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
        let message = queued(DeliveryCause::Turn { session, run }, Vec::new());
        let frame = Said::queued(7, &message).frame(false);
        assert!(frame.starts_with(b"id: 7\nevent: message\ndata: {"));
        assert_eq!(data(&frame)["text"], "One\nor two?");
        let question = DeliveryCause::Question {
            session,
            run,
            operation: OperationId::mint(run, 0, "a"),
        };
        let choices = vec![Choice {
            label: "One".to_owned(),
            value: "1".to_owned(),
        }];
        let question = queued(question, choices);
        let frame = Said::queued(8, &question).frame(true);
        assert!(frame.starts_with(b"id: 8\nevent: question\ndata: {"));
        let data = data(&frame);
        assert_eq!(
            (&data["choices"], &data["is_open"]),
            (&json!([{ "label": "One", "value": "1" }]), &json!(true))
        );
    }
}
