//! OpenAI's chat completions, as OpenAI and as many other servers speak them.
//!
//! The rest of an assistant message beyond the common fields (reasoning, signatures of other
//! vendors) is kept as one opaque part, `{"message": {…}, "calls": {"<index>": {…}}}`, and goes
//! back into the same places. Thoughts that stood before the text are `thoughts` in it, and go back
//! before the text.

mod reply;

use crate::conversation::{AssistantPart, Entry, GO_ON};
use crate::delta::Feed;
use crate::key::ApiKey;
use crate::outgoing;
use crate::provider::{Answer, Ask, Assembly, Broken, Dialect};
use crate::retry::Mode;
use domain::sampling::Sampling;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use reply::Draft;
use serde_json::{Map, Value, json};

/// The words of the model between results and words of the user: some servers demand any there.
const RESULTS_SEEN: &str = "I have the results.";
/// Stop sequences of one request.
const STOP_SEQUENCES_MAX: usize = 4;

/// The kind of server, which decides the name of the limit of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenAi {
    /// OpenAI itself.
    Native,
    /// A server that speaks the same.
    Compatible,
}

impl Dialect for OpenAi {
    fn path(&self) -> &'static str {
        "chat/completions"
    }

    fn list_path(&self) -> &'static str {
        "models"
    }

    fn headers(&self, key: Option<&ApiKey>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(value) = key.and_then(|key| key.header("Bearer ")) {
            headers.insert(AUTHORIZATION, value);
        }
        headers
    }

    fn reserved(&self) -> &'static [&'static str] {
        &[
            "model",
            "messages",
            "tools",
            "stream",
            "stream_options",
            "response_format",
            "n",
            "max_tokens",
            "max_completion_tokens",
        ]
    }

    fn unfit(&self, sampling: &Sampling) -> Option<(&'static str, String)> {
        (sampling.stop.len() > STOP_SEQUENCES_MAX).then(|| {
            let reported = format!("it takes at most {STOP_SEQUENCES_MAX} sequences");
            ("stop", reported)
        })
    }

    fn request(&self, ask: &Ask<'_>, mode: Mode) -> Value {
        let prompt = ask.prompt;
        let mut body = ask.parameters.clone();
        body.insert("model".to_owned(), json!(ask.model));
        body.insert("messages".to_owned(), Value::Array(self.messages(ask)));
        if !prompt.tools.is_empty() {
            let tools = prompt.tools.iter().map(|tool| {
                let function = json!({"name": tool.name, "description": tool.description, "parameters": outgoing::of_tool(&tool.arguments)});
                json!({"type": "function", "function": function})
            });
            body.insert("tools".to_owned(), tools.collect());
        }
        if let Some(tokens) = ask.tokens_max() {
            let name = match self {
                Self::Native => "max_completion_tokens",
                Self::Compatible => "max_tokens",
            };
            body.insert(name.to_owned(), json!(tokens));
        }
        let sampling = &prompt.sampling;
        if let Some(temperature) = sampling.temperature {
            body.insert("temperature".to_owned(), json!(temperature));
        }
        if !sampling.stop.is_empty() {
            body.insert("stop".to_owned(), json!(sampling.stop));
        }
        if let Some(effort) = sampling.reasoning_effort {
            body.insert("reasoning_effort".to_owned(), json!(effort.as_str()));
        }
        if let Some(schema) = prompt.reply_schema.as_ref().filter(|_| !ask.bare) {
            let format = json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": outgoing::of_reply(schema)}});
            body.insert("response_format".to_owned(), format);
        }
        if mode == Mode::Stream {
            body.insert("stream".to_owned(), json!(true));
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        Value::Object(body)
    }

    fn whole(&self, ask: &Ask<'_>, body: &Value, feed: &Feed<'_>) -> Result<Answer, Broken> {
        Draft::of_whole(body, feed)?.answer(ask.provider, ask.model, feed)
    }

    fn assembly(&self, ask: &Ask<'_>) -> Box<dyn Assembly> {
        Box::new(reply::Streamed::new(ask.provider, ask.model))
    }
}

impl OpenAi {
    fn messages(self, ask: &Ask<'_>) -> Vec<Value> {
        let mut messages = Vec::new();
        let mut system = ask.prompt.system.clone();
        let schema = ask.prompt.reply_schema.as_ref().filter(|_| ask.bare);
        system.extend(schema.map(outgoing::reply_words));
        if !system.is_empty() {
            messages.push(json!({"role": "system", "content": system.join("\n\n")}));
        }
        // Some chat templates demand that user and assistant take turns, and that the user begins
        // and does not leave the last word to the model.
        let mut words = Vec::new();
        let entries = ask.entries();
        if !matches!(entries.first(), Some(Entry::User(_))) {
            words.push(GO_ON.to_owned());
        }
        let ends_with_model = matches!(entries.last(), Some(Entry::Assistant(_)));
        for entry in entries {
            match entry {
                Entry::User(text) => words.push(text),
                Entry::Assistant(assistant_parts) => {
                    self.user(&mut words, &mut messages);
                    messages.push(assistant(&assistant_parts));
                }
                Entry::Results(results) => {
                    let results = results.into_iter();
                    messages.extend(results.map(|result| json!({"role": "tool", "tool_call_id": result.id, "content": result.text})));
                }
            }
        }
        if ends_with_model {
            words.push(GO_ON.to_owned());
        }
        self.user(&mut words, &mut messages);
        messages
    }

    fn user(self, words: &mut Vec<String>, messages: &mut Vec<Value>) {
        if words.is_empty() {
            return;
        }
        let follows_result = messages.last().is_some_and(|last| last["role"] == "tool");
        if self == Self::Compatible && follows_result {
            messages.push(json!({"role": "assistant", "content": RESULTS_SEEN}));
        }
        messages.push(json!({"role": "user", "content": std::mem::take(words).join("\n\n")}));
    }
}

fn assistant(assistant_parts: &[AssistantPart<'_>]) -> Value {
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    let mut kept = None;
    for assistant_part in assistant_parts {
        match assistant_part {
            AssistantPart::Text(text) => texts.push(*text),
            AssistantPart::Call {
                id,
                name,
                arguments,
            } => {
                calls.push(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}));
            }
            AssistantPart::Opaque(value) => kept = Some(*value),
        }
    }
    let fields = |pointer: &str| {
        kept.and_then(|kept| kept.pointer(pointer))
            .and_then(Value::as_object)
    };
    for (index, call) in calls.iter_mut().enumerate() {
        if let (Some(call), Some(more)) = (call.as_object_mut(), fields(&format!("/calls/{index}")))
        {
            add(call, more);
        }
    }
    let thoughts = kept
        .and_then(|kept| kept.get("thoughts")?.as_str())
        .unwrap_or_default();
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert(
        "content".to_owned(),
        if texts.is_empty() && thoughts.is_empty() {
            Value::Null
        } else {
            json!(format!("{thoughts}{}", texts.join("\n")))
        },
    );
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    if let Some(more) = fields("/message") {
        add(&mut message, more);
    }
    Value::Object(message)
}

/// Adds fields that are not there yet.
fn add(to: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        to.entry(name.as_str()).or_insert_with(|| value.clone());
    }
}

#[cfg(test)]
mod tests;
