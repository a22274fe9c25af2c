//! Telemetry: events on the host in the terms of the designs, for observers.
//!
//! Telemetry is separate from the stored events: it is not stored or read back, and nothing depends
//! on it. Most of it is derived from stored events ([`telemetry_of`]); model calls are reported as
//! they are made. It contains ids, numbers, names of tools and models, and codes, and no text of
//! users, models or tools.

mod filter;
mod reported;
#[cfg(test)]
mod tests;

pub use filter::{KINDS_ASKED_MAX, TelemetryFilter, kinds_matching};
pub use reported::{RunTally, telemetry_of};

use crate::events::event::Subject;
use crate::values::error_code::ErrorCategory;
use crate::values::text::words;
use crate::values::time::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The most characters of a tool's name. A model may write a longer one.
pub const TOOL_CHARS_MAX: usize = 80;

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TelemetryKind {
    /// An agent was made from its definition.
    AgentInitialized,
    /// An agent has its address.
    AgentRegistered,
    /// An agent accepts messages.
    AgentReady,
    /// An agent gave up its address.
    AgentUnregistered,
    /// An agent stopped accepting events.
    AgentShutdown,
    /// A message was accepted.
    MessageReceived,
    /// A turn claimed a message.
    MessageProcessing,
    /// A turn answered a message.
    MessageProcessed,
    /// A message will never have an answer.
    MessageFailed,
    /// A model is about to be called.
    LlmRequestStart,
    /// The first chunk of a reply was received.
    LlmStreamStart,
    /// A chunk of a reply was received.
    LlmStreamChunk,
    /// The last chunk of a reply was received.
    LlmStreamEnd,
    /// A model replied.
    LlmRequestComplete,
    /// No model gave a reply.
    LlmError,
    /// A tool's call was decided.
    ToolCallStart,
    /// A tool's call has a result.
    ToolCallComplete,
    /// A tool's call has no result.
    ToolCallFailed,
    /// A session was opened.
    SessionCreated,
    /// A step of an agent's code failed.
    Error,
}

words!(TelemetryKind {
    AgentInitialized = "agent.initialized",
    AgentRegistered = "agent.registered",
    AgentReady = "agent.ready",
    AgentUnregistered = "agent.unregistered",
    AgentShutdown = "agent.shutdown",
    MessageReceived = "message.received",
    MessageProcessing = "message.processing",
    MessageProcessed = "message.processed",
    MessageFailed = "message.failed",
    LlmRequestStart = "llm.request_start",
    LlmStreamStart = "llm.stream_start",
    LlmStreamChunk = "llm.stream_chunk",
    LlmStreamEnd = "llm.stream_end",
    LlmRequestComplete = "llm.request_complete",
    LlmError = "llm.error",
    ToolCallStart = "tool.call_start",
    ToolCallComplete = "tool.call_complete",
    ToolCallFailed = "tool.call_failed",
    SessionCreated = "session.created",
    Error = "error",
});

impl Serialize for TelemetryKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl PartialSchema for TelemetryKind {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(Self::ALL.map(Self::as_str)))
            .description(Some("The type of an event of telemetry."))
            .into()
    }
}

impl ToSchema for TelemetryKind {
    fn name() -> Cow<'static, str> {
        "TelemetryType".into()
    }
}

/// The error that an event reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryError {
    /// A stable code, or one that an agent or a tool chose.
    pub code: String,
    /// The stage of the failure.
    pub category: ErrorCategory,
    /// True if a retry may succeed.
    pub retryable: bool,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryEvent {
    /// Its kind.
    pub kind: TelemetryKind,
    /// Time at which it happened.
    pub time: Timestamp,
    /// The agent, session and run of the event.
    pub subject: Subject,
    /// Further ids and numbers by name.
    pub data: Map<String, Value>,
    /// The error that the event reports, if any.
    pub error: Option<TelemetryError>,
    /// The text of a chunk of a reply. Shown only to an operator who asked for it, and whose
    /// reading is recorded.
    pub content: Option<Arc<str>>,
}

impl TelemetryEvent {
    /// An event without further data.
    #[must_use]
    pub fn new(kind: TelemetryKind, subject: Subject, time: Timestamp) -> Self {
        Self {
            kind,
            time,
            subject,
            data: Map::new(),
            error: None,
            content: None,
        }
    }

    /// The same, with an id, a number or a name.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    /// The same, with the error that it reports.
    #[must_use]
    pub fn failing(mut self, error: TelemetryError) -> Self {
        self.error = Some(error);
        self
    }
}
