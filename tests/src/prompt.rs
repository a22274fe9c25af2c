//! A provider that a test plays, and the prompts that a host sends to it.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The prompts that a provider has received, in order.
pub type Received = Arc<Mutex<Vec<Value>>>;

/// A rule by which a provider answers: the message that follows all prompts so far, the newest
/// last; none for a call that is never answered.
pub type Answer = fn(&[Value]) -> Option<Value>;

/// Plays a provider in OpenAI's form until the test ends, and returns its base URL.
///
/// # Panics
/// There is no port on loopback.
#[expect(
    clippy::disallowed_methods,
    reason = "the tasks end with the test's runtime"
)]
pub async fn provider(received: &Received, answer: Answer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let received = received.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, received.clone(), answer));
        }
    });
    format!("http://{address}/v1")
}

async fn serve(mut stream: TcpStream, received: Received, answer: Answer) -> std::io::Result<()> {
    let Some(prompt) = prompt(&mut stream).await? else {
        return Ok(());
    };
    let message = {
        let mut received = received.lock().expect("no panic");
        received.push(prompt);
        answer(&received)
    };
    let Some(message) = message else {
        return std::future::pending().await;
    };
    let finish = if message.get("tool_calls").is_some_and(Value::is_array) {
        "tool_calls"
    } else {
        "stop"
    };
    let body = json!({
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }], "model": "m",
    });
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.to_string().as_bytes()).await?;
    stream.shutdown().await
}

/// The JSON body of a request, as soon as it is there whole; none when the connection ends before.
///
/// # Errors
/// The connection breaks.
pub async fn prompt(stream: &mut TcpStream) -> std::io::Result<Option<Value>> {
    let mut request = Vec::new();
    loop {
        let mut piece = vec![0; 16 << 10];
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            return Ok(None);
        }
        request.extend_from_slice(piece.get(..read).unwrap_or_default());
        let text = String::from_utf8_lossy(&request);
        let Some((_, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if let Ok(prompt) = serde_json::from_str(body) {
            return Ok(Some(prompt));
        }
    }
}
