//! A model provider for a test, in two dialects. A model's name says how its reply ends, or why
//! there is none.

use agent_host_tests::peer::{Peer, ReceivedRequest, Says};
use serde_json::{Value, json};

/// The key with which it is asked.
pub(super) const KEY: &str = "sk-test-0123456789abcdefghijklmnopqrstuv";

pub(super) fn provider() -> Peer {
    Peer::new(|asked, _| answer(asked))
}

fn answer(asked: &ReceivedRequest) -> Says {
    let error = |message: &str| json!({ "error": { "message": message } });
    match asked.body["model"].as_str().unwrap() {
        "locked" => Says::Json(401, error(&format!("Incorrect API key provided: {KEY}"))),
        "busy" => {
            let body = error("Slow down, please").to_string();
            let head = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n\
                        retry-after: 120\r\nconnection: close";
            let length = body.len();
            let whole = format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}");
            Says::Raw(whole.into_bytes())
        }
        model => {
            // The stream ends with its last event, and the answer does not: one byte is missing.
            let body = streamed(model);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
            let length = body.len() + 1;
            let whole = format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}");
            Says::Open(whole.into_bytes())
        }
    }
}

/// A streamed reply whose end has this reason.
fn streamed(reason: &str) -> String {
    let events = match reason {
        "max_tokens" | "end_turn" | "refusal_of_claude" => of_anthropic(reason),
        _ => of_openai(reason),
    };
    let lines = events.iter().map(|event| format!("data: {event}\n\n"));
    lines.collect()
}

fn of_openai(reason: &str) -> Vec<String> {
    // A refusal comes in a field of its own, and ends as any reply.
    let (field, finish) = match reason {
        "refusal" => ("refusal", "stop"),
        "silent" => ("content", "stop"),
        reason => ("content", reason),
    };
    let words = if reason == "silent" {
        ["", ""]
    } else {
        ["Once ", "upon"]
    };
    let chunk = |delta: Value, finish: Value| {
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }).to_string()
    };
    vec![
        chunk(json!({ field: words[0] }), Value::Null),
        chunk(json!({ field: words[1] }), Value::Null),
        chunk(json!({}), json!(finish)),
        "[DONE]".to_owned(),
    ]
}

fn of_anthropic(reason: &str) -> Vec<String> {
    let reason = reason.strip_suffix("_of_claude").unwrap_or(reason);
    let delta = |text: &str| {
        json!({
            "type": "content_block_delta", "index": 0,
            "delta": { "type": "text_delta", "text": text },
        })
    };
    let block = json!({ "type": "text", "text": "" });
    let events = [
        json!({ "type": "message_start", "message": {} }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        delta("Once "),
        delta("upon"),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason } }),
        json!({ "type": "message_stop" }),
    ];
    events.iter().map(Value::to_string).collect()
}
