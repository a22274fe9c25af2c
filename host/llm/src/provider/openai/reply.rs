//! A chat completion being put together, from the pieces of a stream or from the whole.

use crate::delta::Feed;
use crate::incoming::{Counts, other_stop, problem_of, settled_stop};
use crate::provider::{Answer, Assembly, Broken, CALLS_MAX, OwnWork, grow_arguments};
use crate::sse::Event;
use crate::thoughts::Thoughts;
use domain::message::Part;
use domain::model::Stop;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Fields of a message that have a place elsewhere in a reply.
const MESSAGE_FIELDS: [&str; 5] = ["role", "content", "tool_calls", "refusal", "function_call"];
/// The same of a call.
const CALL_FIELDS: [&str; 6] = ["index", "id", "type", "function", "name", "arguments"];
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
    text: Thoughts,
    refusal: String,
    /// The calls by the server's index. A server that gives several calls the same index tells them
    /// apart by id.
    calls: BTreeMap<(u64, u32), Call>,
    fields: Map<String, Value>,
    finish: Option<String>,
    /// The finish came with a piece of the reply, so it may come with every piece.
    finishes_often: bool,
    counts: Counts,
    /// A choice was seen.
    begun: bool,
    /// The first piece of a stream that was not understood.
    strange: Option<String>,
}

impl Draft {
    /// Reads a reply that came in one piece. It is all there, whatever it says of its end.
    pub(super) fn of_whole(body: &Value, feed: &Feed<'_>) -> Result<Self, Broken> {
        if let Some(problem) = problem_of(body) {
            return Err(Broken::Reported(problem));
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
        let finish = finish_of(choice)?;
        let is_something = draft.take_message(message, feed)?;
        draft.finish = match finish {
            None if is_something => Some("stop".to_owned()),
            None => return Err(no("it has neither content nor a finish reason")),
            finish => finish,
        };
        Ok(draft)
    }

    /// Takes the next piece of a stream.
    fn take(&mut self, chunk: &Value, feed: &Feed<'_>) -> Result<(), Broken> {
        if let Some(problem) = problem_of(chunk) {
            return Err(Broken::Reported(problem));
        }
        self.take_usage(chunk);
        let choices = match chunk.get("choices") {
            Some(Value::Array(choices)) => Some(choices),
            Some(Value::Null) | None => None,
            Some(_) => {
                return Err(Broken::garbage(
                    "its choices are no list",
                    chunk.to_string(),
                ));
            }
        };
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let Some(choice) = choices.and_then(|choices| choices.iter().find(first)) else {
            // Filters, timings, progress: nothing of the reply.
            if choices.is_none() && chunk.get("usage").is_none() {
                self.strange.get_or_insert_with(|| chunk.to_string());
            }
            return Ok(());
        };
        let finish = finish_of(choice)?;
        // Some servers send the whole message once more, or nothing but that.
        let is_first = !std::mem::replace(&mut self.begun, true);
        let said = |name: &str| choice.get(name).and_then(Value::as_object);
        let piece = match (said("delta"), said("message")) {
            (delta, Some(whole)) if is_first => delta.filter(|it| !it.is_empty()).or(Some(whole)),
            (delta, _) => delta,
        };
        let was_said = self.is_something();
        let is_something = match piece {
            Some(piece) => self.take_message(piece, feed)?,
            None => false,
        };
        if is_something && self.finish.is_some() && !self.finishes_often {
            if was_said {
                return Err(Broken::garbage(
                    "it goes on after its end",
                    chunk.to_string(),
                ));
            }
            // An end before the first word was none.
            self.finish = None;
        }
        if finish.is_some() {
            let is_thought = piece.is_some_and(|piece| thought_of(piece).is_some());
            self.finishes_often = is_something || is_thought;
            self.finish = finish;
        }
        Ok(())
    }

    /// Adds a message, or a piece of one. Tells whether there was anything in it.
    fn take_message(
        &mut self,
        message: &Map<String, Value>,
        feed: &Feed<'_>,
    ) -> Result<bool, Broken> {
        let mut more = false;
        match thought_of(message) {
            Some(thought) => feed.thinking(thought),
            None => texts(message.get("reasoning_details"), &["text", "summary"])
                .into_iter()
                .for_each(|thought| feed.thinking(thought)),
        }
        if let Some(Value::Array(parts)) = message.get("content") {
            for part in parts {
                let thought = texts(part.get("thinking"), &["text"]);
                thought
                    .into_iter()
                    .for_each(|thought| feed.thinking(thought));
            }
        }
        for text in texts(message.get("content"), &["text"]) {
            more |= !text.is_empty();
            self.text.push(text, feed);
        }
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            more |= !refusal.is_empty();
            self.refusal.push_str(refusal);
            feed.text(refusal);
        }
        let calls = match message.get("tool_calls") {
            Some(Value::Array(calls)) => calls.as_slice(),
            Some(call @ Value::Object(_)) => std::slice::from_ref(call),
            Some(_) | None => &[],
        };
        for (position, call) in calls.iter().enumerate() {
            more = true;
            self.take_call(call, position > 0, feed)?;
        }
        // As calls were named before there could be several.
        if let (true, Some(function @ Value::Object(_))) =
            (calls.is_empty(), message.get("function_call"))
        {
            more = true;
            self.take_call(&json!({ "index": 0, "function": function }), false, feed)?;
        }
        gather(&mut self.fields, message, &MESSAGE_FIELDS);
        Ok(more)
    }

