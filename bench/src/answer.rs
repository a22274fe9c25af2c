//! One answer over HTTP, read from a connection that stays open.

use anyhow::{Context, ensure};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Bytes of an answer that are read.
const BYTES_MAX: usize = 1 << 20;

/// Reads an answer, whose status has to begin with these digits.
///
/// # Errors
/// The connection is lost, or the answer is another one.
pub(crate) async fn read(stream: &mut TcpStream, status: &str) -> anyhow::Result<()> {
    let expected = format!("HTTP/1.1 {status}");
    let mut read = Vec::new();
    loop {
        ensure!(stream.read_buf(&mut read).await? > 0, "the server hung up");
        ensure!(read.len() < BYTES_MAX, "the answer is too long");
        let text = std::str::from_utf8(&read)?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        ensure!(
            head.starts_with(&expected),
            "not the answer that was expected: {text}"
        );
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .context("an answer without a length")?;
        if body.len() >= length.parse()? {
            return Ok(());
        }
    }
}
