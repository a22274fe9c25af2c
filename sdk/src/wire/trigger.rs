//! The exports of the `trigger-plugin` world, for any trigger.

use crate::bindings::agent_plugin::agent_host::plugin::types::Part as WirePart;
use crate::bindings::trigger_plugin::exports::agent_host::plugin::trigger as wire;
use crate::log;
use crate::trigger::{
    FireContext, Firing, HostEvent, Occasion, Trigger, TriggerError, TriggerMessage, WebhookCall,
};
use crate::wire::json_of_host;

/// The result of `describe`.
pub type WireTriggerDescription = wire::Description;
/// The context that `fire` takes.
pub type WireFireContext = wire::Context;
/// The state that `fire` takes.
pub type WireTriggerState = wire::State;
/// The occasion that `fire` takes.
pub type WireOccasion = wire::Occasion;
/// The result of `fire`.
pub type WireFiring = Result<wire::Firing, wire::TriggerError>;

/// The export `describe`.
pub fn describe_trigger(trigger: &impl Trigger) -> WireTriggerDescription {
    log::send_panics_to_the_host();
    let described = trigger.describe();
    let occasions = described.occasions.iter();
    wire::Description {
        id: described.id,
        summary: described.summary,
        configuration: described.configuration.to_string(),
        occasions: occasions.map(|kind| kind.as_str().to_owned()).collect(),
        state_formats: described.state_formats,
    }
}

/// The export `fire`.
///
/// # Errors
/// What the trigger says.
pub fn fire_trigger(
    trigger: &impl Trigger,
    context: WireFireContext,
    state: Option<&WireTriggerState>,
    occasion: WireOccasion,
) -> WireFiring {
    log::send_panics_to_the_host();
    let context = FireContext {
        trigger: context.trigger,
        now_ms: context.now_ms,
        configuration: json_of_host(&context.configuration),
        message: context.message,
    };
    match trigger.fire(&context, state, &occasion_from_host(occasion)) {
        Ok(firing) => Ok(firing_to_host(firing)),
        Err(TriggerError::Rejected(reason)) => Err(wire::TriggerError::Rejected(reason)),
        Err(TriggerError::RetryLater(ms)) => Err(wire::TriggerError::RetryLater(ms)),
    }
}

fn occasion_from_host(occasion: WireOccasion) -> Occasion {
    match occasion {
        wire::Occasion::Due(due) => Occasion::Due(due),
        wire::Occasion::Heartbeat(heartbeat) => Occasion::Heartbeat(heartbeat),
        wire::Occasion::Webhook(call) => Occasion::Webhook(WebhookCall {
            delivery_id: call.delivery_id,
            path: call.path,
            headers: call.headers,
            query: call.query,
            payload: json_of_host(&call.payload),
        }),
        wire::Occasion::Files(files) => Occasion::Files(files),
        wire::Occasion::Event(event) => Occasion::Event(HostEvent {
            name: event.name,
            id: event.id,
            time_ms: event.time_ms,
            data: json_of_host(&event.data),
        }),
    }
}

fn firing_to_host(firing: Firing) -> wire::Firing {
    wire::Firing {
        messages: firing.messages.into_iter().map(message_to_host).collect(),
        state: firing.state,
        done: firing.done,
    }
}

fn message_to_host(message: TriggerMessage) -> wire::Message {
    wire::Message {
        target: message.target,
        content: vec![WirePart::Text(message.text)],
        idempotency_key: message.idempotency_key,
    }
}