    /// Takes a call, or a piece of one. `follows` says that it stands behind another in one list.
    fn take_call(&mut self, piece: &Value, follows: bool, feed: &Feed<'_>) -> Result<(), Broken> {
        let Some(fields) = piece.as_object() else {
            return Err(Broken::garbage(
                "a call in it is not an object",
                piece.to_string(),
            ));
        };
        let id = match fields.get("id") {
            Some(Value::String(id)) => Cow::Borrowed(id.as_str()),
            Some(Value::Number(id)) => Cow::Owned(id.to_string()),
            Some(_) | None => Cow::Borrowed(""),
        };
        let function = fields.get("function").unwrap_or(piece);
        let name = function
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
            Some(Value::Null) | None => Cow::Borrowed(""),
            // Some servers write an object instead of its text.
            Some(value) => Cow::Owned(value.to_string()),
        };
        let place = self.place(&Piece {
            index: fields.get("index").and_then(index_of),
            id: &id,
            name,
            arguments: &arguments,
            follows,
        });
        let begins = !self.calls.contains_key(&place);
        if begins && self.calls.len() >= CALLS_MAX {
            return Err(Broken::garbage("it has more than 128 calls", ""));
        }
        let call = self.calls.entry(place).or_default();
        if call.id.is_empty() {
            call.id.push_str(&id);
        }
        gather(&mut call.fields, fields, &CALL_FIELDS);
        if call.name.is_empty() && !name.is_empty() {
            name.clone_into(&mut call.name);
            feed.call(u32::try_from(place.0).unwrap_or(u32::MAX), name);
        }
        if repeats(&call.arguments, &arguments) {
            Ok(())
        } else {
            grow_arguments(&mut call.arguments, &arguments)
        }
    }

    /// Returns the call to which a piece belongs.
    fn place(&self, piece: &Piece<'_>) -> (u64, u32) {
        let id = piece.id;
        let Some(index) = piece.index else {
            let same = self
                .calls
                .iter()
                .find(|(_, call)| !id.is_empty() && call.id == id)
                .map(|(place, _)| *place);
            return match (same, self.calls.last_key_value()) {
                (Some(place), _) => place,
                (None, Some((place, call))) if id.is_empty() && !piece.begins_after(call) => *place,
                (None, Some(((index, _), _))) => (index.saturating_add(1), 0),
                (None, None) => (0, 0),
            };
        };
        let mut at_index = self.calls.range((index, 0)..=(index, u32::MAX));
        let is_other = |call: &Call| match (id, call.id.as_str()) {
            ("", _) => {
                piece.begins_after(call)
                    && (piece.follows
                        || call.name != piece.name
                        || !repeats(&call.arguments, piece.arguments))
            }
            (_, "") => false,
            (id, of_call) => id != of_call,
        };
        match at_index.next_back() {
            Some(((_, generation), call)) if is_other(call) => (index, generation + 1),
            Some((place, _)) => *place,
            None => (index, 0),
        }
    }

    fn take_usage(&mut self, body: &Value) {
        for pointer in ["/usage", "/choices/0/usage", "/x_groq/usage"] {
            self.counts.take(body.pointer(pointer));
        }
    }

    fn is_something(&self) -> bool {
        !self.text.is_empty() || !self.refusal.is_empty() || !self.calls.is_empty()
    }

    /// Returns whether there is something in it, and nothing that is not complete.
    fn is_whole(&self) -> bool {
        let mut calls = self.calls.values();
        self.is_something()
            && calls.all(|call| call.arguments.trim().is_empty() || is_object(&call.arguments))
    }

    /// The reply. It is the caller's part to know that nothing is missing.
    pub(super) fn answer(
        self,
        provider: &str,
        model: &str,
        feed: &Feed<'_>,
    ) -> Result<Answer, Broken> {
        let Some(finish) = self.finish else {
            return Err(match self.strange.filter(|_| !self.begun) {
                Some(piece) => Broken::garbage("it has a piece without choices", piece),
                None => Broken::CutShort,
            });
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
        let said = self.text.finish(feed);
        let mut parts = Vec::new();
        if !self.fields.is_empty() || !call_fields.is_empty() || !said.thoughts.is_empty() {
            let mut value = Map::new();
            value.insert("message".to_owned(), Value::Object(self.fields));
            value.insert("calls".to_owned(), Value::Object(call_fields));
            if !said.thoughts.is_empty() {
                value.insert("thoughts".to_owned(), Value::String(said.thoughts));
            }
            parts.push(Part::Opaque {
                provider: provider.to_owned(),
                model: model.to_owned(),
                value: Value::Object(value),
            });
        }
        let stop = stop_of(&finish, !self.refusal.is_empty());
        parts.extend(
            [said.text, self.refusal]
                .into_iter()
                .filter(|text| !text.is_empty())
                .map(Part::text),
        );
        parts.extend(calls);
        Ok(Answer {
            stop: settled_stop(stop, &parts),
            parts,
            usage: self.counts.usage(),
            own_work: OwnWork::default(),
        })
    }
}

