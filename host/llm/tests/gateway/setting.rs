//! Shared parts of the tests of the gateway: configs with short limits, prompts, what models say,
//! and a watcher.

use crate::server::{Act, End, Server};
use agent_host_llm::{
    Completion, Config, Delta, DeltaSink, Failure, Gateway, NoDeltas, Reason, Records, Trail,
};
use domain::digest::Salt;
use domain::message::{Message, Part, Role};
use domain::model::{Prompt, Usage};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The key that must not be seen anywhere.
pub(crate) const CANARY: &str = "sk-CANARY-0123456789";

/// Returns a config of the model `m` of provider `p`, at the first URL. With a second URL there is
/// `other` to fall back on.
pub(crate) fn config(kind: &str, urls: &[&str]) -> Value {
    let mut config = json!({
        "defaultModel": "m",
        "providers": {},
        "models": {},
        "retry": {"attemptsMax": 3, "baseMs": 1, "delayMsMax": 5, "retryAfterMsMax": 2_000},
        "timeouts": {"connectMs": 300, "firstTokenMs": 500, "idleMs": 500, "wholeMs": 2_000, "totalMs": 10_000},
    });
    for (url, (provider, alias)) in urls.iter().zip([("p", "m"), ("q", "other")]) {
        config["providers"][provider] =
            json!({"kind": kind, "baseUrl": url, "apiKeyEnv": "MODEL_KEY"});
        config["models"][alias] = json!({"provider": provider, "model": format!("{alias}-1")});
    }
    if urls.len() > 1 {
        config["models"]["m"]["fallbacks"] = json!(["other"]);
    }
    config
}

pub(crate) fn gateway(config: Value) -> Gateway {
    let config: Config = serde_json::from_value(config).unwrap();
    Gateway::new(config, Path::new("."), &|name| {
        (name == "MODEL_KEY").then(|| CANARY.to_owned())
    })
    .unwrap()
}

/// Asks a model of a provider of this kind, whose server acts so.
pub(crate) async fn asked_of(kind: &str, acts: Vec<Act>) -> (Completion, Server, Watcher) {
    let server = Server::start(acts).await;
    let watcher = Watcher::default();
    let gateway = gateway(config(kind, &[&server.url]));
    let completion = gateway.complete(&prompt(), &watcher).await;
    (completion, server, watcher)
}

/// Asks a model of a server that speaks as OpenAI's does.
pub(crate) async fn asked(acts: Vec<Act>) -> (Completion, Server, Watcher) {
    asked_of("openai-compatible", acts).await
}

/// Asks the model of such a config.
pub(crate) async fn completed(config: Value) -> Completion {
    gateway(config).complete(&prompt(), &NoDeltas).await
}

/// Returns the reason why a model did not answer.
pub(crate) fn reason(completion: &Completion) -> Option<Reason> {
    match completion.result {
        Err(Failure::Unavailable { reason, .. }) => Some(reason),
        _ => None,
    }
}

/// Returns the error of an attempt.
pub(crate) fn error_of(completion: &Completion, attempt: usize) -> &str {
    completion.attempts[attempt].error.as_deref().unwrap()
}

pub(crate) fn usage(input_tokens: u64, output_tokens: u64, cached_tokens: u64) -> Option<Usage> {
    Some(Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
    })
}

/// A call of a tool as a message has it.
pub(crate) fn call(call_id: &str, name: &str, arguments: &str) -> Part {
    Part::Call {
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

pub(crate) fn message(id: u64, role: Role, parts: Vec<Part>) -> Message {
    Message {
        id,
        role,
        parts,
        origin: "host".to_owned(),
        untrusted: false,
        speaker: None,
        answers: None,
        marked_elsewhere: None,
        salt: Salt::default(),
    }
}

pub(crate) fn prompt() -> Prompt {
    Prompt {
        model: None,
        system: vec!["Be brief.".to_owned()],
        stable_blocks: 1,
        messages: vec![message(1, Role::User, vec![Part::text("hello")])],
        tools: Vec::new(),
        max_tokens: None,
        reply_schema: None,
        sampling: domain::sampling::Sampling::default(),
    }
}

/// A call that a watcher received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WatchedCall {
    Delta(u32, u64, Delta),
    Discarded(u32),
}

#[derive(Debug, Default)]
pub(crate) struct Watcher(Mutex<Vec<WatchedCall>>);

impl Watcher {
    pub(crate) fn reported(&self) -> Vec<WatchedCall> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the text that was shown, without attempts that were discarded.
    pub(crate) fn text(&self) -> String {
        let reported = self.reported();
        let stands = |attempt: &u32| !reported.contains(&WatchedCall::Discarded(*attempt));
        reported
            .iter()
            .filter_map(|reported| match reported {
                WatchedCall::Delta(attempt, _, Delta::Text(text)) if stands(attempt) => {
                    Some(text.as_str())
                }
                WatchedCall::Delta(..) | WatchedCall::Discarded(_) => None,
            })
            .collect()
    }
}

impl DeltaSink for Watcher {
    fn delta(&self, attempt: u32, seq: u64, delta: Delta) {
        self.0
            .lock()
            .unwrap()
            .push(WatchedCall::Delta(attempt, seq, delta));
    }

    fn discarded(&self, attempt: u32) {
        self.0.lock().unwrap().push(WatchedCall::Discarded(attempt));
    }
}

/// Keeps what a call did at the boundary.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    pub(crate) outcomes: Arc<Mutex<Vec<String>>>,
    pub(crate) keys: Arc<Mutex<Vec<String>>>,
}

impl Records for Kept {
    fn put(&self, record: egress::Record) {
        self.outcomes.lock().unwrap().push(format!(
            "{} {} {:?}",
            record.component, record.outcome, record.status
        ));
    }
}

impl Trail for Kept {
    fn records(&self) -> Arc<dyn Records> {
        Arc::new(self.clone())
    }

    fn key_used(&self, used: &str) {
        self.keys.lock().unwrap().push(used.to_owned());
    }
}

/// Returns the events of an OpenAI-like stream with these words.
pub(crate) fn words(words: &[&str]) -> Vec<String> {
    let delta = |word: &&str| {
        json!({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": null}]})
            .to_string()
    };
    words.iter().map(delta).collect()
}

pub(crate) const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
pub(crate) const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#;

/// A good stream.
pub(crate) fn good(text: &[&str]) -> Act {
    let words = words(text);
    let events = words
        .iter()
        .map(String::as_str)
        .chain([FINISH, USAGE, "[DONE]"]);
    Act::events(events, End::Clean)
}

/// A stream of some words that ends too early.
pub(crate) fn broken(text: &[&str], end: End) -> Act {
    Act::events(words(text).iter().map(String::as_str), end)
}

/// A good reply in one piece.
pub(crate) fn whole(text: &str) -> Act {
    Act::json(
        200,
        &json!({
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 2},
        }),
    )
}

/// A good stream of Anthropic's.
pub(crate) fn good_anthropic() -> Act {
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "SIG"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "hi "}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "there"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t1", "name": "look", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"at\":"}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "1}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let texts: Vec<String> = events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect();
    Act::Stream(
        texts.into_iter().map(String::into_bytes).collect(),
        End::Clean,
    )
}
