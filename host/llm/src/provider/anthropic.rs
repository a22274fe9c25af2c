//! Anthropic's messages API.
//!
//! Content blocks that are neither text nor calls (thinking with its signature, redacted thinking,
//! whatever comes next) are opaque parts, kept verbatim and sent back in their places.

mod reply;

use crate::conversation::{AssistantPart, Entry, GO_ON};
use crate::delta::Feed;
use crate::key::ApiKey;
use crate::outgoing;
use crate::provider::{Answer, Ask, Assembly, Broken, Dialect};
use crate::retry::Mode;
use domain::sampling::{ReasoningEffort, Sampling};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The version of the API that this is written against.
const VERSION: &str = "2023-06-01";
/// Tokens of a reply where no limit is given; the API demands one.
const MAX_TOKENS_DEFAULT: u32 = 8_192;

/// The highest temperature.
const TEMPERATURE_MAX: f64 = 1.0;

/// The one dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn path(&self) -> &'static str {
        "v1/messages"
    }

    fn list_path(&self) -> &'static str {
        // Without a limit it lists 20.
        "v1/models?limit=1000"
    }

    fn headers(&self, key: Option<&ApiKey>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static("anthropic-version"),
            HeaderValue::from_static(VERSION),
        );
        if let Some(value) = key.and_then(|key| key.header("")) {
            headers.insert(HeaderName::from_static("x-api-key"), value);
        }
        headers
    }

    fn reserved(&self) -> &'static [&'static str] {
        &[
            "model",
            "messages",
            "system",
            "tools",
            "stream",
            "max_tokens",
        ]
    }

    fn default_output_tokens(&self) -> Option<u32> {
        Some(MAX_TOKENS_DEFAULT)
    }

    fn unfit(&self, sampling: &Sampling) -> Option<(&'static str, String)> {
        if let Some(temperature) = sampling.temperature
            && temperature > TEMPERATURE_MAX
        {
            return Some(("temperature", format!("it takes 0 to {TEMPERATURE_MAX}")));
        }
        if sampling.stop.iter().any(|stop| stop.trim().is_empty()) {
            let reported = "it takes no sequence of blanks alone".to_owned();
            return Some(("stop", reported));
        }
        if sampling.reasoning_effort == Some(ReasoningEffort::Minimal) {
            let reported = "it takes `low`, `medium` and `high`".to_owned();
            return Some(("reasoningEffort", reported));
        }
        None
    }

    fn request(&self, ask: &Ask<'_>, mode: Mode) -> Value {
        let mut body = ask.parameters.clone();
        if ask.bare {
            // The API wants the thoughts before calls back where it is to think on.
            body.remove("thinking");
        }
        body.insert("model".to_owned(), json!(ask.model));
        body.insert(
            "max_tokens".to_owned(),
            json!(ask.tokens_max().unwrap_or(MAX_TOKENS_DEFAULT)),
        );
        sample(&mut body, &ask.prompt.sampling);
        let system = system(ask);
        if !system.is_empty() {
            body.insert("system".to_owned(), Value::Array(system));
        }
        body.insert("messages".to_owned(), Value::Array(messages(ask)));
        let tools = tools(ask);
        let called = called(ask);
        if tools.is_empty() && !called.is_empty() {
            // The API refuses a conversation with calls in it that defines no tools: they are
            // named, and none may be chosen.
            body.insert("tools".to_owned(), Value::Array(called));
            body.insert("tool_choice".to_owned(), json!({"type": "none"}));
        }
        if !tools.is_empty() {
            body.insert("tools".to_owned(), Value::Array(tools));
        }
        if mode == Mode::Stream {
            body.insert("stream".to_owned(), json!(true));
        }
        Value::Object(body)
    }

    fn whole(&self, ask: &Ask<'_>, body: &Value, feed: &Feed<'_>) -> Result<Answer, Broken> {
        reply::whole(body, ask.provider, ask.model, feed)
    }

    fn assembly(&self, ask: &Ask<'_>) -> Box<dyn Assembly> {
        Box::new(reply::Streamed::new(ask.provider, ask.model))
    }
}