/// A piece of a call.
struct Piece<'a> {
    index: Option<u64>,
    /// The server's id; empty for none.
    id: &'a str,
    name: &'a str,
    arguments: &'a str,
    /// It stands behind another in one list.
    follows: bool,
}

impl Piece<'_> {
    /// Returns whether a piece without an id is the beginning of another call than this one: it
    /// names a tool, and this one has a name and all of its arguments.
    fn begins_after(&self, call: &Call) -> bool {
        if self.name.is_empty() || call.name.is_empty() {
            return false;
        }
        let has_none = call.arguments.is_empty() && self.name != call.name;
        self.follows || has_none || is_object(&call.arguments)
    }
}

/// Returns what a message says of the model's thoughts, if it does.
fn thought_of(message: &Map<String, Value>) -> Option<&str> {
    let mut thoughts = THINKING_FIELDS
        .iter()
        .filter_map(|field| message.get(*field)?.as_str());
    thoughts.find(|thought| !thought.is_empty())
}

/// Returns why a reply ended, in this host's words.
fn stop_of(finish: &str, is_refused: bool) -> Stop {
    match finish.to_ascii_lowercase().as_str() {
        "content_filter" | "safety" | "sensitive" | "recitation" | "prohibited_content"
        | "blocklist" | "spii" => Stop::Filtered,
        _ if is_refused => Stop::Refused,
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete" | "done" => {
            Stop::End
        }
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Stop::ToolCalls,
        "length"
        | "model_length"
        | "max_tokens"
        | "max_length"
        | "max_output_tokens"
        | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        _ => other_stop(finish),
    }
}

/// Returns a place in a list, which some servers write as a text.
fn index_of(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// The end of a choice; servers that send it with every piece send it empty.
///
/// # Errors
/// It says that the server could not end the reply.
fn finish_of(choice: &Value) -> Result<Option<String>, Broken> {
    let finish = choice.get("finish_reason").and_then(Value::as_str);
    let Some(finish) = finish.filter(|finish| !finish.is_empty()) else {
        return Ok(None);
    };
    let finish_word = finish.to_ascii_lowercase();
    match finish_word.as_str() {
        "error" | "network_error" | "abort" | "aborted" | "insufficient_system_resource" => {
            Err(problem_of(choice).map_or(Broken::CutShort, Broken::Reported))
        }
        word if word.contains("malformed_function_call") => Err(Broken::garbage(
            "the server says that a call in it is malformed",
            choice.to_string(),
        )),
        _ => Ok(Some(finish.to_owned())),
    }
}

/// Text, or the texts under one of these fields in a list of parts.
fn texts<'v>(content: Option<&'v Value>, fields: &[&str]) -> Vec<&'v str> {
    let of_part = |part: &'v Value| {
        let mut texts = fields.iter().filter_map(|field| part.get(*field)?.as_str());
        texts.next().or_else(|| part.as_str())
    };
    match content {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(parts)) => parts.iter().filter_map(of_part).collect(),
        Some(_) | None => Vec::new(),
    }
}

/// Returns whether a piece is a call's whole arguments once more. Nothing can follow a complete
/// object, so it is a duplicate.
fn repeats(arguments: &str, piece: &str) -> bool {
    arguments == piece && is_object(arguments)
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
            Ok(chunk) if event.name == "error" => {
                Err(Broken::Reported(problem_of(&chunk).unwrap_or(chunk)))
            }
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
    /// do. Others give no reason: the mark behind a reply that has nothing half-finished will do.
    fn finish(mut self: Box<Self>, feed: &Feed<'_>) -> Result<Answer, Broken> {
        if self.done && self.draft.finish.is_none() && self.draft.is_whole() {
            self.draft.finish = Some("stop".to_owned());
        }
        self.draft.answer(&self.provider, &self.model, feed)
    }
}
