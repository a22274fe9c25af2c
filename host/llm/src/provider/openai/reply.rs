//! A chat completion being put together, from the chunks of a stream or from the whole.

use crate::delta::Feed;
use crate::incoming::{
    Counts, StreamChunk, chunk_of, index_of, is_object, problem_of, settled_arguments,
    settled_stop, stop_of,
};
use crate::provider::{Answer, Assembly, Broken, CALLS_MAX, OwnWork, grow_arguments};
use crate::sse::Event;
use crate::thoughts::Thoughts;
use domain::message::Part;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Fields of a message that have a place elsewhere in a reply.
const MESSAGE_FIELDS: [&str; 5] = ["role", "content", "tool_calls", "refusal", "function_call"];
/// The same of a call.
const CALL_FIELDS: [&str; 6] = ["index", "id", "type", "function", "name", "arguments"];
/// The fields in which servers put what the model thinks.
const THINKING_FIELDS: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
];

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
    /// The finish came with a chunk of the reply, so it may come with every chunk.
    finishes_often: bool,
    counts: Counts,
    /// A choice was seen.
    begun: bool,
    /// The first chunk of a stream that was not understood.
    strange: Option<String>,
}

impl Draft {
    /// Reads a reply that came in one piece. It is all there, whatever it says of its end.
    pub(super) fn of_whole(body: &Value, feed: &Feed<'_>) -> Result<Self, Broken> {
        if let Some(problem) = problem_of(body) {
            return Err(Broken::Reported(problem));
        }
        let no = |problem| Broken::garbage(problem, body.to_string());
        let choices = body.get("choices").and_then(Value::as_array);
        let choice = choices
            .and_then(|choices| choices.iter().find(|one| is_first(one)).or(choices.first()))
            .ok_or_else(|| no("it has no choice"))?;
        let message = choice
            .get("message")
            .or(choice.get("delta"))
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

    /// Takes the next chunk of a stream.
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
        let Some(choice) = choices.and_then(|choices| choices.iter().find(|one| is_first(one)))
        else {
            // Filters, timings, progress: nothing of the reply.
            if choices.is_none() && chunk.get("usage").is_none() {
                self.strange.get_or_insert_with(|| chunk.to_string());
            }
            return Ok(());
        };
        let finish = finish_of(choice)?;
        // Some servers send the whole message once more, or nothing but that.
        self.begun = true;
        let was_said = self.is_something();
        let said = |name: &str| choice.get(name).and_then(Value::as_object);
        let fragment = match (said("delta"), said("message")) {
            (delta, Some(whole)) if !was_said => delta.filter(|it| !it.is_empty()).or(Some(whole)),
            (delta, _) => delta,
        };
        let mut is_something = match fragment {
            Some(fragment) => self.take_message(fragment, feed)?,
            None => false,
        };
        if let Some(whole) = said("message").filter(|_| self.calls.is_empty()) {
            is_something |= self.take_calls(whole, feed)?;
        }
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
            let is_thought = fragment.is_some_and(|fragment| thought_of(fragment).is_some());
            self.finishes_often = is_something || is_thought;
            self.finish = finish;
        }
        Ok(())
    }

    /// Adds a message, or a chunk of one. Tells whether there was anything in it.
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
        let parts = match message.get("content") {
            Some(Value::Array(parts)) => parts.as_slice(),
            Some(part) => std::slice::from_ref(part),
            None => &[],
        };
        for part in parts {
            more |= self.take_part(part, feed);
        }
        more |= self.take_refusal(message.get("refusal"), feed);
        more |= self.take_calls(message, feed)?;
        gather(&mut self.fields, message, &MESSAGE_FIELDS);
        Ok(more)
    }

    /// Takes a part of the content: a text, or what has one. Tells whether it is of the reply.
    fn take_part(&mut self, part: &Value, feed: &Feed<'_>) -> bool {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_thought = ["thinking", "reasoning", "thought"].contains(&kind);
        let thoughts = ["thinking", "summary"].map(|field| texts(part.get(field), &["text"]));
        for thought in thoughts.into_iter().flatten() {
            feed.thinking(thought);
        }
        let text = part.as_str().or_else(|| part.get("text")?.as_str());
        let text = text.unwrap_or_default();
        if is_thought {
            feed.thinking(text);
            return false;
        }
        self.text.push(text, feed);
        let is_refusal = self.take_refusal(part.get("refusal"), feed);
        is_refusal || !text.is_empty()
    }

    fn take_refusal(&mut self, refusal: Option<&Value>, feed: &Feed<'_>) -> bool {
        let refusal = refusal.and_then(Value::as_str).unwrap_or_default();
        self.refusal.push_str(refusal);
        feed.text(refusal);
        !refusal.is_empty()
    }

    /// Adds the calls of a message, or chunks of them. Tells whether there were any.
    fn take_calls(
        &mut self,
        message: &Map<String, Value>,
        feed: &Feed<'_>,
    ) -> Result<bool, Broken> {
        let mut more = false;
        let calls = match message.get("tool_calls") {
            Some(Value::Array(calls)) => calls.as_slice(),
            Some(call @ Value::Object(_)) => std::slice::from_ref(call),
            Some(_) | None => &[],
        };
        let calls = calls.iter().filter(|call| !call.is_null());
        for (position, call) in calls.clone().enumerate() {
            more = true;
            self.take_call(call, position > 0, feed)?;
        }
        // As calls were named before there could be several.
        if let (true, Some(function @ Value::Object(_))) =
            (calls.count() == 0, message.get("function_call"))
        {
            more = true;
            self.take_call(&json!({ "index": 0, "function": function }), false, feed)?;
        }
        Ok(more)
    }

    /// Takes a call, or a chunk of one. `follows` says that it stands behind another in one list.
    fn take_call(
        &mut self,
        fragment: &Value,
        follows: bool,
        feed: &Feed<'_>,
    ) -> Result<(), Broken> {
        let Some(fields) = fragment.as_object() else {
            return Err(Broken::garbage(
                "a call in it is not an object",
                fragment.to_string(),
            ));
        };
        let id = match fields.get("id") {
            Some(Value::String(id)) => Cow::Borrowed(id.as_str()),
            Some(Value::Number(id)) => Cow::Owned(id.to_string()),
            Some(_) | None => Cow::Borrowed(""),
        };
        let function = fields.get("function").unwrap_or(fragment);
        let name = function
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        // Some models write them under the name of their description.
        let arguments = function.get("arguments").or(function.get("parameters"));
        let arguments = match arguments {
            Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
            Some(Value::Null) | None => Cow::Borrowed(""),
            // Some servers write an object instead of its text.
            Some(value) => Cow::Owned(value.to_string()),
        };
        let place = self.place(&CallChunk {
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
        } else if call.arguments.is_empty() && call.name != name {
            // A name that comes in chunks, or grows.
            match name.strip_prefix(call.name.as_str()) {
                Some(rest) => call.name.push_str(rest),
                None => call.name.push_str(name),
            }
        }
        if repeats(&call.arguments, &arguments) {
            Ok(())
        } else {
            grow_arguments(&mut call.arguments, &arguments)
        }
    }

    /// Returns the call to which a chunk belongs.
    fn place(&self, fragment: &CallChunk<'_>) -> (u64, u32) {
        let id = fragment.id;
        let is_same = |(_, call): &(_, &Call)| !id.is_empty() && call.id == id;
        let Some(index) = fragment.index else {
            let same = self.calls.iter().rev().find(is_same);
            return match (same, self.calls.last_key_value()) {
                (Some((place, call)), _) if !fragment.begins_again(call) => *place,
                (None, Some((place, call))) if id.is_empty() && !fragment.begins_after(call) => {
                    *place
                }
                (_, Some(((index, _), _))) => (index.saturating_add(1), 0),
                (_, None) => (0, 0),
            };
        };
        let at_index = || self.calls.range((index, 0)..=(index, u32::MAX)).rev();
        let is_other = |call: &Call| match (id, call.id.as_str()) {
            ("", _) => {
                fragment.begins_after(call)
                    && (fragment.follows
                        || call.name != fragment.name
                        || !repeats(&call.arguments, fragment.arguments))
            }
            (_, "") => false,
            (id, of_call) if id == of_call => fragment.begins_again(call),
            // Some servers give every chunk an id of its own.
            _ => !fragment.name.is_empty(),
        };
        let last = at_index().next();
        match (at_index().find(is_same).or(last), last) {
            (Some((_, call)), Some(((_, last), _))) if is_other(call) => (index, last + 1),
            (Some((place, _)), _) => *place,
            (None, _) => (index, 0),
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
            && calls.all(|call| {
                let arguments = settled_arguments(call.arguments.clone());
                arguments.trim().is_empty() || is_object(&arguments)
            })
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
                Some(fragment) => Broken::garbage("it has a piece without choices", fragment),
                None => Broken::CutShort,
            });
        };
        let mut calls = Vec::new();
        let mut call_fields = Map::new();
        let is_said = |call: &Call| {
            !(call.name.is_empty() && call.id.is_empty() && call.arguments.trim().is_empty())
        };
        for (index, call) in self.calls.into_values().filter(is_said).enumerate() {
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
                arguments: settled_arguments(call.arguments),
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

/// A chunk of a call.
struct CallChunk<'a> {
    index: Option<u64>,
    /// The server's id; empty for none.
    id: &'a str,
    name: &'a str,
    arguments: &'a str,
    /// It stands behind another in one list.
    follows: bool,
}

