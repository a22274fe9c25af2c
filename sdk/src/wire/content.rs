//! Content and client actions, between the SDK's types and the bindings'.

use crate::bindings::agent_plugin::agent_host::plugin::types as wire;
use crate::client::ClientAction;
use crate::content::{Blob, Message, ModelCall, Part, Role};
use crate::tool::{EffectClass, ToolDefinition};
use crate::wire::json_of_host;

pub(super) fn part_from_host(part: wire::Part) -> Part {
    match part {
        wire::Part::Text(text) => Part::Text(text),
        wire::Part::Blob(wire::Blob {
            handle,
            media_type,
            size,
        }) => Part::Blob(Blob {
            handle,
            media_type,
            size,
        }),
        wire::Part::Call(wire::ModelCall {
            index,
            name,
            arguments,
        }) => Part::Call(ModelCall {
            index,
            name,
            arguments,
        }),
        wire::Part::Opaque(handle) => Part::Opaque(handle),
    }
}

pub(super) fn parts_from_host(parts: Vec<wire::Part>) -> Vec<Part> {
    parts.into_iter().map(part_from_host).collect()
}

fn part_to_host(part: Part) -> wire::Part {
    match part {
        Part::Text(text) => wire::Part::Text(text),
        Part::Blob(Blob {
            handle,
            media_type,
            size,
        }) => wire::Part::Blob(wire::Blob {
            handle,
            media_type,
            size,
        }),
        Part::Call(ModelCall {
            index,
            name,
            arguments,
        }) => wire::Part::Call(wire::ModelCall {
            index,
            name,
            arguments,
        }),
        Part::Opaque(handle) => wire::Part::Opaque(handle),
    }
}

pub(super) fn parts_to_host(parts: Vec<Part>) -> Vec<wire::Part> {
    parts.into_iter().map(part_to_host).collect()
}

pub(super) fn message_from_host(message: wire::Message) -> Message {
    let wire::Message {
        id,
        role,
        parts,
        origin,
        untrusted,
        answers,
    } = message;
    let role = match role {
        wire::Role::User => Role::User,
        wire::Role::Assistant => Role::Assistant,
        wire::Role::Tool => Role::Tool,
        wire::Role::Notice => Role::Notice,
    };
    Message {
        id,
        role,
        parts: parts_from_host(parts),
        origin,
        untrusted,
        answers,
    }
}

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
    let effect = match effect {
        wire::EffectClass::ReadOnly => EffectClass::ReadOnly,
        wire::EffectClass::Idempotent => EffectClass::Idempotent,
        wire::EffectClass::NonIdempotent => EffectClass::NonIdempotent,
    };
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
    let effect = match effect {
        EffectClass::ReadOnly => wire::EffectClass::ReadOnly,
        EffectClass::Idempotent => wire::EffectClass::Idempotent,
        EffectClass::NonIdempotent => wire::EffectClass::NonIdempotent,
    };
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
