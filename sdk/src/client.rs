//! Questions to the user, answered through a widget of the client.

use serde_json::{Value, json};

/// A question to the user. The host takes no answer that does not fit `response_schema`; the question then stays open.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientAction {
    /// The widget: `multiple_choice`, `multi_select`, `free_text`, `code_editor`, `rating_scale`, `confirmation`,
    /// `approval`, `form` or `file_upload`.
    pub widget: String,
    /// What the widget shows: a JSON object.
    pub props: Value,
    /// JSON Schema of the answer.
    pub response_schema: Option<Value>,
    /// Whether the client should lock its message box until the question is answered.
    pub lock_input: bool,
}

impl ClientAction {
    /// A widget that shows `props`, any answer allowed, the message box free.
    pub fn new(widget: impl Into<String>, props: Value) -> Self {
        Self { widget: widget.into(), props, response_schema: None, lock_input: false }
    }

    /// One of some options. The answer is `{"index": <from 0>, "selection": <the option's text, optional>}`.
    #[must_use]
    pub fn multiple_choice(prompt: &str, options: &[String]) -> Self {
        let last = options.len().saturating_sub(1);
        Self::new("multiple_choice", json!({ "prompt": prompt, "options": options })).answered_by(json!({
            "type": "object",
            "properties": {
                "index": { "type": "integer", "minimum": 0, "maximum": last },
                "selection": { "type": "string" },
            },
            "required": ["index"],
        }))
    }

    /// Words of the user's own. The answer is `{"text": <words>}`.
    #[must_use]
    pub fn free_text(prompt: &str) -> Self {
        Self::new("free_text", json!({ "prompt": prompt })).answered_by(json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
        }))
    }

    /// Yes or no. The answer is `{"confirmed": <bool>}`.
    #[must_use]
    pub fn confirmation(prompt: &str) -> Self {
        Self::new("confirmation", json!({ "prompt": prompt })).answered_by(json!({
            "type": "object",
            "properties": { "confirmed": { "type": "boolean" } },
            "required": ["confirmed"],
        }))
    }

    /// The same with a JSON Schema that the answer must fit.
    #[must_use]
    pub fn answered_by(mut self, schema: Value) -> Self {
        self.response_schema = Some(schema);
        self
    }

    /// The same with the client's message box locked until there is an answer.
    #[must_use]
    pub fn locking_input(mut self) -> Self {
        self.lock_input = true;
        self
    }
}