/// Adds temperature, stop sequences and effort, over what the operator's parameters say of them.
fn sample(body: &mut Map<String, Value>, sampling: &Sampling) {
    if let Some(temperature) = sampling.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if !sampling.stop.is_empty() {
        body.insert("stop_sequences".to_owned(), json!(sampling.stop));
    }
    if let Some(effort) = sampling.reasoning_effort {
        let config = body
            .entry("output_config")
            .or_insert_with(|| Value::Object(Map::new()));
        match config.as_object_mut() {
            Some(config) => drop(config.insert("effort".to_owned(), json!(effort.as_str()))),
            None => *config = json!({ "effort": effort.as_str() }),
        }
    }
}

/// The system prompt in blocks. The cache ends with the last that stays as it is.
fn system(ask: &Ask<'_>) -> Vec<Value> {
    let is_said = |text: &&String| !text.trim().is_empty();
    let texts = &ask.prompt.system;
    let mut blocks: Vec<Value> = texts
        .iter()
        .filter(is_said)
        .map(|text| json!({"type": "text", "text": text}))
        .collect();
    let stable = texts.iter().take(ask.prompt.stable_blocks).filter(is_said);
    let last_stable = stable.count().checked_sub(1);
    if let Some(block) = last_stable.and_then(|last| blocks.get_mut(last)) {
        cache(block);
    }
    if let Some(schema) = &ask.prompt.reply_schema {
        blocks.push(json!({"type": "text", "text": outgoing::reply_words(schema)}));
    }
    blocks
}

/// The tools that the conversation has called, as bare names.
fn called(ask: &Ask<'_>) -> Vec<Value> {
    let calls = ask
        .prompt
        .messages
        .iter()
        .flat_map(|message| message.calls().map(|(_, _, name, _)| name));
    let names: BTreeSet<_> = calls.map(outgoing::tool_name).collect();
    let none = json!({"type": "object", "properties": {}});
    let tool =
        |name| json!({"name": name, "description": "Not available now.", "input_schema": none});
    names.into_iter().map(tool).collect()
}

fn tools(ask: &Ask<'_>) -> Vec<Value> {
    let tools = ask.prompt.tools.iter();
    let mut tools: Vec<Value> =
        tools.map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": outgoing::of_tool(&tool.arguments)})).collect();
    if let Some(last) = tools.last_mut() {
        cache(last);
    }
    tools
}

/// Marks the end of a part of the prompt that is worth caching.
fn cache(block: &mut Value) {
    if let Some(block) = block.as_object_mut() {
        block.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
}

/// The conversation, in which user and assistant take turns and the user begins and ends.
fn messages(ask: &Ask<'_>) -> Vec<Value> {
    let mut turns: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for entry in ask.entries() {
        let (role, blocks) = match entry {
            Entry::User(text) => ("user", vec![json!({"type": "text", "text": text})]),
            Entry::Assistant(assistant_parts) => {
                ("assistant", assistant_parts.iter().map(block).collect())
            }
            Entry::Results(results) => {
                let result = |result: &crate::conversation::CallResult| json!({"type": "tool_result", "tool_use_id": result.id, "content": result.text, "is_error": result.failed});
                ("user", results.iter().map(result).collect())
            }
        };
        if role == "assistant" && turns.is_empty() {
            turns.push(filler());
        }
        match turns.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            Some(_) | None => turns.push((role, blocks)),
        }
    }
    if turns.last().is_none_or(|(role, _)| *role == "assistant") {
        turns.push(filler());
    }
    turns
        .into_iter()
        .map(|(role, content)| json!({"role": role, "content": content}))
        .collect()
}

/// Returns a message in place of the user's, where the API wants one and the thread has none.
fn filler() -> (&'static str, Vec<Value>) {
    ("user", vec![json!({"type": "text", "text": GO_ON})])
}

fn block(assistant_part: &AssistantPart<'_>) -> Value {
    match assistant_part {
        AssistantPart::Text(text) => json!({"type": "text", "text": text}),
        AssistantPart::Call {
            id,
            name,
            arguments,
        } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": outgoing::arguments(arguments)})
        }
        AssistantPart::Opaque(value) => (*value).clone(),
    }
}

#[cfg(test)]
mod tests;
