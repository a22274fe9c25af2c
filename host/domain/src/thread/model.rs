//! Requests to models and their replies, independent of providers' dialects.

use crate::access::tool::ToolDefinition;
use crate::thread::message::{Message, Part};
use crate::thread::sampling::Sampling;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Tokens that a call may use in any time, however short: more than the largest windows have.
const TOKENS_AT_ONCE_MAX: u64 = 10_000_000;
/// Tokens that a call may use in each further millisecond, with everything that it requested.
const TOKENS_A_MS_MAX: u64 = 1_000;

/// Tokens that a call used, as the provider counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = TokenUsage)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
    /// Tokens of the prompt that were read from a cache.
    #[serde(default)]
    pub cached_tokens: u64,
}

impl Usage {
    /// Returns the usage if it is possible for a service within this time, and none otherwise: a
    /// program may report any number, and a budget counts it. Cached tokens are limited to the
    /// tokens of the prompt.
    #[must_use]
    pub fn possible(self, wall_ms: u64) -> Option<Self> {
        let max = TOKENS_A_MS_MAX.saturating_mul(wall_ms);
        let is_possible = self.total() <= max.saturating_add(TOKENS_AT_ONCE_MAX);
        is_possible.then(|| Self {
            cached_tokens: self.cached_tokens.min(self.input_tokens),
            ..self
        })
    }

    /// Prompt and reply together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
        }
    }
}

/// Reason why a reply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model had finished.
    End,
    /// It calls tools.
    ToolCalls,
    /// It reached the limit of tokens.
    Length,
    /// The provider withheld the rest.
    Filtered,
    /// The model declined to answer.
    Refused,
    /// A reason that this host does not know, as the provider named it.
    Other(String),
}

/// The input of one model call. Every call among the messages is paired with a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// A model's name or an alias of the operator's; defaults to the gateway's default.
    pub model: Option<String>,
    /// System prompt blocks, those that change most often last.
    pub system: Vec<String>,
    /// Number of blocks at the beginning of the system prompt that are the same in every run, so
    /// that a provider can cache them.
    pub stable_blocks: usize,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The tools that the model may call, in a fixed order.
    pub tools: Vec<ToolDefinition>,
    /// The most tokens of reply.
    pub max_tokens: Option<u32>,
    /// JSON Schema of the reply.
    pub reply_schema: Option<Value>,
    /// Temperature, stop sequences and effort.
    pub sampling: Sampling,
}

/// A model's whole reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Text, calls and opaque parts, in the model's order.
    pub parts: Vec<Part>,
    /// Reason why it ended.
    pub stop: Stop,
    /// The provider that gave it.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// The names of the program's own tools that it called, in order, if a program took the model's
    /// place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_calls: Vec<String>,
    /// True if it rests on content from outside: it is from a program with its own tools, and the
    /// host does not know what the program has read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

/// Puts results directly after the message whose calls they answer, as every provider demands. They
/// are in the order of the calls. Other messages keep their order.
#[must_use]
pub fn arrange(messages: Vec<Message>) -> Vec<Message> {
    let (mut results, others): (Vec<Message>, Vec<Message>) = messages
        .into_iter()
        .partition(|message| message.answers.is_some());
    results.sort_by_key(|message| {
        message
            .answers
            .as_ref()
            .map(|answers| (answers.message, answers.index))
    });
    let mut results = results.into_iter().peekable();
    let mut arranged = Vec::new();
    for message in others {
        let id = message.id;
        arranged.push(message);
        while let Some(result) = results.next_if(|result| {
            result
                .answers
                .as_ref()
                .is_some_and(|answers| answers.message <= id)
        }) {
            // A result without its call (the context begins after the call) would be refused by
            // every provider.
            if result
                .answers
                .as_ref()
                .is_some_and(|answers| answers.message == id)
            {
                arranged.push(result);
            }
        }
    }
    arranged
}

#[cfg(test)]
mod tests {
    use super::Usage;

    #[test]
    fn more_usage_than_can_be_is_not_believed() {
        let usage = |input_tokens, output_tokens, cached_tokens| Usage {
            input_tokens,
            output_tokens,
            cached_tokens,
        };
        for (reported, wall_ms, believed) in [
            (usage(900_000, 54_321, 10), 0, true),
            (usage(20_000_000, 0, 0), 1_000, false),
            (usage(20_000_000, 0, 0), 60_000, true),
            (usage(1 << 62, 0, 0), 300_000, false),
            (usage(u64::MAX, u64::MAX, 0), u64::MAX / 2_000, false),
        ] {
            let found = reported.possible(wall_ms);
            assert_eq!(
                found,
                believed.then_some(reported),
                "{reported:?} in {wall_ms} ms"
            );
        }
        let cached = usage(5, 1, 9).possible(0).map(|it| it.cached_tokens);
        assert_eq!(cached, Some(5));
    }
}
