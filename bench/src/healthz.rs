//! Requests per second of `/healthz` behind the host's own server, beside those of a bare axum that
//! says as little.

use crate::measure::in_turns;
use crate::report::{Bar, Row};
use anyhow::{Context, ensure};
use api::{Access, Api, Limits, Server};
use axum::Router;
use axum::routing::get;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Connections that ask at the same time.
const CLIENTS: usize = 32;
/// Length of one measurement.
const SLICE: Duration = Duration::from_millis(350);
/// Bytes of an answer's head that are looked at.
const HEAD_BYTES_MAX: usize = 4 << 10;

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let limits = Limits::default();
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), limits)?;
    let ours = server.address()?;
    let stopper = server.stopper();
    let api = Api::new(
        Access::new("bench", ours, &[]),
        limits,
        folder.path().join("backups"),
        stopper.stopping(),
    );
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let peer = listener.local_addr()?;
    let mut servers = JoinSet::new();
    servers.spawn(server.serve(api::router(&api)));
    servers.spawn(async move {
        // It serves until it is dropped.
        let _ = axum::serve(
            listener,
            Router::new().route("/healthz", get(async || "ok")),
        )
        .await;
    });
    let pair = in_turns(async || rate(ours).await, async || rate(peer).await).await?;
    stopper.stop(Duration::ZERO).await;
    servers.shutdown().await;
    Ok(vec![Row::new(
        "GET /healthz / bare axum",
        "req/s",
        pair,
        Bar::AtLeast(0.85),
    )])
}

/// Requests per second of all clients together.
async fn rate(address: SocketAddr) -> anyhow::Result<f64> {
    let mut clients = JoinSet::new();
    let began = Instant::now();
    for _ in 0..CLIENTS {
        clients.spawn(client(address, began + SLICE));
    }
    let mut requests = 0;
    while let Some(client) = clients.join_next().await {
        requests += client??;
    }
    Ok(f64::from(requests) / began.elapsed().as_secs_f64())
}

/// Asks again as soon as it is answered; how often it was.
async fn client(address: SocketAddr, until: Instant) -> anyhow::Result<u32> {
    const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.write_all(REQUEST).await?;
    let mut answer = vec![0; answer_bytes(&mut stream).await?];
    let mut answered = 1;
    while Instant::now() < until {
        stream.write_all(REQUEST).await?;
        // Every answer is as long as the first: only the date in it changes.
        stream.read_exact(&mut answer).await?;
        answered += 1;
    }
    ensure!(
        answer.starts_with(b"HTTP/1.1 200 "),
        "not the answer that was expected"
    );
    Ok(answered)
}

/// Reads one answer and says how many bytes it has.
async fn answer_bytes(stream: &mut TcpStream) -> anyhow::Result<usize> {
    let mut bytes = Vec::new();
    loop {
        ensure!(stream.read_buf(&mut bytes).await? > 0, "the server hung up");
        ensure!(
            bytes.len() < HEAD_BYTES_MAX,
            "the answer is longer than expected"
        );
        let text = std::str::from_utf8(&bytes)?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .context("an answer without a length")?;
        if body.len() >= length.parse()? {
            return Ok(bytes.len());
        }
    }
}
