//! The common part of what comes in from model servers, whatever their dialect.
//!
//! A server may report an error under any status, in any body, and in the middle of a stream; it
//! may count tokens under several names, or not at all. Replies are read by the dialects, errors by
//! `peer.rs`.

mod overflow;
mod problem;

pub(crate) use problem::{Kind, Problem, problem_of};

use domain::message::Part;
use domain::model::{Stop, Usage};
use serde_json::Value;

/// Characters of a provider's own word for why a reply ended.
const STOP_CHARS_MAX: usize = 64;

/// A provider's own word for why a reply ended, if this host has none for it.
pub(crate) fn other_stop(word: &str) -> Stop {
    Stop::Other(crate::key::clean(word, None, STOP_CHARS_MAX))
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
        let output = match self.output {
            0 => self.total.saturating_sub(self.input),
            output => output,
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
