//! The tools by which agents message each other, as rules about their arguments and results:
//! `dispatch_to_agent`, `reply_to_caller` and `agents_message`.
//!
//! Like `delegate`, the host implements them, because they need the broker. Both are ways to
//! request a dispatch. A faulty call is reported before it has any effect, with a code and the
//! correct form, so that a model can correct it.

mod arguments;

use crate::access::tool::{EffectClass, ToolDefinition};
use crate::agents::definition::DefinitionId;
use crate::thread::message::{Part, text_of};
use crate::thread::spill::{blob_of, shortened};
use crate::values::digest::Digest;
use crate::values::id::{InputId, SessionId};
use crate::values::limits::{INLINE_TEXT_BYTES_MAX, SPILL_EDGE_BYTES};
pub use arguments::{
    DispatchCall, Invalid, MessageCall, Mode, Which, Whom, dispatch, message, reply,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// Hands work over: to a new worker, or to an existing agent.
pub const DISPATCH: &str = "dispatch_to_agent";
/// Replies to this turn's caller before the turn ends.
pub const REPLY: &str = "reply_to_caller";
/// Sends a message in another agent's session.
pub const MESSAGE: &str = "agents_message";
/// All of them.
pub const NAMES: [&str; 3] = [DISPATCH, REPLY, MESSAGE];

/// The default timeout of an `agents_message`, in seconds.
pub const MESSAGE_TIMEOUT_S: u64 = 300;
/// The most seconds that a call may wait, or give another agent.
pub const TIMEOUT_S_MAX: u64 = 86_400;

/// The code when the agent does not exist, or is not one of the user's.
pub const AGENT_NOT_FOUND: &str = "agent-not-found";
/// The code when a list forbids it.
pub const AGENT_NOT_ACCESSIBLE: &str = "agent-not-accessible";
/// The code when the session does not exist, belongs to another agent, or accepts no messages.
pub const AGENT_SESSION_ERROR: &str = "agent-session-error";
/// The code when the other agent's turn failed or was cancelled.
pub const AGENT_MESSAGE_FAILED: &str = "agent-message-failed";
/// The code of a reply without a caller.
pub const NO_CALLER: &str = "no-caller";

/// A reachable agent, as a tool's description names it.
#[derive(Debug, Clone, Copy)]
pub struct Reachable<'a> {
    /// The definition.
    pub id: &'a str,
    /// Its purpose.
    pub description: Option<&'a str>,
}