impl CallChunk<'_> {
    /// Returns whether a chunk without an id is the beginning of another call than this one: it
    /// names a tool, and this one has a name and all of its arguments.
    fn begins_after(&self, call: &Call) -> bool {
        if self.name.is_empty() || call.name.is_empty() {
            return false;
        }
        let has_none = call.id.is_empty() && call.arguments.is_empty() && self.name != call.name;
        self.follows || has_none || is_object(&call.arguments)
    }

    /// Returns whether a chunk with the id of this call is the beginning of another one: servers
    /// that repeat ids do so with whole calls.
    fn begins_again(&self, call: &Call) -> bool {
        if self.name.is_empty() || call.name.is_empty() {
            return false;
        }
        let is_whole = |text: &str| text.trim().is_empty() || is_object(text);
        let is_listed = self.follows && self.index.is_none() && is_whole(self.arguments);
        let is_new = self.name != call.name
            || call.arguments != "{}" && !repeats(&call.arguments, self.arguments);
        is_listed || is_new && is_object(self.arguments) && is_object(&call.arguments)
    }
}

/// Returns what a message says of the model's thoughts, if it does.
fn thought_of(message: &Map<String, Value>) -> Option<&str> {
    let mut thoughts = THINKING_FIELDS
        .iter()
        .filter_map(|field| message.get(*field)?.as_str());
    thoughts.find(|thought| !thought.is_empty())
}

/// Returns whether a choice is the first of several.
fn is_first(choice: &Value) -> bool {
    choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0
}

/// The end of a choice; servers that send it with every chunk send it empty.
///
/// # Errors
/// It says that the server could not end the reply.
fn finish_of(choice: &Value) -> Result<Option<String>, Broken> {
    let finish = choice.get("finish_reason").and_then(Value::as_str);
    let Some(finish) = finish.filter(|finish| !finish.is_empty() && *finish != "null") else {
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

/// Returns whether a chunk is a call's whole arguments once more. Nothing can follow a complete
/// object, so it is a duplicate.
fn repeats(arguments: &str, fragment: &str) -> bool {
    arguments == fragment && is_object(arguments)
}

/// Collects the fields that are not known. Text and lists come in chunks, everything else whole.
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
        match chunk_of(event)? {
            StreamChunk::Value(chunk) => self.draft.take(&chunk, feed)?,
            StreamChunk::End => self.done = true,
            StreamChunk::Words => {
                let words = || event.data.clone();
                self.draft.strange.get_or_insert_with(words);
            }
        }
        Ok(())
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
