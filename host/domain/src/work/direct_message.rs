//! The tools by which agents message each other, as rules about their arguments and results:
//! `dispatch_to_agent`, `reply_to_caller` and `agents_message`.
//!
//! Like `delegate`, the host implements them, because they need the broker. Both are ways to
//! request a dispatch. A faulty call is reported before it has any effect, with a code and the
//! correct form, so that a model can correct it.

mod arguments;
mod result;
#[cfg(test)]
mod tests;

pub use arguments::{
    DispatchCall, Invalid, MessageCall, Mode, Which, Whom, dispatch, message, reply,
};
pub use result::{
    Answered, CALLS_REPORTED_MAX, MessageResult, Messaged, THINKING_BYTES_MAX, ToolCall,
    WholeResponse,
};

use crate::access::tool::{EffectClass, ToolDefinition};
use serde_json::{Value, json};

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
        name: name.to_owned(),
        description: description.to_owned(),
        arguments,
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::Idempotent,
        destructive: false,
        time_limit_ms: None,
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
