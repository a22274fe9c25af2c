//! Between the host and a trigger: the trigger event there, messages and state back.

use crate::bindings::agent::agent_host::plugin::types::Part;
use crate::bindings::trigger::exports::agent_host::plugin::trigger;
use crate::convert::{Read, Reader, check_count, check_length, same, unacceptable};
use crate::log::LogLine;
use crate::outcome::{Decided, Outcome};
use domain::digest::Digest;
use domain::operation::CallUsage;
use domain::time::Timestamp;
use domain::trigger::{
    ChangeKind, FileChange, FileChanges, HostEvent, KEY_OF_MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX,
    MESSAGES_MAX, STATE_BYTES_MAX, TriggerEvent, TriggerName, TriggerState, TriggerTargetName,
    WebhookCall,
};
use serde_json::Value;

/// Bytes of all messages of one trigger run.
const MESSAGES_BYTES_MAX: usize = 1 << 20;

/// Returns what a trigger is told beside the trigger event.
pub(crate) fn guest_context(call: &FireCall<'_>) -> trigger::Context {
    trigger::Context {
        trigger: call.trigger.to_string(),
        now_ms: call.now.0,
        configuration: call.configuration.to_string(),
        message: call.message.map(str::to_owned),
    }
}

/// Returns what it kept.
pub(crate) fn guest_state(state: &TriggerState) -> trigger::State {
    trigger::State {
        format: state.format,
        bytes: state.bytes.clone(),
    }
}

/// Returns a trigger event as a trigger hears it.
pub(crate) fn guest_trigger_event(trigger_event: &TriggerEvent) -> trigger::TriggerEvent {
    match trigger_event {
        TriggerEvent::Due { due, missed } => trigger::TriggerEvent::Due(trigger::Due {
            due_ms: due.0,
            missed: *missed,
        }),
        TriggerEvent::Heartbeat { due, checklist } => {
            trigger::TriggerEvent::Heartbeat(trigger::Heartbeat {
                due_ms: due.0,
                checklist: checklist.clone(),
            })
        }
        TriggerEvent::Webhook(call) => trigger::TriggerEvent::Webhook(guest_webhook(call)),
        TriggerEvent::Files(changes) => trigger::TriggerEvent::Files(guest_files(changes)),
        TriggerEvent::Event(event) => trigger::TriggerEvent::Event(guest_event(event)),
    }
}

fn guest_webhook(call: &WebhookCall) -> trigger::Webhook {
    trigger::Webhook {
        call_id: call.call_id.clone(),
        path: call.path.clone(),
        headers: call.headers.clone(),
        query: call.query.clone(),
        payload: call.payload.to_string(),
    }
}

fn guest_files(changes: &FileChanges) -> trigger::Files {
    let change = |change: &FileChange| trigger::FileChange {
        kind: same!(
            change.kind,
            ChangeKind => trigger::ChangeKind: Created, Changed, Removed, Renamed
        ),
        path: change.path.clone(),
        was: change.was.clone(),
        size: change.size,
    };
    trigger::Files {
        folder: changes.folder.clone(),
        changes: changes.changes.iter().map(change).collect(),
        more: changes.more,
    }
}

fn guest_event(event: &HostEvent) -> trigger::HostEvent {
    trigger::HostEvent {
        name: event.name.to_string(),
        id: event.id.clone(),
        time_ms: event.time.0,
        data: event.data.to_string(),
    }
}

/// Reads what the component returned, from a component that can read states of these formats.
pub(crate) fn trigger_run(
    fired: Result<trigger::TriggerRun, trigger::TriggerError>,
    formats: &[u32],
) -> Read<Result<TriggerRun, TriggerError>> {
    let mut reader = Reader::default();
    match fired {
        Ok(trigger_run) => reader.trigger_run(trigger_run, formats).map(Ok),
        Err(trigger::TriggerError::Rejected(reason)) => {
            let reason = reader.text("rejected", reason)?;
            Ok(Err(TriggerError::Rejected(reason)))
        }
        Err(trigger::TriggerError::RetryLater(ms)) => Ok(Err(TriggerError::RetryLater(ms))),
    }
}

impl Reader {
    fn trigger_run(
        &mut self,
        trigger_run: trigger::TriggerRun,
        formats: &[u32],
    ) -> Read<TriggerRun> {
        let trigger::TriggerRun {
            messages,
            state,
            done,
        } = trigger_run;
        check_count("messages", messages.len(), MESSAGES_MAX)?;
        let messages = self.each("messages", messages, Self::fired_message)?;
        let bytes = messages.iter().map(|message| message.text.len()).sum();
        check_length("messages", bytes, MESSAGES_BYTES_MAX)?;
        Ok(TriggerRun {
            messages,
            state: state
                .map(|state| self.trigger_state(state, formats))
                .transpose()?,
            done,
        })
    }

