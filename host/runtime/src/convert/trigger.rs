//! Between the host and a trigger: the trigger event there, messages and state back.

use crate::bindings::agent::agent_host::plugin::types::Part;
use crate::bindings::trigger::exports::agent_host::plugin::trigger;
use crate::convert::{Read, Reader, check_count, check_length, unacceptable};
use crate::trigger::{FireCall, FiredMessage, TriggerError, TriggerRun};
use domain::trigger::{
    ChangeKind, FileChange, FileChanges, HostEvent, KEY_OF_MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX,
    MESSAGES_MAX, STATE_BYTES_MAX, TriggerEvent, TriggerState, TriggerTargetName, WebhookCall,
};

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
        kind: match change.kind {
            ChangeKind::Created => trigger::ChangeKind::Created,
            ChangeKind::Changed => trigger::ChangeKind::Changed,
            ChangeKind::Removed => trigger::ChangeKind::Removed,
            ChangeKind::Renamed => trigger::ChangeKind::Renamed,
        },
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

#[cfg(test)]
mod tests;
