//! One connection on which the same request is sent again and again.

use anyhow::{Context, ensure};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection and the request that is sent over it.
#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    request: String,
}

impl Line {
    /// Connects, to send a request that makes something happen.
    pub(super) async fn connect(
        address: SocketAddr,
        path: &str,
        token: &str,
    ) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
             {token}\r\ncontent-type: application/json\r\n\
             content-length: 2\r\n\r\n{{}}"
        );
        Ok(Self { stream, request })
    }

    /// Sends it, and reads the answer.
    pub(super) async fn send(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(self.request.as_bytes()).await?;
        let mut read = Vec::new();
        loop {
            ensure!(
                self.stream.read_buf(&mut read).await? > 0,
                "the server hung up"
            );
            let text = std::str::from_utf8(&read)?;
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            ensure!(
                head.starts_with("HTTP/1.1 2"),
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
}
