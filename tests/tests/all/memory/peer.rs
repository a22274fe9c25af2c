//! A model provider for these tests. It keeps the requests, replies to people, and as a memory
//! agent's model keeps every line that says `FACT:`.

use agent_host_tests::prompt::prompt;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// The provider.
pub(super) struct Peer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Peer {
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

    /// Returns the requests to a model so far, each as one text.
    pub(super) fn asked(&self, model: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .filter(|asked| asked["model"] == model)
            .map(|asked| asked["messages"].to_string())
            .collect()
    }
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

/// `fill:3600` in what was said last says how many tokens it took.
fn answer(prompt: &Value) -> Value {
    let messages = prompt["messages"].as_array().unwrap();
    let last = said(messages.last().unwrap());
    let reads = last.contains("Read this part of a conversation");
    let text = match prompt["model"].as_str() {
        Some("memory") if reads => {
            let facts = last.lines().filter_map(|line| line.split("FACT: ").nth(1));
            let notes: Vec<Value> = facts.map(|fact| json!({ "text": fact.trim() })).collect();
            json!({ "notes": notes }).to_string()
        }
        Some("memory") => "a summary".to_owned(),
        _ => "I see.".to_owned(),
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

async fn serve(mut stream: TcpStream, asked: Arc<Mutex<Vec<Value>>>) -> std::io::Result<()> {
    let Some(prompt) = prompt(&mut stream).await? else {
        return Ok(());
    };
    let body = answer(&prompt).to_string();
    asked.lock().unwrap().push(prompt);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: \
         {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
