//! Tools and client actions, between the SDK's types and the bindings'.

use crate::bindings::agent_plugin::agent_host::plugin::types as wire;
use crate::client::ClientAction;
use crate::tool::ToolDefinition;
use crate::wire::json_of_host;

pub(super) fn action_to_host(action: ClientAction) -> wire::ClientAction {
    let ClientAction {
        widget,
        props,
        response_schema,
        lock_input,
    } = action;
    let response_schema = response_schema.map(|schema| schema.to_string());
    wire::ClientAction {
        widget,
        props: props.to_string(),
        response_schema,
        lock_input,
    }
}

pub(super) fn definition_from_host(definition: wire::ToolDefinition) -> ToolDefinition {
    let wire::ToolDefinition {
        name,
        description,
        arguments,
        results,
        capabilities,
        effect,
        destructive,
        time_limit_ms,
    } = definition;
    let arguments = json_of_host(&arguments);
    let results = results.as_deref().map(json_of_host);
    ToolDefinition {
        name,
        description,
        arguments,
        results,
        capabilities,
        effect,
        destructive,
        time_limit_ms,
    }
}

pub(super) fn definition_to_host(definition: ToolDefinition) -> wire::ToolDefinition {
    let ToolDefinition {
        name,
        description,
        arguments,
        results,
        capabilities,
        effect,
        destructive,
        time_limit_ms,
    } = definition;
    let arguments = arguments.to_string();
    let results = results.map(|schema| schema.to_string());
    wire::ToolDefinition {
        name,
        description,
        arguments,
        results,
        capabilities,
        effect,
        destructive,
        time_limit_ms,
    }
}
