//! Tools as the host sees them: definitions, effect classes, client actions, and the continuation
//! of a call.

mod shown;
pub mod wording;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The effect of running a tool again. It decides what the host may do after a crash. The order is
/// that of the required care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectClass {
    /// Changes nothing. It may run more than once, and in parallel with others.
    ReadOnly,
    /// Repeating the call with the same key has the effect of one call.
    Idempotent,
    /// At most once; after a crash between "started" and "settled" the outcome is unknown.
    NonIdempotent,
}

/// One tool of a tool component, or one of the host's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// 1 to 64 of `a-z`, `0-9` and `_`.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of the arguments object.
    pub arguments: Value,
    /// JSON Schema of the result, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Value>,
    /// The capabilities that it needs from the host, such as `files.read`.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// The effect of running it again.
    pub effect: EffectClass,
    /// True if it can destroy data that the user may miss.
    #[serde(default)]
    pub destructive: bool,
    /// Time limit of one call in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u32>,
}

impl ToolDefinition {
    /// Returns the bytes of the tool's text for a model: its name, its description and the schema
    /// of its arguments.
    #[must_use]
    pub fn shown_bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.arguments.to_string().len()
    }
}

/// A question to the user, answered through a widget of the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientAction {
    /// The widget.
    pub widget: String,
    /// The props of the widget: an object.
    pub props: Value,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// True if the client should lock its message box while the question is open.
    #[serde(default)]
    pub lock_input: bool,
}

/// The reason why a tool call failed, as the tool gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "detail", rename_all = "kebab-case")]
pub enum ToolError {
    /// The arguments are invalid.
    InvalidArguments(String),
    /// The requested thing does not exist.
    NotFound(String),
    /// The host or the world refused.
    Denied,
    /// Something else.
    Failed(String),
    /// Busy: try again after this many milliseconds.
    RetryLater(u32),
}

/// Bytes in JSON, as hexadecimal digits.
pub mod bytes_as_hex {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes bytes.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    /// Reads them back.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        hex::decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
