//! Connectors that poll and hear nothing: the processor time of a host with 1,000 of them, and its
//! anonymous memory for each.

use crate::idle::{alone, resident};
use crate::process::processor_time;
use crate::report::{Bar, Row};
use crate::served;
use crate::size::{Grouped, Size};
use agent_host_tests::process::Folder;
use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Connectors.
const CONNECTORS: usize = 1_000;
/// Connectors of the host that is compared with. They are polled as often together, so that it has
/// all that polls share.
const FEW: usize = 32;
/// Time for which the processor is watched: nearly one poll of each.
const WATCHED: Duration = Duration::from_secs(60);
/// Time limit until each has been polled.
const PATIENCE: Duration = Duration::from_secs(180);
/// The bars: hundredths of a processor, and KiB of a connector.
const PROCESSOR_PERCENT_MAX: f64 = 2.0;
const CONNECTOR_KIB_MAX: f64 = 16.0;

/// The use that a host makes of the machine.
struct Used {
    bytes: u64,
    percent: f64,
}

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let count = size.scaled(CONNECTORS);
    let service = Telegram::start().await?;
    let folder = served::folder().await?;
    folder.warm(&["telegram"]).await;
    let few = used(&folder, &service, FEW.min(count / 2)).await?;
    let many = used(&folder, &service, count).await?;
    let more = count - FEW.min(count / 2);
    let kib = many.bytes.saturating_sub(few.bytes) as f64 / 1024.0 / more as f64;
    let count = Grouped(count);
    Ok(vec![
        Row::new(
            format!("a processor, for {count} connectors that poll"),
            "%",
            alone(many.percent),
            Bar::AtMost(PROCESSOR_PERCENT_MAX),
        ),
        Row::new(
            "the same for a few, polled as often together",
            "%",
            alone(few.percent),
            Bar::Reported,
        ),
        Row::new(
            format!("each of {count} connectors that poll"),
            "KiB",
            alone(kib),
            Bar::AtMost(CONNECTOR_KIB_MAX),
        ),
    ])
}

/// Returns the use of a host with so many connectors, each of which was polled.
async fn used(folder: &Folder, service: &Telegram, count: usize) -> anyhow::Result<Used> {
    folder.configure(config(service.address, count));
    let before = *service.polls.borrow();
    let host = served::start(folder).await?;
    let mut polls = service.polls.subscribe();
    let all = polls.wait_for(|polls| *polls >= before + count);
    tokio::time::timeout(PATIENCE, all)
        .await
        .context("not all connectors were polled")??;
    let bytes = resident(&host).await?;
    let process = served::process(&host);
    let begin = Instant::now();
    let time = processor_time(process)?;
    tokio::time::sleep(WATCHED).await;
    let worked = processor_time(process)?.saturating_sub(time);
    let percent = 100.0 * worked.as_secs_f64() / begin.elapsed().as_secs_f64();
    host.kill().await;
    Ok(Used { bytes, percent })
}

/// A server in the place of Telegram, which has no news.
struct Telegram {
    address: SocketAddr,
    /// Number of polls so far.
    polls: Arc<watch::Sender<usize>>,
    /// It serves until it is dropped.
    _server: JoinSet<()>,
}

impl Telegram {
    async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let address = listener.local_addr()?;
        let polls = Arc::new(watch::Sender::new(0));
        let router = Router::new()
            .fallback(no_news)
            .with_state(Arc::clone(&polls));
        let mut server = JoinSet::new();
        server.spawn(async move {
            // It serves until it is dropped.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            polls,
            _server: server,
        })
    }
}

async fn no_news(State(polls): State<Arc<watch::Sender<usize>>>) -> Response {
    polls.send_modify(|polls| *polls += 1);
    let body = json!({ "ok": true, "result": [] }).to_string();
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

fn config(service: SocketAddr, count: usize) -> Value {
    let port = service.port();
    let connector = json!({
        "component": "telegram", "agent": "assistant",
        "configuration": { "server": format!("http://{service}"), "longPollS": 0 },
    });
    let connectors: Map<String, Value> = (0..count)
        .map(|number| (format!("c{number}"), connector.clone()))
        .collect();
    json!({
        "agents": [{ "agentId": "assistant", "displayName": "Assistant" }],
        "components": { "telegram": {
            "network": [{
                "host": "127.0.0.1", "schemes": ["http"], "ports": [port], "methods": ["POST"],
                "privateAddresses": ["127.0.0.1"],
            }],
            "secrets": [{
                "secret": "telegram", "host": "127.0.0.1", "port": port,
                "slot": { "path": "/bot" },
            }],
        } },
        "connectors": connectors,
        "secrets": { "telegram": { "command": ["echo", "123456:token-of-a-bot"] } },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "demo": { "provider": "scripted", "model": "demo" } },
    })
}
