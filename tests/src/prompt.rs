//! Models that a test plays, and the prompts that a host sends to them.

use crate::peer::{Peer, Says};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The prompts that a provider has received, in order.
pub type Received = Arc<Mutex<Vec<Value>>>;

/// A rule by which a provider answers: the message that follows all prompts so far, the newest
/// last; none for a call that is never answered.
pub type Answer = fn(&[Value]) -> Option<Value>;

/// Plays a provider in OpenAI's form until the test's process ends, and returns its base URL.
///
/// # Panics
/// There is no port on loopback.
#[must_use]
pub fn provider(received: &Received, answer: Answer) -> String {
    let received = Arc::clone(received);
    let peer = Peer::new(move |asked, _| {
        let mut received = received.lock().expect("no panic");
        received.push(asked.body.clone());
        match answer(&received) {
            Some(message) => Says::Json(200, completion(&message)),
            None => Says::Open(Vec::new()),
        }
    });
    peer.url("/v1")
}

/// An answer with a message, in OpenAI's form.
#[must_use]
pub fn completion(message: &Value) -> Value {
    let calls = message["tool_calls"].is_array();
    let finish = if calls { "tool_calls" } else { "stop" };
    json!({
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }], "model": "m",
    })
}

/// The same to a prompt with the count of its tokens, of which ten are the reply's.
#[must_use]
pub fn counted(prompt: &Value, message: &Value, tokens: u64) -> Value {
    let mut answer = completion(message);
    answer["model"] = prompt["model"].clone();
    answer["usage"] = json!({
        "prompt_tokens": tokens - 10, "completion_tokens": 10, "total_tokens": tokens,
    });
    answer
}

/// A message of the model's own.
#[must_use]
pub fn saying(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// The text of a message, with its parts on lines of their own.
#[must_use]
pub fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        other => {
            let parts = other.as_array().into_iter().flatten();
            let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
    }
}

/// The text of the last message of a prompt.
#[must_use]
pub fn last_words(prompt: &Value) -> String {
    let messages = prompt["messages"].as_array();
    messages
        .and_then(|messages| messages.last())
        .map(text_of)
        .unwrap_or_default()
}

/// The tokens that `fill:3600` in the last message says were used; 100 without.
#[must_use]
pub fn filled(prompt: &Value) -> u64 {
    let last = last_words(prompt);
    let mut words = last.split_whitespace();
    words
        .find_map(|word| word.strip_prefix("fill:")?.parse().ok())
        .unwrap_or(100)
}