/// The tools of an agent that may reach these agents, and that other agents may call if `called`.
#[must_use]
pub fn definitions(reachable: &[Reachable<'_>], called: bool) -> Vec<ToolDefinition> {
    let mut tools = Vec::new();
    if !reachable.is_empty() {
        tools.push(tool(
            MESSAGE,
            &with_names(MESSAGE_TEXT, reachable),
            message_arguments(),
        ));
        tools.push(tool(
            DISPATCH,
            &with_names(DISPATCH_TEXT, reachable),
            dispatch_arguments(),
        ));
    }
    if called {
        tools.push(tool(REPLY, REPLY_TEXT, reply_arguments()));
    }
    tools
}

const DISPATCH_TEXT: &str = "Hands work to another agent. Given the id of a kind of agent, a \
                             worker of your own is made for it; given \
    the path or the id of an agent that is there, it gets the work in its latest session. Without \
    `wait` you go on at once, and the reply \
    comes as a message of its own.";
const REPLY_TEXT: &str = "Replies to the agent that handed you this work, before your turn ends: \
                          it goes on at once, and so may you. What \
    you reply after that reaches it as a message.";
const MESSAGE_TEXT: &str = "Says something to another agent, in a session of its own with this \
                            user. In mode `sync` its response is the \
    result; when it takes longer than the timeout, it goes on all the same and the response comes \
    as a message. In mode `async` you go on \
    at once.";

fn with_names(text: &str, reachable: &[Reachable<'_>]) -> String {
    let mut text = format!("{text} Kinds of agents:");
    for Reachable { id, description } in reachable {
        text.push_str(&format!("\n{id}"));
        if let Some(description) = description.filter(|description| !description.is_empty()) {
            text.push_str(&format!(": {description}"));
        }
    }
    text
}

/// Idempotent: the handed-over work is part of the commit that decides it, so repeating the call
/// under the same key hands it over once.
fn tool(name: &str, description: &str, arguments: Value) -> ToolDefinition {
    ToolDefinition {
        effect: EffectClass::Idempotent,
        ..ToolDefinition::reading(name, description, arguments)
    }
}

fn dispatch_arguments() -> Value {
    json!({
        "type": "object",
        "properties": {
            "target": { "type": "string", "description": "Who is to do it: a kind of agent, or an \
                                                          agent's path or id." },
            "content": { "type": "string", "description": "What to do." },
            "wait": { "type": "boolean", "description": "Whether to wait for the reply; false \
                                                         without." },
            "timeout": {
                "type": "number", "minimum": 1, "maximum": TIMEOUT_S_MAX, "description": "Seconds \
                    until the work is stopped.",
            },
            "budget": {
                "type": "object",
                "description": "What the work may use of what you have left.",
                "properties": {
                    "tokens": { "type": "integer", "minimum": 1 },
                    "calls": { "type": "integer", "minimum": 0 },
                    "cost_micros": { "type": "integer", "minimum": 1, "description": "Millionths \
                        of the currency of the models' prices." },
                    "wall_s": { "type": "number", "minimum": 1, "maximum": TIMEOUT_S_MAX },
                },
                "additionalProperties": false,
            },
        },
        "required": ["target", "content"],
        "additionalProperties": false,
    })
}

fn reply_arguments() -> Value {
    json!({
        "type": "object",
        "properties": { "content": { "type": "string", "description": "What to reply." } },
        "required": ["content"],
        "additionalProperties": false,
    })
}

fn message_arguments() -> Value {
    json!({
        "type": "object",
        "properties": {
            "agentId": { "type": "string", "description": "Whom: a kind of agent, or an agent's \
                                                           path or id." },
            "content": { "type": "string", "description": "What to say." },
            "session": {
                "type": "string",
                "description": "`latest`, `create`, `latest-or-create` (without one), or a session \
                                of that agent's by id or name.",
            },
            "mode": { "type": "string", "enum": ["sync", "async"], "description": "`sync` without \
                one." },
            "timeout": {
                "type": "number", "minimum": 1, "maximum": TIMEOUT_S_MAX,
                "description": format!("Seconds to wait in mode `sync`; {MESSAGE_TIMEOUT_S} \
                                        without one."),
            },
        },
        "required": ["agentId", "content"],
        "additionalProperties": false,
    })
}

// The result of a call of `agents_message`, as the JSON that goes back to the model.

/// Calls of the other agent that a result names: the first ones. The result has their total number
/// too.
pub const CALLS_REPORTED_MAX: usize = 32;
/// Bytes of the other agent's thinking in a result, as JSON: its beginning.
pub const THINKING_BYTES_MAX: usize = 8 << 10;
/// The end of shortened thinking.
const GOES_ON: &str = "…";

/// The parts of a message's result that do not depend on its outcome. They are stored with the
/// waiting operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messaged {
    /// The kind of agent that received it.
    pub definition: DefinitionId,
    /// The session's name, or its id if it has none.
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
    /// It was not answered in time, and is processed all the same.
    Timeout,
    /// It was sent.
    Started,
}

/// A call by the other agent for a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Milliseconds from its start to its outcome, waiting included; up to the answer if it had no
    /// outcome by then.
    pub duration_ms: u64,
}

/// The whole of an answer that is too long for a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WholeResponse {
    /// The digest for reading it: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The answer to a message, and the work behind it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answered {
    /// The content of the answer.
    pub parts: Vec<Part>,
    /// The thinking of the other agent's models, if their providers show it.
    pub thinking: String,
    /// Its calls, in the order of their start: the first [`CALLS_REPORTED_MAX`].
    pub calls: Vec<ToolCall>,
    /// Number of all its calls.
    pub call_count: u32,
    /// Its duration in milliseconds.
    pub duration_ms: u64,
}

