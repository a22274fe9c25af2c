//! A model provider for a test, in two dialects. It keeps the bodies of its requests, counts those
//! for its list of models, and is slow on demand.

use agent_host_tests::peer::{self, ReceivedRequest, Says};
use agent_host_tests::prompt::saying;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

/// The state of the peer.
#[derive(Default)]
struct Known {
    /// Milliseconds before a reply.
    slow_ms: u64,
    /// True if every call fails with status 500.
    fails: bool,
    /// Requests that are being answered, and the most of them at once.
    open: usize,
    open_most: usize,
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
        let peer = peer::Peer::new(move |asked, _| answer(asked, &shared));
        Self { peer, known }
    }

    pub(super) fn base(&self) -> String {
        self.peer.url("")
    }

    fn asked(&self, method: &str) -> impl Iterator<Item = ReceivedRequest> {
        let asked = self.peer.asked().into_iter();
        asked.filter(move |asked| asked.method == method)
    }

    /// The bodies of the calls so far.
    pub(super) fn bodies(&self) -> Vec<Value> {
        self.asked("POST").map(|asked| asked.body).collect()
    }

    /// Requests for its list so far.
    pub(super) fn lists(&self) -> usize {
        self.asked("GET").count()
    }

    /// Makes replies take so long from now on.
    pub(super) fn slow_ms(&self, ms: u64) {
        self.known.lock().unwrap().slow_ms = ms;
    }

    /// Has every call fail from now on, or no more.
    pub(super) fn fails(&self, fails: bool) {
        self.known.lock().unwrap().fails = fails;
    }

    /// Forgets how many calls were being answered at once.
    pub(super) fn forget_most(&self) {
        self.known.lock().unwrap().open_most = 0;
    }

    /// The most calls that were being answered at once.
    pub(super) fn open_most(&self) -> usize {
        self.known.lock().unwrap().open_most
    }
}

fn answer(asked: &ReceivedRequest, known: &Mutex<Known>) -> Says {
    if asked.method == "GET" {
        return Says::Json(200, json!({ "data": [{ "id": "m-1" }, { "id": "m-2" }] }));
    }
    let (slow_ms, fails) = {
        let mut known = known.lock().unwrap();
        known.open += 1;
        known.open_most = known.open_most.max(known.open);
        (known.slow_ms, known.fails)
    };
    sleep(Duration::from_millis(slow_ms));
    known.lock().unwrap().open -= 1;
    if fails {
        return Says::Body(500, "text/plain", Vec::new());
    }
    if asked.body["stream"] != true {
        return Says::Json(200, whole_of_openai());
    }
    let events = if asked.path.contains("/v1/messages") {
        of_anthropic()
    } else {
        of_openai()
    };
    Says::Body(200, "text/event-stream", events.into_bytes())
}

fn whole_of_openai() -> Value {
    json!({
        "choices": [{ "index": 0, "message": saying("well"), "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42 },
    })
}

fn of_openai() -> String {
    let usage = json!({ "prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42 });
    let events = [
        json!({ "choices": [{ "index": 0, "delta": { "content": "well" } }] }).to_string(),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string(),
        json!({ "choices": [], "usage": usage }).to_string(),
        "[DONE]".to_owned(),
    ];
    events.map(|event| format!("data: {event}\n\n")).concat()
}

fn of_anthropic() -> String {
    let block = json!({ "type": "text", "text": "" });
    let delta = json!({ "type": "text_delta", "text": "well" });
    let events = [
        json!({ "type": "message_start", "message": {} }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "message_stop" }),
    ];
    events.map(|event| format!("data: {event}\n\n")).concat()
}
