//! A model provider for a test, in two dialects. It keeps the bodies of its requests, counts those
//! for its list of models, and is slow on demand.

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The state of the peer.
#[derive(Default)]
struct Known {
    bodies: Vec<Value>,
    lists: usize,
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
        format!("http://{}", self.address)
    }

    /// The bodies of the calls so far.
    pub(super) fn bodies(&self) -> Vec<Value> {
        self.known.lock().unwrap().bodies.clone()
    }

    /// Requests for its list so far.
    pub(super) fn lists(&self) -> usize {
        self.known.lock().unwrap().lists
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

/// Reads a request: its first line, and its body if it has one.
async fn request(stream: &mut TcpStream) -> std::io::Result<Option<(String, Value)>> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let line = head.lines().next().unwrap_or_default().to_owned();
        if line.starts_with("GET ") {
            return Ok(Some((line, Value::Null)));
        }
        if let Ok(body) = serde_json::from_str(body) {
            return Ok(Some((line, body)));
        }
    }
}

async fn serve(mut stream: TcpStream, known: Arc<Mutex<Known>>) -> std::io::Result<()> {
    let Some((line, body)) = request(&mut stream).await? else {
        return Ok(());
    };
    if line.starts_with("GET ") {
        known.lock().unwrap().lists += 1;
        let list = json!({ "data": [{ "id": "m-1" }, { "id": "m-2" }] });
        let kind = "application/json";
        return answer(&mut stream, "200 OK", kind, &list.to_string()).await;
    }
    let streams = body["stream"] == true;
    let (slow_ms, fails) = {
        let mut known = known.lock().unwrap();
        known.bodies.push(body);
        known.open += 1;
        known.open_most = known.open_most.max(known.open);
        (known.slow_ms, known.fails)
    };
    tokio::time::sleep(Duration::from_millis(slow_ms)).await;
    known.lock().unwrap().open -= 1;
    if fails {
        let status = "500 Internal Server Error";
        return answer(&mut stream, status, "text/plain", "").await;
    }
    if !streams {
        let whole = whole_of_openai().to_string();
        return answer(&mut stream, "200 OK", "application/json", &whole).await;
    }
    let events = if line.contains("/v1/messages") {
        of_anthropic()
    } else {
        of_openai()
    };
    answer(&mut stream, "200 OK", "text/event-stream", &events).await
}

async fn answer(
    stream: &mut TcpStream,
    status: &str,
    kind: &str,
    body: &str,
) -> std::io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: \
         close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

fn whole_of_openai() -> Value {
    json!({
        "choices": [{
            "index": 0, "message": { "role": "assistant", "content": "well" },
            "finish_reason": "stop",
        }],
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
