//! Import of sessions from the system that this one replaces: one agent for each user and session
//! type.
//!
//! The document is `{"format": "agent-host.sessions/1", "sessions": [...]}`; a session has the
//! fields of the design's `Session.to_dict` and a `user_id`. Other fields are ignored, so that an
//! export of the old system is accepted unchanged. A document is accepted or refused as a whole,
//! with the place of the first fault. `docs/old-sessions.md` describes the fate of each field. This
//! module never reads the host's configuration.
//!
//! This module can be removed: delete this file and `import/` (970 lines, and 520 of tests), its
//! callers (`command/import.rs` of the broker and of the program, `legacy/import.rs` of the API:
//! 670), and the transition `agent/import_session.rs`. The event stays, for sessions that were
//! imported.

mod session;

use crate::access::tool::ClientAction;
use crate::access::user::{Naming, UserId};
use crate::values::id::{ConversationId, SessionId};
use crate::values::limits::INPUT_BYTES_MAX;
use crate::values::schema;
use crate::values::time::Timestamp;
use crate::work::widget;
use serde_json::{Map, Value, json};
use session::{Fields, shown};
pub use session::{ImportStatus, OldSession, OldStatus};
use std::collections::HashMap;

/// The format that is understood.
pub const FORMAT: &str = "agent-host.sessions/1";
/// Sessions in one document.
pub const SESSIONS_MAX: usize = 100_000;
/// Milliseconds by which the old system's clock may have been ahead of this host's.
const AHEAD_MS_MAX: u64 = 300_000;

/// A document of old sessions.
#[derive(Debug, Clone)]
pub struct OldSessions {
    /// [`FORMAT`].
    pub format: String,
    /// The issuer that vouched for the users of the old system. Their sessions are imported for the
    /// users whom that issuer's tokens identify here. Without it their ids are used unchanged.
    pub issuer: Option<Voucher>,
    /// The sessions, in any order.
    pub sessions: Vec<Value>,
}

/// An issuer of tokens, and the rule for its users' names here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voucher {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The rule for the names of its users.
    pub naming: Naming,
}

/// A fault in a document, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ImportFault {
    /// The element at fault, a JSON pointer into the document: `/sessions/3/items/1/started_at`.
    pub field: String,
    /// The fault, and how to correct it.
    pub message: String,
}

/// Reads a document: its sessions, in the order in which they began.
///
/// # Errors
/// The first invalid element.
pub fn read(document: &OldSessions, now: Timestamp) -> Result<Vec<OldSession>, ImportFault> {
    if document.format != FORMAT {
        let message = format!("it is `{}` and must be `{FORMAT}`", document.format);
        return Err(ImportFault {
            field: "/format".to_owned(),
            message,
        });
    }
    if document.sessions.len() > SESSIONS_MAX {
        let message = format!(
            "there are {} and may be {SESSIONS_MAX}; import them in several documents",
            document.sessions.len()
        );
        return Err(ImportFault {
            field: "/sessions".to_owned(),
            message,
        });
    }
    let mut places: HashMap<SessionId, usize> = HashMap::new();
    let mut conversations: HashMap<ConversationId, (UserId, usize)> = HashMap::new();
    let mut sessions = Vec::with_capacity(document.sessions.len());
    for (place, value) in document.sessions.iter().enumerate() {
        let fields = Fields::of(0, format!("/sessions/{place}"), value)?;
        let session = OldSession::read(
            &fields,
            place,
            document.issuer.as_ref(),
            now.plus_ms(AHEAD_MS_MAX),
        )?;
        if let Some(first) = places.insert(session.session_id, place) {
            let message = format!(
                "/sessions/{first} has the id `{}` too; each session stands in a document once",
                session.session_id
            );
            return Err(fields.fault(fields.named("session_id", "id"), message));
        }
        // A conversation is one user's.
        let (of, first) = conversations
            .entry(session.conversation_id)
            .or_insert_with(|| (session.user_id.clone(), place));
        if *of != session.user_id {
            let message = format!(
                "/sessions/{first} has the conversation `{}` too, of another user; each is one \
                 user's",
                session.conversation_id
            );
            return Err(fields.fault("conversation_id", message));
        }
        sessions.push(session);
    }
    sessions.sort_by_key(|session| (session.started_at, session.session_id));
    Ok(sessions)
}

// Items of an old session: the question, its widget, and the answer if any.

/// Bytes of an item's id, and of the old system's names for a call or a tool.
const ID_BYTES_MAX: usize = 128;
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
    fn read(fields: &Fields<'_>) -> Result<Self, ImportFault> {
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
                .text_of(name, 1..=ID_BYTES_MAX)
                .map(|text| text.map(str::to_owned))
        };
        Ok(Self {
            tool_call_id: word("tool_call_id")?,
            tool_name: word("tool_name")?,
            action,
        })
    }

    /// Returns it in the form of the old system.
    fn describe(&self) -> Value {
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
    fn prompt(&self) -> Value {
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
    fn read(
        fields: &Fields<'_>,
        place: usize,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Self, ImportFault> {
        fields.at_most(INPUT_BYTES_MAX)?;
        let id = fields
            .text_of("id", 1..=ID_BYTES_MAX)?
            .map_or_else(|| unnamed(place), str::to_owned);
        let shown = fields
            .object("client_action")?
            .map(|action| OldAction::read(&action))
            .transpose()?;
        let said = fields
            .text_of("agent_prompt", 0..=INPUT_BYTES_MAX)?
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
    fn of_pending(action: OldAction, id: String) -> Self {
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
    fn describe(&self) -> Value {
        json!({ "id": self.id, "agent_prompt": self.prompt, "client_action": self.shown.as_ref().map(OldAction::describe) })
    }
}

/// Returns the id of an item that had none.
fn unnamed(place: usize) -> String {
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
    let is_skipped = wrapping.text_of("validation_status", 0..=ID_BYTES_MAX)? == Some("skipped");
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

#[cfg(test)]
mod tests;
