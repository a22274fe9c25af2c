//! Event streams: what one of ten thousand takes of memory, and how long a committed event takes
//! until the last of them has it, beside a bare axum that sends the same bytes to as many.

mod bare;
mod crowd;
mod line;

pub(crate) use bare::{FLAG as BARE_FLAG, serve as serve_bare};
pub(crate) use crowd::{FLAG as CROWD_FLAG, gather};

use crate::measure::{Pair, in_turns, median};
use crate::process::{allow_files, anonymous_bytes};
use crate::report::{Bar, Row};
use crate::served;
use crate::size::{Grouped, Size};
use anyhow::Context;
use bare::Bare;
use crowd::{Crowd, nanoseconds};
use line::Line;
use serde_json::json;
use std::net::SocketAddr;

/// Clients of each of the two.
const CLIENTS: usize = 10_000;
/// Events of one measurement, one after the other.
const EVENTS: usize = 5;
/// Files that a process opens beside its connections.
const FILES_BESIDE: usize = 500;
/// The path on which opening a session is one event of the agent that is followed.
const SESSIONS: &str = "/api/agents/assistant/sessions";

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let clients = size.scaled(CLIENTS);
    allow_files((clients + FILES_BESIDE) as u64)?;
    let folder = served::folder().await?;
    let host = served::start(&folder).await?;
    let opened = host.post(SESSIONS, &json!({})).await;
    // In the view `log`: an opened session means nothing to a client that shows one session.
    let path = format!("/api/agents/{}/stream?view=log", opened.text("agent_id"));
    // The first stream makes what all of them share, and shows what an event looks like.
    let mut first = host.follow(&path, None).await;
    host.post(SESSIONS, &json!({})).await;
    let frame = first.receive().await.context("the stream ended")?;
    let bare = Bare::start(&frame).await?;

    let address = host.base.trim_start_matches("http://").parse()?;
    let stream = Followed {
        process: served::process(&host),
        address,
        path: &path,
        happens: SESSIONS,
        token: &host.token,
    };
    let mut ours = Fan::out_to(clients, stream).await?;
    let mut peer = Fan::out_to(clients, bare.followed()?).await?;
    let p99 = in_turns(async || ours.p99_ms().await, async || peer.p99_ms().await).await?;
    let memory = Pair {
        ours: ours.kib_of_each(clients)?,
        peer: peer.kib_of_each(clients)?,
    };
    let p50 = Pair {
        ours: median(&mut ours.p50s_ms),
        peer: median(&mut peer.p50s_ms),
    };
    host.kill().await;
    let clients = Grouped(clients);
    Ok(vec![
        Row::new(
            format!("memory of each of {clients} streams / bare SSE"),
            "KiB",
            memory,
            Bar::Within(1.2),
        ),
        Row::new(
            format!("commit to {clients} clients, p99 / bare SSE"),
            "ms",
            p99,
            Bar::Within(1.5),
        ),
        Row::new("the same, p50", "ms", p50, Bar::Reported),
    ])
}

/// A stream that can be followed.
#[derive(Debug, Clone, Copy)]
struct Followed<'a> {
    process: u32,
    address: SocketAddr,
    path: &'a str,
    /// The path of a request that makes an event happen.
    happens: &'a str,
    token: &'a str,
}

/// A server with all its followers.
#[derive(Debug)]
struct Fan {
    process: u32,
    bytes_before: u64,
    crowd: Crowd,
    line: Line,
    p50s_ms: Vec<f64>,
}

impl Fan {
    async fn out_to(clients: usize, followed: Followed<'_>) -> anyhow::Result<Self> {
        let Followed {
            process,
            address,
            path,
            happens,
            token,
        } = followed;
        let mut line = Line::connect(address, happens, token).await?;
        line.send().await?;
        let bytes_before = anonymous_bytes(process)?;
        let crowd = Crowd::gather(address, path, token, clients).await?;
        Ok(Self {
            process,
            bytes_before,
            crowd,
            line,
            p50s_ms: Vec::new(),
        })
    }

    /// Milliseconds until all but the last hundredth of the clients have an event, the median of
    /// some. They count from the request that makes it happen.
    async fn p99_ms(&mut self) -> anyhow::Result<f64> {
        let mut p99s = Vec::with_capacity(EVENTS);
        for _ in 0..EVENTS {
            self.crowd.await_one().await?;
            let began = nanoseconds();
            self.line.send().await?;
            let [p50, p99] = self
                .crowd
                .arrived()
                .await?
                .map(|at| at.saturating_sub(began) as f64 / 1e6);
            self.p50s_ms.push(p50);
            p99s.push(p99);
        }
        Ok(median(&mut p99s))
    }

    /// Returns the memory that the server has gained for each client.
    fn kib_of_each(&self, clients: usize) -> anyhow::Result<f64> {
        let resident = anonymous_bytes(self.process)?.saturating_sub(self.bytes_before);
        Ok(resident as f64 / 1024.0 / clients as f64)
    }
}
