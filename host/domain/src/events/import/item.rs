//! Items of an old session: the question, its widget, and the answer if any.

use super::ImportFault;
use super::fields::{Fields, shown};
use crate::access::tool::ClientAction;
use crate::values::limits::INPUT_BYTES_MAX;
use crate::values::schema;
use crate::values::time::Timestamp;
use crate::work::widget;
use serde_json::{Map, Value, json};

/// Bytes of an item's id, and of the old system's names for a call or a tool.
pub(super) const ID_BYTES_MAX: usize = 128;
/// The longest time for an answer, in milliseconds: a year.
const RESPONSE_MS_MAX: f64 = 366.0 * 24.0 * 3_600_000.0;
/// Names of the fields in which the old system wrapped an answer.
const WRAPPING: [&str; 5] = [
    "tool_call_id",
    "response",
    "timestamp",
    "validation_status",
    "validation_errors",
];

/// An item of an old session.
#[derive(Debug, Clone, PartialEq)]
pub struct OldItem {
    /// Its id, unique in its session; `imported-` and its place if it had none.
    pub id: String,
    /// The question.
    pub prompt: Value,
    /// The widget that the client was shown, if it was one.
    pub shown: Option<OldAction>,
    /// Time at which it was asked.
    pub asked: Option<Timestamp>,
    /// The answer, if any.
    pub answered: Option<Answered>,
    /// The old system's evaluation of the answer.
    pub evaluation: Option<Value>,
}

/// The answer to an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The answer.
    pub response: Value,
    /// Time at which it was given.
    pub time: Timestamp,
}

/// A client action of the old system.
#[derive(Debug, Clone, PartialEq)]
pub struct OldAction {
    /// The old system's id of the question. An answer under it is refused here.
    pub tool_call_id: Option<String>,
    /// The tool that asked.
    pub tool_name: Option<String>,
    /// The widget that was shown.
    pub action: ClientAction,
}

impl OldAction {
    /// A client action that can be displayed.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, ImportFault> {
        let props = fields
            .object("props")?
            .map(|props| Value::Object(props.map().clone()))
            .unwrap_or_else(|| json!({}));
        let action = ClientAction {
            widget: fields
                .text_needed("widget_type", 1..=ID_BYTES_MAX)?
                .to_owned(),
            props,
            response_schema: fields
                .object("response_schema")?
                .map(|schema| Value::Object(schema.map().clone())),
            lock_input: fields.flag("lock_input")?.unwrap_or_default(),
        };
        widget::check(&action).map_err(|complaint| {
            let (place, message) = complaint.split_once(": ").unwrap_or(("props", &complaint));
            fields.fault(&pointer(place), message)
        })?;
        if let Some(schema) = &action.response_schema {
            schema::check(schema)
                .map_err(|unfit| fields.fault("response_schema", unfit.to_string()))?;
        }
        let word = |name| {
            fields
                .text(name, 1..=ID_BYTES_MAX)
                .map(|text| text.map(str::to_owned))
        };
        Ok(Self {
            tool_call_id: word("tool_call_id")?,
            tool_name: word("tool_name")?,
            action,
        })
    }

    /// Returns it in the form of the old system.
    pub(super) fn describe(&self) -> Value {
        let ClientAction {
            widget,
            props,
            response_schema,
            lock_input,
        } = &self.action;
        json!({
            "tool_call_id": self.tool_call_id, "tool_name": self.tool_name, "widget_type": widget, "props": props,
            "response_schema": response_schema, "lock_input": lock_input,
        })
    }

    /// Returns its prompt.
    pub(super) fn prompt(&self) -> Value {
        self.action.props.get("prompt").cloned().unwrap_or_default()
    }
}

/// Converts a place that the rules of widgets report into a pointer into the old system's client
/// action. Such a place is `props.fields[2].label`.
fn pointer(place: &str) -> String {
    let place = if place == "widget" {
        "widget_type"
    } else {
        place
    };
    place
        .replace("].", "/")
        .replace(['.', '['], "/")
        .replace(']', "")
}

