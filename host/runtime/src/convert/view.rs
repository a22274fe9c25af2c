//! From the host to an agent: messages, tools and news as guests see them.

use crate::bindings::agent::agent_host::plugin::types;
use crate::bindings::agent::exports::agent_host::plugin::agent;
use domain::digest::Digest;
use domain::message::{Answers, Message, Part, Role};
use domain::step::{News, OperationOutcome};
use domain::tool::{EffectClass, ToolDefinition};

/// A message as a guest sees it: without providers' ids and without what only a provider reads.
pub(crate) fn guest_message(message: Message) -> types::Message {
    let Message {
        id,
        role,
        parts,
        origin,
        untrusted,
        speaker: _,
        answers,
        marked_elsewhere: _,
        salt: _,
    } = message;
    types::Message {
        id,
        role: match role {
            Role::User => types::Role::User,
            Role::Assistant => types::Role::Assistant,
            Role::Tool => types::Role::Tool,
            Role::Notice => types::Role::Notice,
        },
        parts: guest_parts(parts),
        origin,
        untrusted,
        answers: answers.map(|Answers { message, index, .. }| (message, index)),
    }
}

fn guest_parts(parts: Vec<Part>) -> Vec<types::Part> {
    let mut calls = 0_u32..;
    let mut part = |part| match part {
        Part::Text { text } => types::Part::Text(text),
        Part::Blob {
            digest,
            media_type,
            size,
        } => types::Part::Blob(types::Blob {
            handle: digest.reference(),
            media_type,
            size,
        }),
        Part::Call {
            call_id: _,
            name,
            arguments,
        } => types::Part::Call(types::ModelCall {
            index: calls.next().unwrap_or(u32::MAX),
            name,
            arguments,
        }),
        Part::Opaque { value, .. } => {
            types::Part::Opaque(Digest::of(value.to_string().as_bytes()).reference())
        }
    };
    parts.into_iter().map(&mut part).collect()
}

/// A tool as a guest sees it.
pub(crate) fn guest_tool(tool: &ToolDefinition) -> types::ToolDefinition {
    types::ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        arguments: tool.arguments.to_string(),
        results: tool.results.as_ref().map(ToString::to_string),
        capabilities: tool.capabilities.clone(),
        effect: match tool.effect {
            EffectClass::ReadOnly => types::EffectClass::ReadOnly,
            EffectClass::Idempotent => types::EffectClass::Idempotent,
            EffectClass::NonIdempotent => types::EffectClass::NonIdempotent,
        },
        destructive: tool.destructive,
        time_limit_ms: tool.time_limit_ms,
    }
}

/// News as a guest hears it.
pub(crate) fn guest_news(news: &[News]) -> Vec<agent::News> {
    let one = |news: &News| match news {
        News::Opened => agent::News::Opened,
        News::Said { messages } => agent::News::Said(messages.clone()),
        News::Settled { key, outcome } => agent::News::Settled(agent::Settlement {
            key: key.clone(),
            outcome: guest_outcome(outcome),
        }),
    };
    news.iter().map(one).collect()
}

fn guest_outcome(outcome: &OperationOutcome) -> agent::Outcome {
    match outcome {
        OperationOutcome::Message { id } => agent::Outcome::Message(*id),
        OperationOutcome::Parts { parts } => agent::Outcome::Parts(guest_parts(parts.clone())),
        OperationOutcome::Value { value } => agent::Outcome::Value(value.to_string()),
        OperationOutcome::Elapsed => agent::Outcome::Elapsed,
        OperationOutcome::Failed { failure } => agent::Outcome::Failed(agent::Failure {
            code: failure.code.clone(),
            message: failure.message.clone(),
            retryable: failure.retryable,
        }),
        OperationOutcome::Denied => agent::Outcome::Denied,
        OperationOutcome::TimedOut => agent::Outcome::TimedOut,
        OperationOutcome::Cancelled => agent::Outcome::Cancelled,
        OperationOutcome::Unknown { .. } => agent::Outcome::Unknown,
    }
}
