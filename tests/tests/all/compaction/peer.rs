//! A model provider for a test. It keeps the requests, reports the tokens that it used, and fails
//! or is slow on demand.

use agent_host_tests::peer::{self, Says};
use agent_host_tests::prompt::{counted, filled, last_words, saying, text_of};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

/// The state of the peer.
#[derive(Default)]
struct Known {
    failing: Option<String>,
    slow_ms: u64,
    /// Number of times that `chat` asks for a file before it replies.
    reads: u32,
    /// Number of requests for summaries.
    summaries: usize,
}

/// The provider.
pub(super) struct Peer {
    peer: peer::Peer,
    known: Arc<Mutex<Known>>,
}

impl Peer {
    pub(super) fn start() -> Self {
        let known: Arc<Mutex<Known>> = Arc::default();
        let shared = Arc::clone(&known);
        let peer = peer::Peer::new(move |asked, _| answer(&asked.body, &shared));
        Self { peer, known }
    }

    pub(super) fn base(&self) -> String {
        self.peer.url("/v1")
    }

    /// Returns the requests to a model so far.
    pub(super) fn asked(&self, model: &str) -> Vec<Value> {
        self.peer.prompts(model)
    }

    /// Returns the last request to a model.
    pub(super) fn newest(&self, model: &str) -> Value {
        self.asked(model).pop().unwrap_or_default()
    }

    /// Makes a model fail from now on.
    pub(super) fn fails(&self, model: &str) {
        self.known.lock().unwrap().failing = Some(model.to_owned());
    }

    /// Makes no model fail from now on.
    pub(super) fn recovers(&self) {
        self.known.lock().unwrap().failing = None;
    }

    /// Makes `chat` ask for a file so many times before it replies, and report the size of its
    /// prompts.
    pub(super) fn reads(&self, times: u32) {
        self.known.lock().unwrap().reads = times;
    }

    /// Makes summaries take so long from now on.
    pub(super) fn slow_ms(&self, ms: u64) {
        self.known.lock().unwrap().slow_ms = ms;
    }
}

/// The messages of a request, each with its role.
pub(super) fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| {
            format!(
                "{}: {}",
                message["role"].as_str().unwrap(),
                text_of(message)
            )
        })
        .collect()
}

/// A summary is numbered. Everything else is answered with the first word that was said last.
/// A request for a file reports a token for each four bytes of the prompt.
fn answer(prompt: &Value, known: &Mutex<Known>) -> Says {
    let is_chat = prompt["model"] == "chat";
    let bytes = prompt["messages"].to_string().len();
    let (fails, slow_ms, summaries, reads) = {
        let mut known = known.lock().unwrap();
        known.summaries += usize::from(prompt["model"] == "memory");
        let fails = known.failing.as_deref() == prompt["model"].as_str();
        let reads = if is_chat { known.reads } else { 0 };
        if reads > 0 && !fails {
            known.reads -= 1;
        }
        (fails, known.slow_ms, known.summaries, reads)
    };
    if prompt["model"] == "memory" {
        sleep(Duration::from_millis(slow_ms));
    }
    if fails {
        return Says::Json(503, json!({}));
    }
    if reads > 0 {
        let call = json!({
            "id": format!("read_{reads}"), "type": "function",
            "function": { "name": "read_file", "arguments": r#"{"path":"/data/big.txt"}"# },
        });
        let reading = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        return Says::Json(200, counted(prompt, &reading, bytes as u64 / 4 + 10));
    }
    let text = if prompt["model"] == "memory" {
        format!("summary {summaries}")
    } else {
        // Notices stand in the same message before what was said.
        let last = last_words(prompt);
        let said = last.rsplit("\n\n").next();
        let first = said.and_then(|said| said.split_whitespace().next());
        format!("reply to {}", first.unwrap_or_default())
    };
    Says::Json(200, counted(prompt, &saying(&text), filled(prompt)))
}
