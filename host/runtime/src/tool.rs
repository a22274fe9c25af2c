//! A call of a tool, as the broker asks for it.

use serde_json::Value;

/// One segment of one call of one tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The calling agent.
    pub agent_id: String,
    /// Its session.
    pub session_id: String,
    /// The user on whose behalf.
    pub user_id: String,
    /// The operation's id: the same for every attempt and segment.
    pub call_id: String,
    /// The same for every attempt of this segment.
    pub idempotency_key: String,
    /// Index of the segment, from 0.
    pub segment: u32,
    /// The state that the segment before left.
    pub resumed: Option<Vec<u8>>,
    /// The client's answer, when the segment before asked for one.
    pub answer: Option<Value>,
    /// The tool's name.
    pub tool: String,
    /// Validated arguments, a JSON object as text.
    pub arguments: String,
    /// Milliseconds that the call may take; the grant's limit applies when it is shorter.
    pub deadline_ms: u32,
}
