//! Questions to the user, which a widget of the client shows, and their answers.

#[cfg(test)]
mod tests;

use crate::content::Part;
use crate::news::{Outcome, Settlement};
use crate::turn::Turn;
use agent_host_shapes::widget;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Bytes of a long answer, or of a file, that are read at a time.
const CHUNK_BYTES: u32 = 1 << 20;

/// A question to the user. The host takes no answer that does not fit `response_schema`; the
/// question then stays open.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientAction {
    /// The widget: `multiple_choice`, `multi_select`, `free_text`, `code_editor`, `rating_scale`,
    /// `confirmation`, `approval`, `form` or `file_upload`; or one of the client's own.
    pub widget: String,
    /// The properties that the widget shows: a JSON object.
    pub props: Value,
    /// JSON Schema of the answer.
    pub response_schema: Option<Value>,
    /// True if the client should lock its message box until the question is answered.
    pub lock_input: bool,
}

impl ClientAction {
    /// A widget that shows `props`, the message box free. For a widget that every client has, the
    /// answer is the one documented here. For one of the client's own, any answer is allowed.
    pub fn new(widget: impl Into<String>, props: Value) -> Self {
        let widget = widget.into();
        let response_schema = standard_schema(&widget, &props);
        Self {
            widget,
            props,
            response_schema,
            lock_input: false,
        }
    }

    /// One of 2 to 100 options. The answer is `{"index": <from 0>, "selection": <the option's text,
    /// optional>}`.
    #[must_use]
    pub fn multiple_choice(prompt: &str, options: &[impl AsRef<str>]) -> Self {
        Self::new(
            "multiple_choice",
            json!({ "prompt": prompt, "options": texts(options) }),
        )
    }

    /// Any of 2 to 100 options, from `min` (none) to `max` (all) of them. The answer is
    /// `{"indices": [<each from 0, none twice>], "selections": [<the options' texts, optional>]}`.
    #[must_use]
    pub fn multi_select(prompt: &str, options: &[impl AsRef<str>]) -> Self {
        Self::new(
            "multi_select",
            json!({ "prompt": prompt, "options": texts(options) }),
        )
    }

    /// A text of the user's own, from `min_length` (1) to `max_length` (2,000) characters,
    /// `multiline` (true), with a `placeholder`. The answer is `{"text": <text>}`.
    #[must_use]
    pub fn free_text(prompt: &str) -> Self {
        Self::new("free_text", json!({ "prompt": prompt }))
    }

    /// Code in a `language`, beginning with `initial_code`, of at most `max_length` (65,536)
    /// characters. The answer is `{"code": <text>, "language": <optional>}`.
    #[must_use]
    pub fn code_editor(prompt: &str) -> Self {
        Self::new("code_editor", json!({ "prompt": prompt }))
    }

    /// A whole number from `min` to `max`, with `labels` for some of them, such as `{"1": "not at
    /// all"}`. The answer is `{"rating": <number>}`.
    #[must_use]
    pub fn rating_scale(prompt: &str, min: i64, max: i64) -> Self {
        Self::new(
            "rating_scale",
            json!({ "prompt": prompt, "min": min, "max": max }),
        )
    }

    /// Yes or no, labelled with `confirm_label` and `cancel_label`. The answer is `{"confirmed":
    /// <bool>}`.
    #[must_use]
    pub fn confirmation(prompt: &str) -> Self {
        Self::new("confirmation", json!({ "prompt": prompt }))
    }

    /// Approval of an action, shown with `details` of any shape. The answer is `{"approved":
    /// <bool>, "comment": <text, optional>}`.
    #[must_use]
    pub fn approval(prompt: &str) -> Self {
        Self::new("approval", json!({ "prompt": prompt }))
    }

