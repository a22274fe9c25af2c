//! The exports of the `trigger-plugin` world, for any trigger.

use crate::bindings::agent_plugin::agent_host::plugin::types::Part as WirePart;
use crate::bindings::trigger_plugin::exports::agent_host::plugin::trigger as wire;
use crate::log;
use crate::trigger::{
    FireContext, HostEvent, Trigger, TriggerError, TriggerEvent, TriggerMessage, TriggerRun,
    WebhookCall,
};
use crate::wire::json_of_host;

/// The result of `describe`.
pub type WireTriggerDescription = wire::Description;
/// The context that `fire` takes.
pub type WireFireContext = wire::Context;
/// The state that `fire` takes.
pub type WireTriggerState = wire::State;
/// The trigger event that `fire` takes.
pub type WireTriggerEvent = wire::TriggerEvent;
/// The result of `fire`.
pub type WireTriggerRun = Result<wire::TriggerRun, wire::TriggerError>;

/// The export `describe`.
pub fn describe_trigger(trigger: &impl Trigger) -> WireTriggerDescription {
    log::send_panics_to_the_host();
    let described = trigger.describe();
    let trigger_events = described.trigger_events.iter();
    wire::Description {
        id: described.id,
        summary: described.summary,
        configuration: described.configuration.to_string(),
        trigger_events: trigger_events
            .map(|kind| kind.as_str().to_owned())
            .collect(),
        state_formats: described.state_formats,
    }
}

/// The export `fire`.
///
/// # Errors
/// The error that the trigger returns.
pub fn fire_trigger(
    trigger: &impl Trigger,
    context: WireFireContext,
    state: Option<&WireTriggerState>,
    trigger_event: WireTriggerEvent,
) -> WireTriggerRun {
    log::send_panics_to_the_host();
    let context = FireContext {
        trigger: context.trigger,
        now_ms: context.now_ms,
        configuration: json_of_host(&context.configuration),
        message: context.message,
    };
    match trigger.fire(&context, state, &trigger_event_from_host(trigger_event)) {
        Ok(trigger_run) => Ok(trigger_run_to_host(trigger_run)),
        Err(TriggerError::Rejected(reason)) => Err(wire::TriggerError::Rejected(reason)),
        Err(TriggerError::RetryLater(ms)) => Err(wire::TriggerError::RetryLater(ms)),
    }
}

fn trigger_event_from_host(trigger_event: WireTriggerEvent) -> TriggerEvent {
    match trigger_event {
        wire::TriggerEvent::Due(due) => TriggerEvent::Due(due),
        wire::TriggerEvent::Heartbeat(heartbeat) => TriggerEvent::Heartbeat(heartbeat),
        wire::TriggerEvent::Webhook(call) => TriggerEvent::Webhook(WebhookCall {
            call_id: call.call_id,
            path: call.path,
            headers: call.headers,
            query: call.query,
            payload: json_of_host(&call.payload),
        }),
        wire::TriggerEvent::Files(files) => TriggerEvent::Files(files),
        wire::TriggerEvent::Event(event) => TriggerEvent::Event(HostEvent {
            name: event.name,
            id: event.id,
            time_ms: event.time_ms,
            data: json_of_host(&event.data),
        }),
    }
}

fn trigger_run_to_host(trigger_run: TriggerRun) -> wire::TriggerRun {
    wire::TriggerRun {
        messages: trigger_run
            .messages
            .into_iter()
            .map(message_to_host)
            .collect(),
        state: trigger_run.state,
        done: trigger_run.done,
    }
}

fn message_to_host(message: TriggerMessage) -> wire::Message {
    wire::Message {
        target: message.target,
        content: vec![WirePart::Text(message.text)],
        idempotency_key: message.idempotency_key,
    }
}
