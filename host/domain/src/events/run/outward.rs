//! Messages to people outside: the events of a run that produce one, and its recipients.

use super::Run;
use super::end::{AGENT_FAILED, MESSAGE_TIMED_OUT};
use crate::agents::session::PendingAction;
use crate::events::event::{
    Event, OutboundMessageCause, OutboundMessageQueued, RunEnded, RunStarted, RunStepped, Source,
};
use crate::thread::cut_off;
use crate::thread::message::{Message, MessageId, Part, Role, text_of};
use crate::thread::turn::TurnEnd;
use crate::values::error_code::{LIMIT_REACHED, TIMED_OUT};
use crate::values::id::{ConnectorId, InputId, OperationId, OutboundMessageId, SessionId};
use crate::values::time::Timestamp;
use crate::work::connector::{Destination, Outbound, Recipient, ask};
use crate::work::operation::{Continuation, Operation};
use crate::work::step::Decision;
use std::sync::Arc;

/// Characters of an agent's reason for giving up that people see.
const REASON_CHARS_MAX: usize = 300;

/// A message to people outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outward {
    /// The agent's words.
    Words {
        /// The message in the thread.
        message: MessageId,
        /// True if the message was added by this event. An earlier one may have been reported
        /// before.
        is_new: bool,
        /// The words.
        text: String,
    },
    /// A question.
    Question {
        /// The id for the answer.
        question: OperationId,
        /// The question, as it is presented.
        asked: Outbound,
    },
    /// The turn has failed.
    Failure {
        /// The words.
        text: String,
    },
}

/// Returns an event's messages to people outside, in order. The run is as it was before the event.
#[must_use]
pub fn outward(run: &Run, event: &Event) -> Vec<Outward> {
    if run.started.compacts.is_some() {
        return Vec::new();
    }
    if let Some(step) = event.step() {
        return of_step(run, step);
    }
    match event {
        Event::OperationContinued(continuation) => of_continuation(continuation),
        Event::RunEnded(ended) => of_end(ended).into_iter().collect(),
        // The others are between the host and the agent, or in other streams.
        _ => Vec::new(),
    }
}

fn of_step(run: &Run, stepped: &RunStepped) -> Vec<Outward> {
    let said = stepped
        .said
        .iter()
        .filter(|said| said.role == Role::Assistant);
    let mut words: Vec<Message> = said.cloned().collect();
    if matches!(stepped.decision, Decision::Reply { .. }) {
        let all = run.messages.iter().map(Arc::as_ref);
        let reply = cut_off::reply(all.chain(&stepped.heard).chain(&stepped.said));
        words.retain(|said| reply.as_ref().is_none_or(|reply| reply.id != said.id));
        words.extend(reply);
    }
    let head = run.head();
    let words = words.into_iter().filter_map(|message| {
        let text = text_for_people(&message.parts);
        (!text.is_empty()).then_some(Outward::Words {
            message: message.id,
            is_new: message.id > head,
            text,
        })
    });
    words
        .chain(stepped.started.iter().filter_map(asked_by))
        .collect()
}

/// Returns the question with which an operation begins, if any.
fn asked_by(operation: &Operation) -> Option<Outward> {
    operation.question_at_start().as_ref().map(question)
}

fn of_continuation(continuation: &Continuation) -> Vec<Outward> {
    continuation.asked().iter().map(question).collect()
}

fn question(asked: &PendingAction) -> Outward {
    Outward::Question {
        question: asked.tool_call_id,
        asked: ask(asked.tool_call_id, &asked.action),
    }
}

/// Returns the message to people about a failed turn. A turn that somebody stopped produces no
/// message.
fn of_end(ended: &RunEnded) -> Option<Outward> {
    if ended.end != TurnEnd::Failed {
        return None;
    }
    let reason = ended.reason.as_deref().unwrap_or_default().trim();
    let text = match ended.code.as_deref() {
        Some(AGENT_FAILED) if !reason.is_empty() => {
            let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
            format!("Sorry, that did not work: {reason}")
        }
        Some(TIMED_OUT | MESSAGE_TIMED_OUT) => {
            "Sorry, that took too long, and I had to stop.".to_owned()
        }
        Some(LIMIT_REACHED) => {
            "Sorry, that took more than one answer may use, and I had to stop.".to_owned()
        }
        Some(_) | None => {
            "Sorry, something went wrong, and I could not answer. Please try again.".to_owned()
        }
    };
    Some(Outward::Failure { text })
}

/// The text of a message, with a note of its files, which a chat does not show.
fn text_for_people(parts: &[Part]) -> String {
    let mut text = text_of(parts).trim().to_owned();
    let is_file = |part: &&Part| matches!(part, Part::Blob { .. });
    let note = match parts.iter().filter(is_file).count() {
        0 => return text,
        1 => "[1 file is where the conversation is kept.]".to_owned(),
        files => format!("[{files} files are where the conversation is kept.]"),
    };
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(&note);
    text
}

