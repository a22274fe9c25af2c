//! A chat completion being put together, from the pieces of a stream or from the whole.

use crate::delta::Feed;
use crate::provider::{
    Answer, Assembly, Broken, CALLS_MAX, OwnWork, grow_arguments, other_stop, settled_stop,
};
use crate::sse::Event;
use domain::message::Part;
use domain::model::{Stop, Usage};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Fields of a message that have a place elsewhere in a reply.
const MESSAGE_FIELDS: [&str; 5] = ["role", "content", "tool_calls", "refusal", "function_call"];
/// The same of a call.
const CALL_FIELDS: [&str; 4] = ["index", "id", "type", "function"];
/// The fields in which servers put what the model thinks.
const THINKING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

/// One call in the making.
#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    fields: Map<String, Value>,
}

/// A reply in the making.
#[derive(Default)]
pub(super) struct Draft {
    text: String,
    refusal: String,
    /// The calls by the server's index. A server that gives several calls the same index tells them
    /// apart by id.
    calls: BTreeMap<(u64, u32), Call>,
    fields: Map<String, Value>,
    finish: Option<String>,
    usage: Option<Usage>,
}

impl Draft {
    /// Reads a reply that came in one piece.
    pub(super) fn of_whole(body: &Value) -> Result<Self, Broken> {
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            return Err(Broken::Reported(error.clone()));
        }
        let no = |problem| Broken::garbage(problem, body.to_string());
        let choice = body
            .pointer("/choices/0")
            .ok_or_else(|| no("it has no choice"))?;
        let message = choice
            .get("message")
            .and_then(Value::as_object)
            .ok_or_else(|| no("it has no message"))?;
        let mut draft = Self::default();
        draft.take_usage(body);
        draft.take_message(message, None)?;
        draft.finish = finish_of(choice);
        if draft.finish.is_none() {
            Err(no("it has no finish reason"))
        } else {
            Ok(draft)
        }
    }

    /// Takes the next piece of a stream.
    fn take(&mut self, chunk: &Value, feed: &Feed<'_>) -> Result<(), Broken> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(Broken::Reported(error.clone()));
        }
        self.take_usage(chunk);
        let choices = chunk.get("choices").and_then(Value::as_array);
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let Some(choice) = choices.and_then(|choices| choices.iter().find(first)) else {
            let known = choices.is_some() || chunk.get("usage").is_some();
            return if known {
                Ok(())
            } else {
                Err(Broken::garbage(
                    "it has a piece without choices",
                    chunk.to_string(),
                ))
            };
        };
        if let Some(delta) = choice.get("delta").and_then(Value::as_object) {
            let more = self.take_message(delta, Some(feed))?;
            if more && self.finish.is_some() {
                return Err(Broken::garbage(
                    "it goes on after its end",
                    chunk.to_string(),
                ));
            }
        }
        if let Some(finish) = finish_of(choice) {
            self.finish = Some(finish);
        }
        Ok(())
    }

    /// Adds a message, or a piece of one. Tells whether there was anything in it.
    fn take_message(
        &mut self,
        message: &Map<String, Value>,
        feed: Option<&Feed<'_>>,
    ) -> Result<bool, Broken> {
        let mut more = false;
        for text in texts(message.get("content")) {
            more |= !text.is_empty();
            self.text.push_str(text);
            if let Some(feed) = feed {
                feed.text(text);
            }
        }
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            more |= !refusal.is_empty();
            self.refusal.push_str(refusal);
            if let Some(feed) = feed {
                feed.text(refusal);
            }
        }
        if let (Some(feed), Some(thought)) = (
            feed,
            THINKING_FIELDS
                .iter()
                .find_map(|field| message.get(*field)?.as_str()),
        ) {
            feed.thinking(thought);
        }
        for (position, call) in message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            more = true;
            let position = if feed.is_some() {
                None
            } else {
                u64::try_from(position).ok()
            };
            self.take_call(call, position, feed)?;
        }
        gather(&mut self.fields, message, &MESSAGE_FIELDS);
        Ok(more)
    }

    fn take_call(
        &mut self,
        piece: &Value,
        position: Option<u64>,
        feed: Option<&Feed<'_>>,
    ) -> Result<(), Broken> {
        let Some(fields) = piece.as_object() else {
            return Err(Broken::garbage(
                "a call in it is not an object",
                piece.to_string(),
            ));
        };
        let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
        let index = position.or_else(|| fields.get("index").and_then(Value::as_u64));
        let place = self.place(index, id);
        let begins = !self.calls.contains_key(&place);
        if begins && self.calls.len() >= CALLS_MAX {
            return Err(Broken::garbage("it has more than 128 calls", ""));
        }
        let call = self.calls.entry(place).or_default();
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        gather(&mut call.fields, fields, &CALL_FIELDS);
        let Some(function) = fields.get("function") else {
            return Ok(());
        };
        if let (true, Some(name)) = (
            call.name.is_empty(),
            function
                .get("name")
                .and_then(Value::as_str)
                .filter(|name| !name.is_empty()),
        ) {
            name.clone_into(&mut call.name);
            if let Some(feed) = feed {
                feed.call(u32::try_from(place.0).unwrap_or(u32::MAX), name);
            }
        }
        match function.get("arguments") {
            Some(Value::String(piece)) if repeats(&call.arguments, piece) => Ok(()),
            Some(Value::String(piece)) => grow_arguments(&mut call.arguments, piece),
            Some(Value::Null) | None => Ok(()),
            // Some servers write an object instead of its text.
            Some(value) => grow_arguments(&mut call.arguments, &value.to_string()),
        }
    }

    /// Returns the call to which a piece belongs.
    fn place(&self, index: Option<u64>, id: &str) -> (u64, u32) {
        let Some(index) = index else {
            let same = self
                .calls
                .iter()
                .find(|(_, call)| !id.is_empty() && call.id == id)
                .map(|(place, _)| *place);
            let last = self.calls.last_key_value().map(|(place, _)| *place);
            return match (same, last) {
                (Some(place), _) => place,
                (None, Some(place)) if id.is_empty() => place,
                (None, Some((index, _))) => (index.saturating_add(1), 0),
                (None, None) => (0, 0),
            };
        };
        let mut at_index = self.calls.range((index, 0)..=(index, u32::MAX));
        let other = |call: &Call| !id.is_empty() && !call.id.is_empty() && call.id != id;
        match at_index.next_back() {
            Some(((_, generation), call)) if other(call) => (index, generation + 1),
            Some((place, _)) => *place,
            None => (index, 0),
        }
    }

    fn take_usage(&mut self, body: &Value) {
        let Some(usage) = body.get("usage").filter(|usage| usage.is_object()) else {
            return;
        };
        let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        self.usage = Some(Usage {
            input_tokens: count("/prompt_tokens"),
            output_tokens: count("/completion_tokens"),
            cached_tokens: count("/prompt_tokens_details/cached_tokens"),
        });
    }

    /// The reply. It is the caller's part to know that nothing is missing.
    pub(super) fn answer(self, provider: &str, model: &str) -> Result<Answer, Broken> {
        let Some(finish) = self.finish else {
            return Err(Broken::CutShort);
        };
        let mut calls = Vec::new();
        let mut call_fields = Map::new();
        for (index, call) in self.calls.into_values().enumerate() {
            if call.name.is_empty() {
                return Err(Broken::garbage(
                    "a call in it names no tool",
                    call.arguments,
                ));
            }
            if !call.fields.is_empty() {
                call_fields.insert(index.to_string(), Value::Object(call.fields));
            }
            let call_id = if call.id.is_empty() {
                format!("call_{index}")
            } else {
                call.id
            };
            calls.push(Part::Call {
                call_id,
                name: call.name,
                arguments: call.arguments,
            });
        }
        let mut parts = Vec::new();
        if !self.fields.is_empty() || !call_fields.is_empty() {
            let value = json!({"message": self.fields, "calls": call_fields});
            parts.push(Part::Opaque {
                provider: provider.to_owned(),
                model: model.to_owned(),
                value,
            });
        }
        parts.extend(
            [self.text, self.refusal.clone()]
                .into_iter()
                .filter(|text| !text.is_empty())
                .map(Part::text),
        );
        parts.extend(calls);
        let stop = match finish.as_str() {
            "content_filter" => Stop::Filtered,
            _ if !self.refusal.is_empty() => Stop::Refused,
            "stop" => Stop::End,
            "tool_calls" | "function_call" => Stop::ToolCalls,
            // Other servers have words of their own for it.
            "length" | "model_length" | "max_tokens" => Stop::Length,
            "refusal" => Stop::Refused,
            other => other_stop(other),
        };
        Ok(Answer {
            stop: settled_stop(stop, &parts),
            parts,
            usage: self.usage,
            own_work: OwnWork::default(),
        })
    }
}

