//! The form of ids, times and digests: it follows from the name of a field.

use super::fields::{for_each_field, for_each_parameter, text};
use serde_json::{Map, Value};

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A UUID.
    Uuid,
    /// A time, ISO 8601.
    Time,
    /// The hash of a turn or an operation.
    Hash,
    /// A digest of content.
    Digest,
    /// Any other text.
    Plain,
}

/// The pattern of a hash. It may be given in capitals, and is never shown so.
const HASH: &str = "^[0-9a-fA-F]{64}$";
/// The pattern of a digest.
const DIGEST: &str = "^sha256:[0-9a-fA-F]{64}$";

/// Fields that have a form, beside those whose names end with `_at`.
const FIELDS: [(Form, &[&str]); 4] = [
    (
        Form::Time,
        &[
            "deadline",
            "due",
            "idle_since",
            "now",
            "since",
            "time",
            "timestamp",
            "wall",
        ],
    ),
    (
        Form::Uuid,
        &[
            "agentId",
            "agent_id",
            "arrival_id",
            "by_session_id",
            "caller_run_id",
            "conversation_id",
            "correlation_id",
            "current_session_id",
            "id",
            "input_id",
            "input_ids",
            "made_by_agent_id",
            "note_id",
            "occasion_id",
            "parent_id",
            "run_id",
            "session_id",
        ],
    ),
    (
        Form::Hash,
        &[
            "base_turn_id",
            "call_id",
            "common_turn_id",
            "current_item_id",
            "delivery_id",
            "first_kept_turn_id",
            "open_question_ids",
            "operation_id",
            "parent_turn_id",
            "question_id",
            "reply_id",
            "summarized_through_turn_id",
            "task_id",
            "tool_call_id",
            "turn_id",
        ],
    ),
    (Form::Digest, &["digest"]),
];

/// Fields of single schemas whose form does not follow from their names.
const EXCEPTIONS: [(&str, &str, Form); 11] = [
    ("Accepted", "dropped", Form::Uuid),
    ("AuditLine", "code", Form::Digest),
    ("AuditLine", "grant", Form::Digest),
    ("Criterion", "id", Form::Plain),
    ("Key", "id", Form::Plain),
    ("LegacyItem", "id", Form::Plain),
    ("Persona", "id", Form::Plain),
    ("PurgeRequest", "agent_id", Form::Plain),
    ("SessionItem", "id", Form::Plain),
    ("SnapshotMessage", "tool_call_id", Form::Plain),
    ("To", "thread", Form::Hash),
];

/// Parameters that have a form, by the id of their operation; `*` is every operation.
const PARAMETERS: [(&str, &str, Form); 14] = [
    ("*", "delivery", Form::Hash),
    ("*", "digest", Form::Digest),
    ("*", "input", Form::Uuid),
    ("*", "run", Form::Uuid),
    ("*", "session", Form::Uuid),
    ("*", "sid", Form::Uuid),
    ("*", "task_id", Form::Hash),
    ("*", "turn_id", Form::Hash),
    ("deleteDeadLetter", "id", Form::Uuid),
    ("getDeadLetter", "id", Form::Uuid),
    ("listEvents", "agent", Form::Uuid),
    ("releaseQuarantinedSession", "id", Form::Uuid),
    ("requeueDeadLetter", "id", Form::Uuid),
    ("requeueDeadLetter", "repeat", Form::Uuid),
];

/// Adds the forms to a description.
pub(super) fn add(description: &mut Value) {
    for_each_field(description, |name, field, schema| {
        if let Some(schema) = text(schema) {
            form_of_field(name, field).add_to(schema);
        }
    });
    for_each_parameter(description, |operation, name, schema| {
        let of = |(id, known, _): &&(&str, &str, Form)| {
            *known == name && (*id == "*" || *id == operation)
        };
        let form = PARAMETERS.iter().find(of).map(|(.., form)| form);
        if let (Some(form), Some(schema)) = (form, text(schema)) {
            form.add_to(schema);
        }
    });
}

/// Returns the form of a field with text.
pub(crate) fn form_of_field(schema: &str, field: &str) -> Form {
    let exception = EXCEPTIONS
        .iter()
        .find(|(of, name, _)| *of == schema && *name == field);
    if let Some((.., form)) = exception {
        return *form;
    }
    let listed = FIELDS.iter().find(|(_, names)| names.contains(&field));
    match listed {
        Some((form, _)) => *form,
        None if field.ends_with("_at") => Form::Time,
        None => Form::Plain,
    }
}

impl Form {
    fn add_to(self, schema: &mut Map<String, Value>) {
        let (key, value) = match self {
            Self::Uuid => ("format", "uuid"),
            Self::Time => ("format", "date-time"),
            Self::Hash => ("pattern", HASH),
            Self::Digest => ("pattern", DIGEST),
            Self::Plain => return,
        };
        schema.insert(key.to_owned(), value.into());
    }
}
