//! A model provider for a test. It keeps the requests, reports the tokens that it used, and fails
//! or is slow on demand.

use agent_host_tests::prompt::prompt;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// The state of the peer.
#[derive(Default)]
struct Known {
    asked: Vec<Value>,
    failing: Option<String>,
    slow_ms: u64,
    /// Number of times that `chat` asks for a file before it replies.
    reads: u32,
    /// Bytes of a prompt for `chat` that are too many.
    bytes_max: Option<usize>,
}

/// The provider.
pub(super) struct Peer {
    address: SocketAddr,
    known: Arc<Mutex<Known>>,
}

impl Peer {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tasks end with the test's runtime"
    )]
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let known = Arc::new(Mutex::new(Known::default()));
        let shared = known.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { address, known }
    }

    pub(super) fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the requests to a model so far.
    pub(super) fn asked(&self, model: &str) -> Vec<Value> {
        self.known
            .lock()
            .unwrap()
            .asked
            .iter()
            .filter(|asked| asked["model"] == model)
            .cloned()
            .collect()
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

    /// Makes `chat` refuse prompts with more bytes.
    pub(super) fn takes_at_most(&self, bytes: usize) {
        self.known.lock().unwrap().bytes_max = Some(bytes);
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
        .map(|message| format!("{}: {}", message["role"].as_str().unwrap(), said(message)))
        .collect()
}

fn said(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        other => other
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// A request for a file. It reports a token for each four bytes of the prompt.
fn reading(prompt: &Value, left: u32) -> Value {
    let call = json!({
        "id": format!("read_{left}"), "type": "function",
        "function": { "name": "read_file", "arguments": r#"{"path":"/data/big.txt"}"# },
    });
    let used = prompt["messages"].to_string().len() / 4;
    json!({
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": null, "tool_calls": [call] },
            "finish_reason": "tool_calls",
        }],
        "model": prompt["model"],
        "usage": { "prompt_tokens": used, "completion_tokens": 10, "total_tokens": used + 10 },
    })
}

/// A summary is numbered. Everything else is answered with the first word that was said last;
/// `fill:3600` in that says how many tokens it took.
fn answer(prompt: &Value, summaries: usize) -> Value {
    let last = said(prompt["messages"].as_array().unwrap().last().unwrap());
    let text = match prompt["model"].as_str() {
        Some("memory") => format!("summary {summaries}"),
        // Notices stand in the same message before what was said.
        _ => format!(
            "reply to {}",
            last.rsplit("\n\n")
                .next()
                .and_then(|said| said.split_whitespace().next())
                .unwrap_or_default()
        ),
    };
    let used: u64 = last
        .split_whitespace()
        .find_map(|word| word.strip_prefix("fill:")?.parse().ok())
        .unwrap_or(100);
    json!({
        "choices": [{
            "index": 0, "message": { "role": "assistant", "content": text },
            "finish_reason": "stop",
        }],
        "model": prompt["model"],
        "usage": { "prompt_tokens": used - 10, "completion_tokens": 10, "total_tokens": used },
    })
}

async fn serve(mut stream: TcpStream, known: Arc<Mutex<Known>>) -> std::io::Result<()> {
    let Some(prompt) = prompt(&mut stream).await? else {
        return Ok(());
    };
    let is_chat = prompt["model"] == "chat";
    let (fails, slow_ms, summaries, too_long, reads) = {
        let mut known = known.lock().unwrap();
        let bytes = prompt["messages"].to_string().len();
        known.asked.push(prompt.clone());
        let summaries = known
            .asked
            .iter()
            .filter(|asked| asked["model"] == "memory")
            .count();
        (
            known.failing.as_deref() == prompt["model"].as_str(),
            known.slow_ms,
            summaries,
            is_chat && known.bytes_max.is_some_and(|max| bytes > max),
            if is_chat { known.reads } else { 0 },
        )
    };
    if reads > 0 && !too_long && !fails {
        known.lock().unwrap().reads -= 1;
    }
    if prompt["model"] == "memory" {
        tokio::time::sleep(Duration::from_millis(slow_ms)).await;
    }
    let (status, body) = if fails {
        ("503 Service Unavailable", json!({}))
    } else if too_long {
        let error = json!({ "error": { "code": "context_length_exceeded" } });
        ("400 Bad Request", error)
    } else if reads > 0 {
        ("200 OK", reading(&prompt, reads))
    } else {
        ("200 OK", answer(&prompt, summaries))
    };
    let body = body.to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: \
                 {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
