//! Prompts, messages and parts for the tests of providers.

use crate::delta::{Feed, NoDeltas};
use crate::provider::Ask;
use crate::sse::Event;
use domain::digest::Salt;
use domain::id::AgentId;
use domain::message::{Answers, Message, Part, Role};
use domain::model::{Prompt, Usage};
use domain::redact::Redactor;
use domain::sampling::Sampling;
use domain::tool::{EffectClass, ToolDefinition};
use serde_json::{Map, Value, json};

pub(crate) fn message(id: u64, role: Role, parts: Vec<Part>) -> Message {
    Message {
        id,
        role,
        parts,
        origin: "host".to_owned(),
        untrusted: false,
        speaker: None,
        answers: None,
        marked_elsewhere: None,
        salt: Salt::default(),
    }
}

/// A message of one text.
pub(crate) fn said(id: u64, role: Role, text: &str) -> Message {
    message(id, role, vec![Part::text(text)])
}

/// The result of the call of a tool at this place of a message.
pub(crate) fn result(id: u64, of: u64, index: u32, tool: &str, text: &str) -> Message {
    let answers = Answers {
        message: of,
        index,
        call_id: String::new(),
        name: tool.to_owned(),
        failed: false,
    };
    Message {
        answers: Some(answers),
        ..said(id, Role::Tool, text)
    }
}

pub(crate) fn call(call_id: &str, name: &str, arguments: &str) -> Part {
    Part::Call {
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

/// A part that the model `m` of the provider `p` wants back.
pub(crate) fn opaque(value: Value) -> Part {
    Part::Opaque {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        value,
    }
}

pub(crate) fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        arguments: json!({"type": "object"}),
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
}

pub(crate) fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt {
        model: None,
        system: vec!["Be brief.".to_owned()],
        stable_blocks: 1,
        messages,
        tools: Vec::new(),
        max_tokens: None,
        reply_schema: None,
        sampling: Sampling::default(),
    }
}

pub(crate) fn ask<'a>(
    prompt: &'a Prompt,
    model: &'a str,
    parameters: &'a Map<String, Value>,
) -> Ask<'a> {
    Ask {
        prompt,
        provider: "p",
        model,
        max_tokens: None,
        parameters,
        agent: AgentId(uuid::Uuid::nil()),
        context_window: 128_000,
        trail: &crate::trail::Traced,
        bare: false,
    }
}

pub(crate) fn usage(input_tokens: u64, output_tokens: u64, cached_tokens: u64) -> Option<Usage> {
    Some(Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
    })
}

/// A feed that nobody watches.
pub(crate) fn feed() -> Feed<'static> {
    Feed::new(&NoDeltas, 0, &Redactor::default())
}

/// An event of a stream.
pub(crate) fn event(data: &str) -> Event {
    Event {
        name: String::new(),
        data: data.to_owned(),
    }
}