    /// A form made from a JSON Schema with `"type": "object"`, with a `prompt`. The answer is an
    /// object that fits the schema.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a schema is written in place"
    )]
    pub fn form(schema: Value) -> Self {
        Self::new("form", json!({ "schema": schema }))
    }

    /// Files, at most `max_files` (1, and at most 10), of the media types in `accept` (any;
    /// `image/*` is a kind) and of at most `max_bytes` (10 MiB, which is also the most that there
    /// can be) each. The answer is `{"files": [{"digest", "name", "media_type", "bytes"}]}`,
    /// whichever way the client uploaded them; [`UploadedFile`] reads it.
    #[must_use]
    pub fn file_upload(prompt: &str) -> Self {
        Self::new("file_upload", json!({ "prompt": prompt }))
    }

    /// Adds an optional prop, such as `max_length`. The schema of the answer follows from it,
    /// unless that was given with [`answered_by`](Self::answered_by).
    ///
    /// ```
    /// use agent_host_sdk::ClientAction;
    /// let why = ClientAction::free_text("Why?").with_prop("max_length", 80);
    /// assert_eq!(why.response_schema.unwrap()["properties"]["text"]["maxLength"], 80);
    /// ```
    #[must_use]
    pub fn with_prop(mut self, name: &str, value: impl Into<Value>) -> Self {
        let follows = self.has_the_standard_schema();
        if !self.props.is_object() {
            self.props = Value::Object(Map::new());
        }
        if let Some(props) = self.props.as_object_mut() {
            props.insert(name.to_owned(), value.into());
        }
        if follows {
            self.response_schema = standard_schema(&self.widget, &self.props);
        }
        self
    }

    /// Lets the user skip the question: the prop `skippable` is true and `{"skipped": true}` is an
    /// answer too.
    #[must_use]
    pub fn skippable(self) -> Self {
        let follows = self.has_the_standard_schema();
        let mut skippable = self.with_prop("skippable", true);
        if !follows {
            skippable.response_schema = skippable.response_schema.map(widget::or_skipped);
        }
        skippable
    }

    /// Replaces the JSON Schema that the answer must fit.
    #[must_use]
    pub fn answered_by(mut self, schema: Value) -> Self {
        self.response_schema = Some(schema);
        self
    }

    /// Locks the client's message box until there is an answer.
    #[must_use]
    pub fn locking_input(mut self) -> Self {
        self.lock_input = true;
        self
    }

    /// Checks that the host would show it. An error is the host's reason for refusal, such as
    /// `props.options: 2 to 100 texts are needed, there is 1`. For agents that ask questions that
    /// others have written.
    ///
    /// # Errors
    /// The first prop at fault, and what it has to be.
    pub fn check(&self) -> Result<(), String> {
        widget::check(&self.widget, &self.props).map(|_| ())
    }

    fn has_the_standard_schema(&self) -> bool {
        self.response_schema == standard_schema(&self.widget, &self.props)
    }
}

/// The schema of an answer. None when the widget is the client's own, or when its props are not
/// what it needs, which the host reports.
fn standard_schema(widget: &str, props: &Value) -> Option<Value> {
    widget::check(widget, props).ok().flatten()
}

fn texts(options: &[impl AsRef<str>]) -> Vec<&str> {
    options.iter().map(AsRef::as_ref).collect()
}

/// The result of a question to the user.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The user answered this, and it fits the action's schema.
    Given(Value),
    /// The user passed on it, as a [`skippable`](ClientAction::skippable) question allows.
    Skipped,
    /// It was open for too long.
    TimedOut,
    /// It was withdrawn.
    Cancelled,
    /// It could not be asked or its answer not be read: the reason.
    Failed(String),
}

impl Settlement {
    /// Returns the result of a question to the user. Long answers, which come as a blob, are read
    /// whole.
    #[must_use]
    pub fn answer(&self, turn: Turn<'_>) -> Answer {
        let given = |value: Value| {
            let skipped = value == json!({ "skipped": true });
            if skipped {
                Answer::Skipped
            } else {
                Answer::Given(value)
            }
        };
        match &self.outcome {
            Outcome::Value(value) => given(value.clone()),
            Outcome::Parts(parts) => read_long(turn, parts).map_or_else(
                || Answer::Failed("the answer cannot be read".to_owned()),
                given,
            ),
            Outcome::TimedOut => Answer::TimedOut,
            Outcome::Cancelled => Answer::Cancelled,
            outcome @ (Outcome::Message(_)
            | Outcome::Elapsed
            | Outcome::Failed(_)
            | Outcome::Denied
            | Outcome::Unknown) => Answer::Failed(outcome.to_string()),
        }
    }
}

/// A file that a user uploaded, as an answer to [`ClientAction::file_upload`] names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedFile {
    /// The handle that [`Turn::read_blob`] takes: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The user's name for the file. It is a label only and never leads to a path.
    pub name: String,
    /// The media type as the user stated it: the host has not looked into the file.
    pub media_type: String,
    /// Number of bytes.
    pub bytes: u64,
}

impl UploadedFile {
    /// The files of an answer; none of any other answer.
    #[must_use]
    pub fn all_of(answer: &Value) -> Vec<Self> {
        answer
            .get("files")
            .cloned()
            .and_then(|files| serde_json::from_value(files).ok())
            .unwrap_or_default()
    }

    /// All of its bytes: 10 MiB at most. [`Turn::read_blob`] reads it in chunks. None when it was
    /// erased, and in any other session than its own.
    #[must_use]
    pub fn read(&self, turn: Turn<'_>) -> Option<Vec<u8>> {
        read_whole(turn, &self.digest, self.bytes)
    }
}

/// An answer that came as a blob of JSON.
fn read_long(turn: Turn<'_>, parts: &[Part]) -> Option<Value> {
    let blob = parts.iter().find_map(|part| {
        if let Part::Blob(blob) = part {
            Some(blob)
        } else {
            None
        }
    })?;
    serde_json::from_slice(&read_whole(turn, &blob.handle, blob.size)?).ok()
}

/// All bytes of a blob, chunk by chunk.
fn read_whole(turn: Turn<'_>, handle: &str, size: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < size {
        let chunk = turn.read_blob(handle, bytes.len() as u64, CHUNK_BYTES)?;
        if chunk.is_empty() {
            return None;
        }
        bytes.extend(chunk);
    }
    Some(bytes)
}
