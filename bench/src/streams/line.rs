//! One connection on which the same request is sent again and again.

use crate::answer;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
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
        answer::read(&mut self.stream, "2").await
    }
}