/// The end of a choice; servers that send it with every piece send it empty.
fn finish_of(choice: &Value) -> Option<String> {
    choice
        .get("finish_reason")
        .and_then(Value::as_str)
        .filter(|finish| !finish.is_empty())
        .map(str::to_owned)
}

/// Text, or the texts of a list of parts.
fn texts(content: Option<&Value>) -> Vec<&str> {
    match content {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        Some(_) | None => Vec::new(),
    }
}

/// Returns whether a piece is a call's whole arguments once more. Nothing can follow a complete
/// object, so it is a duplicate.
fn repeats(arguments: &str, piece: &str) -> bool {
    piece.starts_with('{')
        && arguments == piece
        && serde_json::from_str::<Map<String, Value>>(arguments).is_ok()
}

/// Collects the fields that are not known. Text and lists come in pieces, everything else whole.
fn gather(into: &mut Map<String, Value>, from: &Map<String, Value>, known: &[&str]) {
    for (name, value) in from {
        let empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        if empty || known.contains(&name.as_str()) {
            continue;
        }
        match (into.get_mut(name), value) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(more),
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more.iter().cloned()),
            (_, value) => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

/// A streamed reply being put together.
pub(super) struct Streamed {
    draft: Draft,
    provider: String,
    model: String,
    done: bool,
}

impl Streamed {
    pub(super) fn new(provider: &str, model: &str) -> Self {
        Self {
            draft: Draft::default(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            done: false,
        }
    }
}

impl Assembly for Streamed {
    fn take(&mut self, event: &Event, feed: &Feed<'_>) -> Result<(), Broken> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        match serde_json::from_str::<Value>(&event.data) {
            Ok(chunk) if event.name == "error" => Err(Broken::Reported(
                chunk.get("error").cloned().unwrap_or(chunk),
            )),
            Ok(chunk) => self.draft.take(&chunk, feed),
            Err(_) => Err(Broken::garbage(
                "a piece of it is not JSON",
                event.data.as_str(),
            )),
        }
    }

    fn ended(&self) -> bool {
        self.done
    }

    /// Some servers leave out the last mark, so a finish reason and a clean end of the body will
    /// do.
    fn finish(self: Box<Self>) -> Result<Answer, Broken> {
        self.draft.answer(&self.provider, &self.model)
    }
}
