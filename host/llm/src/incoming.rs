//! The common part of what comes in from model servers, whatever their dialect.
//!
//! A server may report an error under any status, in any body, and in the middle of a stream; it
//! may count tokens under several names, or not at all. Replies are read by the dialects, errors by
//! `peer.rs`.

mod overflow;
mod problem;

pub(crate) use problem::{Kind, Problem, is_of_content, problem_of};

use crate::provider::Broken;
use crate::sse::Event;
use domain::json::bare;
use domain::message::Part;
use domain::model::{Stop, Usage};
use serde_json::{Map, Value};

/// Characters of a provider's own word for why a reply ended.
const STOP_CHARS_MAX: usize = 64;

/// A chunk of a stream.
pub(crate) enum StreamChunk {
    /// More of the reply, or a note on it.
    Value(Value),
    /// The mark behind the last chunk.
    End,
    /// Words that are not of the reply, such as a heartbeat's.
    Words,
}

/// Returns what an event of a stream is.
///
/// # Errors
/// It reports an error, or is JSON that was cut.
pub(crate) fn chunk_of(event: &Event) -> Result<StreamChunk, Broken> {
    let data = event.data.trim();
    if data.trim_matches('"') == "[DONE]" {
        return Ok(StreamChunk::End);
    }
    match serde_json::from_str::<Value>(data) {
        Ok(value) if event.name == "error" => {
            Err(Broken::Reported(problem_of(&value).unwrap_or(value)))
        }
        Ok(value) => Ok(StreamChunk::Value(value)),
        Err(_) if event.name == "error" => Err(Broken::Reported(data.into())),
        Err(_) if data.starts_with(['{', '[']) => {
            Err(Broken::garbage("a piece of it is not JSON", data))
        }
        Err(_) => Ok(StreamChunk::Words),
    }
}

/// Returns whether a text is an object of JSON.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// Returns a place in a list, which some servers write as a text.
pub(crate) fn index_of(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// Returns the arguments of a call, all of which have come. Some servers begin them with an empty
/// object, write `null` for none, or the text of an object as a text once more. What models write
/// beside JSON is mended where it can mean nothing else.
pub(crate) fn settled_arguments(text: String) -> String {
    if let Some(rest) = text.strip_prefix("{}").filter(|rest| is_object(rest)) {
        return rest.to_owned();
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Null) => "{}".to_owned(),
        Ok(Value::String(inner)) if is_object(&inner) => inner,
        Ok(_) => text,
        Err(_) => mended(bare(&text)).unwrap_or(text),
    }
}

/// Returns the text of an object that has control characters in its texts, such as the ends of
/// lines, commas behind its last values, or more ends than beginnings. None of anything else.
fn mended(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let mut is_within = false;
    let mut is_escaped = false;
    let mut open = 0_usize;
    for (at, kind) in text.char_indices() {
        let is_control = is_within && kind.is_ascii_control();
        let ends = |rest: &str| rest.trim_start().starts_with(['}', ']']);
        let is_last = kind == ',' && !is_within && text.get(at + 1..).is_some_and(ends);
        if is_control {
            let escaped = Value::from(kind.to_string()).to_string();
            mended.push_str(escaped.trim_matches('"'));
        } else if is_within || !(is_last || open == 0 && matches!(kind, '}' | ']')) {
            mended.push(kind);
        }
        match kind {
            '{' | '[' if !is_within => open += 1,
            '}' | ']' if !is_within => open = open.saturating_sub(1),
            _ => {}
        }
        is_within ^= kind == '"' && !is_escaped;
        is_escaped = is_within && kind == '\\' && !is_escaped;
    }
    is_object(&mended).then_some(mended)
}

/// Returns why a reply ended, by the word of its server.
pub(crate) fn stop_of(finish: &str, is_refused: bool) -> Stop {
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
        _ => Stop::Other(crate::key::clean(finish, None, STOP_CHARS_MAX)),
    }
}

/// Settles why a reply ended from whether it has calls: providers disagree on that.
pub(crate) fn settled_stop(stop: Stop, parts: &[Part]) -> Stop {
    let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
    match stop {
        Stop::End if calls => Stop::ToolCalls,
        Stop::ToolCalls if !calls => Stop::End,
        stop => stop,
    }
}

/// Counts of tokens. A server may report them several times: the highest hold.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    input: u64,
    output: u64,
    cached: u64,
    total: u64,
}

impl Counts {
    /// Takes the counts of a chat completion.
    pub(crate) fn take(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else {
            return;
        };
        let highest = |to: &mut u64, pointers: &[&str]| {
            let counts = pointers
                .iter()
                .filter_map(|at| count_of(usage.pointer(at)?));
            *to = counts.fold(*to, u64::max);
        };
        highest(&mut self.input, &["/prompt_tokens", "/input_tokens"]);
        highest(&mut self.output, &["/completion_tokens", "/output_tokens"]);
        highest(&mut self.total, &["/total_tokens"]);
        highest(
            &mut self.cached,
            &[
                "/prompt_tokens_details/cached_tokens",
                "/input_tokens_details/cached_tokens",
                "/prompt_cache_hit_tokens",
                "/cached_tokens",
            ],
        );
    }

    /// Returns the usage; none where nothing was counted.
    pub(crate) fn usage(self) -> Option<Usage> {
        let known = self.input.saturating_add(self.output);
        if known == 0 {
            return None;
        }
        // The total alone has the thoughts of some servers.
        let output = match self.input {
            0 => self.output,
            input => self.output.max(self.total.saturating_sub(input)),
        };
        let input = match self.input {
            0 => self.total.saturating_sub(self.output),
            input => input,
        };
        Some(Usage {
            input_tokens: input,
            output_tokens: output,
            cached_tokens: self.cached.min(input),
        })
    }
}

/// Returns a count, which some servers write as a fraction or as a text.
pub(crate) fn count_of(value: &Value) -> Option<u64> {
    if let Some(text) = value.as_str() {
        return text.trim().parse().ok();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and a count beyond the range is no count"
    )]
    let rounded = || {
        value
            .as_f64()
            .filter(|count| *count >= 0.0)
            .map(|count| count as u64)
    };
    value.as_u64().or_else(rounded)
}
