//! The requests that a host sends to a provider that a test plays.

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

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
