//! The trigger that tells an agent of a webhook call.

use agent_host_sdk::{
    FireContext, Trigger, TriggerDescription, TriggerError, TriggerEvent, TriggerEventKind,
    TriggerMessage, TriggerRun, TriggerState, WebhookCall, export_trigger,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Bytes of a payload that is told whole.
const PAYLOAD_BYTES_MAX: usize = 16 << 10;

/// The trigger.
#[derive(Debug, Clone, Copy)]
pub struct Webhook;

/// Its configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Configuration {
    /// Calls that are of interest; all of them if there is none.
    only: Vec<Only>,
    /// A top-level key of the payload whose text picks one of the granted targets; the configured
    /// target where it is missing.
    target_from: Option<String>,
}

/// A condition on calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Only {
    /// A header, such as `x-github-event`; none for a value of the payload.
    header: Option<String>,
    /// A value of the payload, as a JSON Pointer such as `/action`.
    payload: Option<String>,
    /// The texts of which it is to be one.
    values: Vec<String>,
}

impl Only {
    fn is_met(&self, call: &WebhookCall) -> bool {
        let is_one = |found: &str| self.values.iter().any(|value| value == found);
        let by_header = self.header.as_ref().is_none_or(|name| {
            let name = name.to_ascii_lowercase();
            call.header(&name).is_some_and(is_one)
        });
        let by_payload = self.payload.as_ref().is_none_or(|pointer| {
            let found = call.payload.pointer(pointer);
            found.is_some_and(|value| match value {
                Value::String(text) => is_one(text),
                other => is_one(&other.to_string()),
            })
        });
        by_header && by_payload
    }
}

impl Trigger for Webhook {
    fn describe(&self) -> TriggerDescription {
        TriggerDescription::new(
            "webhook",
            "Tells an agent of a webhook call.",
            [TriggerEventKind::Webhook],
        )
        .configured_by::<Configuration>()
    }

    fn fire(
        &self,
        context: &FireContext,
        _: Option<&TriggerState>,
        trigger_event: &TriggerEvent,
    ) -> Result<TriggerRun, TriggerError> {
        let TriggerEvent::Webhook(call) = trigger_event else {
            let other = trigger_event.kind().as_str();
            return Err(TriggerError::Rejected(format!(
                "a webhook call is no trigger event of the kind `{other}`"
            )));
        };
        let configuration: Configuration = context.configured()?;
        if !configuration.only.iter().all(|only| only.is_met(call)) {
            return Ok(TriggerRun::nothing());
        }
        let message = TriggerMessage::new(match &context.message {
            Some(message) => message.clone(),
            None => reported(&context.trigger, call),
        });
        Ok(
            TriggerRun::nothing().and(match picked(&configuration, call)? {
                Some(target) => message.to(target),
                None => message,
            }),
        )
    }
}

/// Returns the target that the call names.
fn picked<'a>(
    configuration: &Configuration,
    call: &'a WebhookCall,
) -> Result<Option<&'a str>, TriggerError> {
    let Some(key) = &configuration.target_from else {
        return Ok(None);
    };
    match call.payload.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name)),
        Some(_) => Err(TriggerError::Rejected(format!(
            "`{key}` of the payload is to be the name of a target, a text"
        ))),
    }
}

/// A call in words, for a trigger without a message.
fn reported(trigger: &str, call: &WebhookCall) -> String {
    let payload = match &call.payload {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    };
    let cut = payload.floor_char_boundary(PAYLOAD_BYTES_MAX);
    let shown = payload.get(..cut).unwrap_or_default();
    let rest = payload.len().saturating_sub(cut);
    let note = if rest == 0 {
        String::new()
    } else {
        format!("\n\n({rest} bytes more are left out)")
    };
    format!("The webhook `{trigger}` was called:\n\n```json\n{shown}\n```{note}")
}

export_trigger!(Webhook);

#[cfg(test)]
mod tests;