impl OldItem {
    /// The item at a place of its session, counted from 1. Its times are within this range.
    pub(super) fn read(
        fields: &Fields<'_>,
        place: usize,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Self, ImportFault> {
        fields.at_most(INPUT_BYTES_MAX)?;
        let id = fields
            .text("id", 1..=ID_BYTES_MAX)?
            .map_or_else(|| unnamed(place), str::to_owned);
        let shown = fields
            .object("client_action")?
            .map(|action| OldAction::read(&action))
            .transpose()?;
        let said = fields
            .text("agent_prompt", 0..=INPUT_BYTES_MAX)?
            .map(Value::from);
        let prompt = said
            .or_else(|| shown.as_ref().map(OldAction::prompt))
            .unwrap_or_default();
        let asked = fields.time("started_at", from..=to)?;
        let answered = answered(fields, asked.unwrap_or(from), to)?;
        let took_ms = took_ms(fields)?;
        let asked_before = |answered: &Answered| {
            Some(Timestamp(answered.time.0.saturating_sub(took_ms?)).max(from))
        };
        let asked = asked.or_else(|| answered.as_ref().and_then(asked_before));
        Ok(Self {
            id,
            prompt,
            shown,
            asked,
            answered,
            evaluation: fields.value("evaluation").cloned(),
        })
    }

    /// Builds the item of an action that waited for its client and has none among the items.
    pub(super) fn of_pending(action: OldAction, id: String) -> Self {
        Self {
            id,
            prompt: action.prompt(),
            shown: Some(action),
            asked: None,
            answered: None,
            evaluation: None,
        }
    }

    /// Returns it in the form of the old system, for the agent that continues.
    pub(super) fn describe(&self) -> Value {
        json!({ "id": self.id, "agent_prompt": self.prompt, "client_action": self.shown.as_ref().map(OldAction::describe) })
    }
}

/// Returns the id of an item that had none.
pub(super) fn unnamed(place: usize) -> String {
    format!("imported-{place}")
}

/// The answer, without the old system's envelope.
fn answered(
    fields: &Fields<'_>,
    from: Timestamp,
    to: Timestamp,
) -> Result<Option<Answered>, ImportFault> {
    let completed = fields.time("completed_at", from..=to)?;
    let Some(response) = fields.value("user_response") else {
        return Ok(None);
    };
    let is_wrapped = |map: &&Map<String, Value>| {
        map.contains_key("response") && map.keys().all(|key| WRAPPING.contains(&key.as_str()))
    };
    if response.as_object().filter(is_wrapped).is_none() {
        return Ok(Some(Answered {
            response: response.clone(),
            time: completed.unwrap_or(from),
        }));
    }
    let Some(wrapping) = fields.object("user_response")? else {
        return Ok(None);
    };
    let stamped = wrapping.time("timestamp", from..=to)?;
    let is_skipped = wrapping.text("validation_status", 0..=ID_BYTES_MAX)? == Some("skipped");
    let response = match wrapping.value("response") {
        Some(response) => response.clone(),
        None if is_skipped => json!({ "skipped": true }),
        None => Value::Null,
    };
    Ok(Some(Answered {
        response,
        time: completed.or(stamped).unwrap_or(from),
    }))
}

/// Returns the milliseconds taken by the answer. The old system stored a fraction.
fn took_ms(fields: &Fields<'_>) -> Result<Option<u64>, ImportFault> {
    let name = "response_time_ms";
    let Some(value) = fields.value(name) else {
        return Ok(None);
    };
    let ms = value
        .as_f64()
        .filter(|ms| (0.0..=RESPONSE_MS_MAX).contains(ms));
    let ms = ms.ok_or_else(|| {
        fields.fault(
            name,
            format!(
                "a number from 0 to {RESPONSE_MS_MAX} is needed, this is {}",
                shown(value)
            ),
        )
    })?;
    Ok(Some(ms as u64))
}