    fn fired_message(&mut self, field: &str, message: trigger::Message) -> Read<FiredMessage> {
        let trigger::Message {
            target,
            content,
            idempotency_key,
        } = message;
        let target = target
            .map(|target| self.target(&format!("{field}.target"), &target))
            .transpose()?;
        let text = self.plain_text(&format!("{field}.content"), content)?;
        let field = format!("{field}.idempotency-key");
        check_length(&field, idempotency_key.len(), KEY_OF_MESSAGE_BYTES_MAX)?;
        if idempotency_key.chars().any(char::is_control) {
            return unacceptable(&field, "has a control character");
        }
        let key = self.text(&field, idempotency_key)?;
        Ok(FiredMessage {
            target,
            text,
            key: (!key.is_empty()).then_some(key),
        })
    }

    fn target(&mut self, field: &str, target: &str) -> Read<TriggerTargetName> {
        self.count(field, target.len())?;
        target
            .parse()
            .or_else(|error| unacceptable(field, format_args!("names no target: {error}")))
    }

    /// Content that is text alone. Several texts are lines of one.
    fn plain_text(&mut self, field: &str, content: Vec<Part>) -> Read<String> {
        let mut texts = Vec::with_capacity(content.len());
        for part in content {
            let Part::Text(text) = part else {
                return unacceptable(field, "has a part that is no text");
            };
            texts.push(self.text(field, text)?);
        }
        let text = texts.join("\n");
        check_length(field, text.len(), MESSAGE_BYTES_MAX)?;
        if text.trim().is_empty() {
            return unacceptable(field, "says nothing: leave the message out");
        }
        Ok(text)
    }

    fn trigger_state(&mut self, state: trigger::State, formats: &[u32]) -> Read<TriggerState> {
        let trigger::State { format, bytes } = state;
        if !formats.contains(&format) {
            return unacceptable(
                "state.format",
                format_args!("is {format}, which is not among its `state-formats`"),
            );
        }
        Ok(TriggerState {
            format,
            bytes: self.bytes("state.bytes", bytes, STATE_BYTES_MAX)?,
        })
    }
}

/// One event of one trigger. The same call has the same result.
#[derive(Debug, Clone, Copy)]
pub struct FireCall<'a> {
    /// The operator's name of the trigger.
    pub trigger: &'a TriggerName,
    /// The time that its clocks show, the same for every attempt.
    pub now: Timestamp,
    /// The operator's configuration: an object that fits the component's schema.
    pub configuration: &'a Value,
    /// The operator's message with its variables filled in.
    pub message: Option<&'a str>,
    /// The state that it kept the last time.
    pub state: Option<&'a TriggerState>,
    /// The trigger event.
    pub trigger_event: &'a TriggerEvent,
    /// The source of all its randomness, the same for every attempt.
    pub seed: Digest,
}

/// A message that the component makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiredMessage {
    /// The target that it picks; none for the configured one. It need not be granted.
    pub target: Option<TriggerTargetName>,
    /// Its text; never empty.
    pub text: String,
    /// The component's own key, under which it is taken once.
    pub key: Option<String>,
}

/// The result of a trigger run that dealt with its trigger event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerRun {
    /// Messages to send. None when the trigger event was of no interest.
    pub messages: Vec<FiredMessage>,
    /// The state to keep; none to keep what there was.
    pub state: Option<TriggerState>,
    /// True if the trigger is not to be fired again.
    pub done: bool,
}

/// The reason that a trigger gives for not dealing with a trigger event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// It makes no sense.
    #[error("the component rejected the trigger event: {0}")]
    Rejected(String),
    /// The same trigger event may be tried again after so many milliseconds.
    #[error("the component puts the trigger event off by {0} ms")]
    RetryLater(u32),
}

/// The result of a trigger run.
#[derive(Debug, Clone)]
pub struct Fired {
    /// Its outcome. An error of the trigger's own is `Returned(Err(_))`.
    pub outcome: Outcome<Result<TriggerRun, TriggerError>>,
    /// Its usage.
    pub usage: CallUsage,
    /// Its log, stdout and stderr included.
    pub logs: Vec<LogLine>,
    /// The decisions of the boundary meanwhile.
    pub decided: Decided,
}

#[cfg(test)]
mod tests;