/// The result of a message. Its `Display` is the JSON text for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageResult {
    /// Its mode.
    pub mode: Mode,
    /// Its status.
    pub status: Status,
    /// The kind of agent that received it.
    pub agent_id: DefinitionId,
    /// The session.
    pub session_id: SessionId,
    /// Its name.
    pub session_name: String,
    /// True if it was made for it.
    pub created: bool,
    /// The input that carries it, which identifies its turn.
    pub response_id: InputId,
    /// The answer; its head and tail, if it is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// True if the answer is longer than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// The whole of an answer that is too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<WholeResponse>,
    /// Its duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Number of calls that the other agent made for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_count: Option<u32>,
    /// The first of these calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The thinking of the other agent's models, or its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_text: Option<String>,
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

impl MessageResult {
    /// Keeps head and tail of an answer that is too long, and names its blob. Returns the part that
    /// shows the blob; none for an answer that fits.
    fn shorten(&mut self, response: &str) -> Option<Part> {
        if self.to_string().len() <= INLINE_TEXT_BYTES_MAX {
            return None;
        }
        self.truncated = Some(true);
        self.blob = Some(WholeResponse {
            digest: Digest::of(response.as_bytes()).reference(),
            bytes: response.len() as u64,
        });
        // JSON escapes make some text several times as long.
        let mut edge_bytes = SPILL_EDGE_BYTES;
        loop {
            self.response = Some(shortened(response, edge_bytes));
            if edge_bytes == 0 || self.to_string().len() <= INLINE_TEXT_BYTES_MAX {
                return Some(blob_of(response, "text/plain"));
            }
            edge_bytes /= 2;
        }
    }
}

impl Messaged {
    /// It was sent, and its sender does not wait.
    #[must_use]
    pub fn started(&self, session: SessionId, input: InputId) -> MessageResult {
        self.result(Mode::Async, Status::Started, session, input)
    }

    /// Returns the result of an answered message as the parts for its sender, and the bytes to be
    /// stored with them.
    ///
    /// The result is JSON of at most [`INLINE_TEXT_BYTES_MAX`] bytes. Of a longer answer head and
    /// tail are kept, and the whole becomes a blob. The blobs that the answer shows stay with it.
    #[must_use]
    pub fn complete(
        &self,
        session: SessionId,
        input: InputId,
        mut answered: Answered,
    ) -> (Vec<Part>, Option<Vec<u8>>) {
        let text = text_of(&answered.parts);
        let is_blob = |part: &Part| matches!(part, Part::Blob { .. });
        answered.parts.retain(is_blob);
        answered.calls.truncate(CALLS_REPORTED_MAX);
        let mut result = MessageResult {
            response: Some(text.clone()),
            duration_ms: Some(answered.duration_ms),
            tool_call_count: Some(answered.call_count),
            tool_calls: answered.calls,
            thinking_text: beginning(&answered.thinking),
            ..self.result(Mode::Sync, Status::Complete, session, input)
        };
        let blob = result.shorten(&text);
        let bytes = blob.is_some().then(|| text.into_bytes());
        let mut parts = vec![Part::text(result.to_string())];
        parts.extend(blob);
        parts.append(&mut answered.parts);
        (parts, bytes)
    }

    /// No answer arrived in time.
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
            blob: None,
            duration_ms: None,
            tool_call_count: None,
            tool_calls: Vec::new(),
            thinking_text: None,
            timeout_seconds: None,
            message: None,
        }
    }
}

/// Returns the beginning of some thinking, for a result; none without thinking.
fn beginning(thinking: &str) -> Option<String> {
    let as_json = |text: &str| serde_json::to_string(text).map_or(usize::MAX, |json| json.len());
    if thinking.is_empty() {
        return None;
    }
    let mut bytes = THINKING_BYTES_MAX.min(thinking.len());
    loop {
        let end = thinking.floor_char_boundary(bytes);
        let head = thinking.get(..end).unwrap_or_default();
        if as_json(head) <= THINKING_BYTES_MAX || bytes == 0 {
            let rest = if end < thinking.len() { GOES_ON } else { "" };
            return Some(format!("{head}{rest}"));
        }
        bytes /= 2;
    }
}

#[cfg(test)]
mod tests;
