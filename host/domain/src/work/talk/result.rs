//! The result of a call of `agents_message`, as the JSON that goes back to the model.

use super::Mode;
use crate::agents::definition::DefinitionId;
use crate::values::id::{InputId, SessionId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of a response that its result repeats; the rest stands in the other agent's session.
pub const RESPONSE_BYTES_MAX: usize = 24 << 10;

/// The parts of a message's result that do not depend on its outcome. They are kept with the
/// operation that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messaged {
    /// The kind of agent that it went to.
    pub definition: DefinitionId,
    /// The session's name, or its id when it has none.
    pub session_name: String,
    /// True if the session was made for it.
    pub created: bool,
    /// Seconds that its sender waits.
    pub timeout_s: u64,
}

/// The status of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It was answered.
    Complete,
    /// It was not answered in time, and is worked on all the same.
    Timeout,
    /// It is on its way.
    Started,
}

/// The result of a message. Its `Display` is the JSON text that the model gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageResult {
    /// Its mode.
    pub mode: Mode,
    /// Its status.
    pub status: Status,
    /// The kind of agent that it went to.
    pub agent_id: DefinitionId,
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    pub session_name: String,
    /// True if it was made for it.
    pub created: bool,
    /// The input that carries it, by which its turn is found.
    pub response_id: InputId,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// True if the answer is longer than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Its duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Number of calls that the other agent made for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_count: Option<u32>,
    /// Seconds that its sender waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// The message for people and models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl fmt::Display for MessageResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Messaged {
    /// It is on its way, and its sender does not wait.
    #[must_use]
    pub fn started(&self, session: SessionId, input: InputId) -> MessageResult {
        self.result(Mode::Async, Status::Started, session, input)
    }

    /// It was answered, after so many milliseconds and with so many calls.
    #[must_use]
    pub fn complete(
        &self,
        session: SessionId,
        input: InputId,
        response: &str,
        duration_ms: u64,
        calls: u32,
    ) -> MessageResult {
        let shown = head(response);
        MessageResult {
            response: Some(shown.to_owned()),
            truncated: (shown.len() < response.len()).then_some(true),
            duration_ms: Some(duration_ms),
            tool_call_count: Some(calls),
            ..self.result(Mode::Sync, Status::Complete, session, input)
        }
    }

    /// Nothing came in time.
    #[must_use]
    pub fn timeout(&self, session: SessionId, input: InputId) -> MessageResult {
        let message = "The agent is still at work on it. Its response stays in its session, and comes as a \
             message of its own.";
        MessageResult {
            timeout_seconds: Some(self.timeout_s),
            message: Some(message.to_owned()),
            ..self.result(Mode::Sync, Status::Timeout, session, input)
        }
    }

    fn result(
        &self,
        mode: Mode,
        status: Status,
        session_id: SessionId,
        response_id: InputId,
    ) -> MessageResult {
        MessageResult {
            mode,
            status,
            agent_id: self.definition.clone(),
            session_id,
            session_name: self.session_name.clone(),
            created: self.created,
            response_id,
            response: None,
            truncated: None,
            duration_ms: None,
            tool_call_count: None,
            timeout_seconds: None,
            message: None,
        }
    }
}

/// Returns the part of a text that a result repeats, cut between characters.
fn head(text: &str) -> &str {
    if text.len() <= RESPONSE_BYTES_MAX {
        return text;
    }
    let end = (0..=RESPONSE_BYTES_MAX)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    text.get(..end).unwrap_or_default()
}
