//! The exports of the `tool-plugin` world, for any tools.

use crate::bindings::agent_plugin::agent_host::plugin::types::ToolDefinition as WireDefinition;
use crate::bindings::tool_plugin::exports::agent_host::plugin::tools as wire;
use crate::log;
use crate::tool::{CallContext, Progress, ToolError, Tools, call_by_name};
use crate::wire::content::{action_to_host, definition_to_host};
use crate::wire::json_of_host;

/// The result of `describe`.
pub type WireDefinitions = Vec<WireDefinition>;
/// The context that `call` takes.
pub type WireContext = wire::CallContext;
/// The result of `call`.
pub type WireProgress = Result<wire::Progress, wire::ToolError>;

/// The export `describe`.
pub fn describe_tools(tools: &impl Tools) -> WireDefinitions {
    log::send_panics_to_the_host();
    tools
        .tools()
        .iter()
        .map(|tool| definition_to_host(tool.definition()))
        .collect()
}

/// The export `call`.
///
/// # Errors
/// The error that the tool returns.
pub fn call_tool(
    tools: &impl Tools,
    context: WireContext,
    name: &str,
    arguments: &str,
) -> WireProgress {
    log::send_panics_to_the_host();
    let context = context_from_host(context);
    match call_by_name(tools, &context, name, json_of_host(arguments)) {
        Ok(progress) => Ok(progress_to_host(progress)),
        Err(error) => Err(error_to_host(error)),
    }
}

fn context_from_host(context: WireContext) -> CallContext {
    let WireContext {
        agent_id,
        session_id,
        user_id,
        call_id,
        idempotency_key,
        deadline_ms,
        resumed,
        answer,
    } = context;
    let answer = answer.as_deref().map(json_of_host);
    CallContext {
        agent_id,
        session_id,
        user_id,
        call_id,
        idempotency_key,
        deadline_ms,
        resumed,
        answer,
    }
}

fn progress_to_host(progress: Progress) -> wire::Progress {
    match progress {
        Progress::Done(parts) => wire::Progress::Done(parts),
        Progress::Later { after_ms, state } => {
            wire::Progress::Later(wire::Later { after_ms, state })
        }
        Progress::Ask { action, state } => wire::Progress::Ask(wire::Ask {
            action: action_to_host(action),
            state,
        }),
    }
}

fn error_to_host(error: ToolError) -> wire::ToolError {
    match error {
        ToolError::InvalidArguments(message) => wire::ToolError::InvalidArguments(message),
        ToolError::NotFound(message) => wire::ToolError::NotFound(message),
        ToolError::Denied => wire::ToolError::Denied,
        ToolError::Failed(message) => wire::ToolError::Failed(message),
        ToolError::RetryLater(ms) => wire::ToolError::RetryLater(ms),
    }
}