impl Outward {
    /// Returns the message of a run to a chat; none if the chat does not receive it.
    #[must_use]
    pub fn queued(
        &self,
        recipient: &Recipient,
        of: &RunStarted,
        time: Timestamp,
    ) -> Option<OutboundMessageQueued> {
        let turn = OutboundMessageCause::Turn {
            session: of.session,
            run: of.run,
        };
        let (outbound, key, cause) = match (self, recipient.quiet) {
            (Self::Words { message, text, .. }, quiet) => {
                let heard = match quiet {
                    Some(quiet) => quiet.of(text)?,
                    None => text.clone(),
                };
                let key = format!("message:{}:{message}", of.run);
                (Outbound::text(&heard)?, key, turn)
            }
            (Self::Question { question, asked }, _) => {
                let cause = OutboundMessageCause::Question {
                    session: of.session,
                    run: of.run,
                    operation: *question,
                };
                (asked.clone(), format!("question:{question}"), cause)
            }
            // Nobody waits for the result of a heartbeat.
            (Self::Failure { .. }, Some(_)) => return None,
            (Self::Failure { text }, None) => {
                (Outbound::text(text)?, format!("failure:{}", of.run), turn)
            }
        };
        Some(OutboundMessageQueued::new(
            recipient,
            outbound,
            Cause { key, cause },
            time,
        ))
    }
}

/// The cause of an outbound message.
struct Cause {
    /// The text from which its id is derived.
    key: String,
    cause: OutboundMessageCause,
}

impl OutboundMessageQueued {
    fn new(recipient: &Recipient, outbound: Outbound, of: Cause, time: Timestamp) -> Self {
        let route = &recipient.route;
        let connector = ConnectorId::of_name(route.connector.as_str());
        Self {
            connector: route.connector.clone(),
            outbound_message: OutboundMessageId::mint(connector, &route.chat, &of.key, 0),
            chat: route.chat.clone(),
            text: outbound.text,
            choices: outbound.choices,
            without_buttons: outbound.without_buttons,
            cause: of.cause,
            time,
        }
    }

    /// The text for a person whose message was set aside; none if nobody waits for its result.
    #[must_use]
    pub fn of_dead(
        recipient: &Recipient,
        session: SessionId,
        input: InputId,
        time: Timestamp,
    ) -> Option<Self> {
        if recipient.quiet.is_some() {
            return None;
        }
        let text = "Sorry, I could not deal with your message. Whoever runs this can see it.";
        // An input may be set aside again, after somebody requeued it.
        let key = format!("dead:{input}:{}", time.0);
        let cause = OutboundMessageCause::Input { session, input };
        let outbound = Outbound::text(text)?;
        Some(Self::new(recipient, outbound, Cause { key, cause }, time))
    }
}

impl Source {
    /// Returns the recipient of a turn's results once the turn has claimed this input too, after
    /// those before it. None while the recipient is unknown.
    ///
    /// The last input from a chat decides, or else the last input of a trigger for a chat. The
    /// reply to a message over the API is sent to nobody else.
    #[must_use]
    pub fn directs(&self, before: Option<Destination>) -> Option<Destination> {
        match (self, before) {
            (Self::Connector { reply_to, .. }, _) => Some(Destination::Chat(Recipient {
                route: reply_to.clone(),
                is_awaited: true,
                quiet: None,
            })),
            // A person who wrote gets the answer, whatever else happens meanwhile.
            (Self::Trigger { .. }, Some(Destination::Chat(waiting))) if waiting.is_awaited => {
                Some(Destination::Chat(waiting))
            }
            (
                Self::Trigger {
                    reply_to: Some(route),
                    quiet,
                    ..
                },
                before,
            ) => {
                let was_loud = match before {
                    Some(Destination::Chat(recipient)) => recipient.quiet.is_none(),
                    Some(Destination::Nobody | Destination::Session | Destination::Caller(_))
                    | None => false,
                };
                Some(Destination::Chat(Recipient {
                    route: route.clone(),
                    is_awaited: false,
                    quiet: quiet.filter(|_| !was_loud),
                }))
            }
            (Self::Trigger { reply_to: None, .. }, before) => before,
            (_, Some(chat @ Destination::Chat(_))) => Some(chat),
            (
                Self::Dispatch {
                    reply_to: Some(caller),
                    ..
                },
                _,
            ) => Some(Destination::Caller(*caller)),
            (Self::Api | Self::Opening | Self::Dispatch { .. }, _) => Some(Destination::Nobody),
            (Self::LateReply { .. } | Self::Reminder { .. }, before) => {
                Some(before.unwrap_or(Destination::Session))
            }
        }
    }

    /// Returns the recipient of the results of a turn that claims these inputs.
    #[must_use]
    pub fn destination<'a>(sources: impl IntoIterator<Item = &'a Self>) -> Destination {
        sources
            .into_iter()
            .fold(None, |before, source| source.directs(before))
            .unwrap_or(Destination::Nobody)
    }
}

#[cfg(test)]
mod tests;
