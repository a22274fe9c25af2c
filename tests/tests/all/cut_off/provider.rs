//! A model provider for a test, in two dialects. A model's name says how its reply ends, or why
//! there is none.

use agent_host_tests::prompt::prompt;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// The key with which it is asked.
pub(super) const KEY: &str = "sk-test-0123456789abcdefghijklmnopqrstuv";

/// See the module.
pub(super) struct Provider {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tasks end with the test's runtime"
    )]
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let shared = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { address, asked }
    }

    pub(super) fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The last request.
    pub(super) fn asked(&self) -> String {
        let asked = self.asked.lock().unwrap();
        asked.last().map(Value::to_string).unwrap_or_default()
    }
}

async fn serve(mut stream: TcpStream, asked: Arc<Mutex<Vec<Value>>>) -> std::io::Result<()> {
    let Some(prompt) = prompt(&mut stream).await? else {
        return Ok(());
    };
    asked.lock().unwrap().push(prompt.clone());
    let error = |message: &str| json!({ "error": { "message": message } }).to_string();
    let (status, more, body) = match prompt["model"].as_str().unwrap() {
        "locked" => {
            let message = format!("Incorrect API key provided: {KEY}");
            (
                "401 Unauthorized",
                "content-type: application/json",
                error(&message),
            )
        }
        "busy" => (
            "429 Too Many Requests",
            "content-type: application/json\r\nretry-after: 120",
            error("Slow down, please"),
        ),
        model => ("200 OK", "content-type: text/event-stream", streamed(model)),
    };
    // An event stream ends with its last event here, and the answer does not: one byte is missing.
    let is_stream = status == "200 OK";
    let length = body.len() + usize::from(is_stream);
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    if is_stream {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    }
    stream.shutdown().await
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
    let piece = |delta: Value, finish: Value| {
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }).to_string()
    };
    vec![
        piece(json!({ field: words[0] }), Value::Null),
        piece(json!({ field: words[1] }), Value::Null),
        piece(json!({}), json!(finish)),
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
