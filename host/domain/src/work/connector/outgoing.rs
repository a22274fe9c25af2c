//! Messages to people outside: whole ones in the queue, and the chunks for a service.

use super::limits::{OUTGOING_BYTES_MAX, TEXT_LIMIT_MIN};
use super::spec::Abilities;
use super::split::{closing_of, split};
use serde::{Deserialize, Serialize};

/// The end of a text that was too long to send.
const CUT: &str = "\n\n[The reply was longer; read the rest where the conversation is kept.]";

/// Bytes reserved for it, and for closing a code block before it.
const CUT_BYTES: usize = 256;

/// One choice of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The text that people see.
    pub label: String,
    /// The value that the service returns for this choice.
    pub value: String,
}

/// A message to people outside, whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outbound {
    /// The text, in Markdown.
    pub text: String,
    /// The choices of a question.
    pub choices: Vec<Choice>,
    /// The text for services without buttons; none without choices.
    pub without_buttons: Option<String>,
}

/// The content of one call of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text in Markdown.
    Text(String),
    /// A question with its choices.
    Question(String, Vec<Choice>),
    /// A typing notice.
    Typing,
    /// A new text for a message that was sent before.
    Edit {
        /// The service's id of the message.
        id: String,
        /// The text, in Markdown.
        text: String,
    },
    /// Acknowledges a message to the service, by the message's handle.
    Acknowledgement(String),
}

/// One message for a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The chat, in the service's terms.
    pub chat: String,
    /// The content.
    pub body: Body,
    /// The same for every attempt.
    pub idempotency_key: String,
}

impl Outbound {
    /// A text, cut to the longest that can be sent; none if empty.
    #[must_use]
    pub fn text(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self {
            text: cut(text),
            ..Self::default()
        })
    }

    /// Returns the chunks for a service. There is at least one, unless the message is empty.
    #[must_use]
    pub fn chunks(&self, abilities: &Abilities) -> Vec<Body> {
        let limit = abilities.text_limit.max(TEXT_LIMIT_MIN);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let buttons = usize::try_from(abilities.buttons_max).unwrap_or(usize::MAX);
        let as_buttons = !self.choices.is_empty() && self.choices.len() <= buttons;
        let text = match &self.without_buttons {
            Some(text) if !as_buttons => text,
            Some(_) | None => &self.text,
        };
        let mut chunks: Vec<Body> = split(text, limit).into_iter().map(Body::Text).collect();
        if as_buttons && let Some(Body::Text(last)) = chunks.pop() {
            chunks.push(Body::Question(last, self.choices.clone()));
        }
        chunks
    }
}

fn cut(text: &str) -> String {
    if text.len() <= OUTGOING_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(OUTGOING_BYTES_MAX - CUT_BYTES);
    let kept = text.get(..end).unwrap_or_default().trim_end();
    let closing = closing_of(kept).map_or_else(String::new, |marker| format!("\n{marker}"));
    format!("{kept}{closing}{CUT}")
}

#[cfg(test)]
mod tests;
