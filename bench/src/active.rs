//! The memory of work in progress: anonymous memory of the host for each message whose turn waits
//! for a slow model, and for each delegation whose worker waits for one.

use crate::idle::{alone, resident};
use crate::report::{Bar, Row};
use crate::served;
use crate::size::Size;
use agent_host_tests::process::Host;
use anyhow::{Context, ensure};
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Messages in progress, and open delegations.
const OPEN: usize = 64;
/// Calls that the host and its provider let run at the same time: more than there are.
const CALLS_MAX: usize = 1_000;
/// The word that the model does not answer to.
const LEASED: &str = "hold-this";
/// Time limit until all that is to be open is.
const PATIENCE: Duration = Duration::from_secs(20);
/// KiB of a message in progress or an open delegation.
const OPEN_KIB_MAX: f64 = 10.0 * 1024.0;

/// Something that is opened many times.
struct Opened {
    /// The definition of the agents that it is said to.
    definition: &'static str,
    /// Words whose turn comes to its end.
    ending: &'static str,
    /// Words whose turn stays open.
    staying: &'static str,
}

/// A message to an agent whose model is slow.
const MESSAGE: Opened = Opened {
    definition: "talker",
    ending: "hello",
    staying: LEASED,
};
/// Work that an agent hands to a worker whose model is slow.
const DELEGATION: Opened = Opened {
    definition: "assistant",
    ending: "read at-once",
    staying: "read hold-this",
};

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let count = size.scaled(OPEN);
    let message = kib_of_each(&MESSAGE, count).await?;
    let delegation = kib_of_each(&DELEGATION, count).await?;
    let row = |name: &str, kib| {
        Row::new(
            format!("each of {count} {name}"),
            "KiB",
            alone(kib),
            Bar::AtMost(OPEN_KIB_MAX),
        )
    };
    Ok(vec![
        row("messages in progress", message),
        row("open delegations", delegation),
    ])
}

/// Returns the KiB that a host holds more for each of so many that are open. Each is with an agent
/// of its own, so that no limit of one agent keeps them from being open together.
async fn kib_of_each(opened: &Opened, count: usize) -> anyhow::Result<f64> {
    let model = Model::start().await?;
    let folder = served::folder().await?;
    folder.configure(config(model.address));
    let host = served::start(&folder).await?;
    // As many before come to their end, and make what is kept for the next.
    let chats: Vec<String> = stream::iter(0..count)
        .map(|number| begin(&host, opened, number))
        .buffer_unordered(count)
        .try_collect()
        .await?;
    let before = resident(&host).await?;
    for chat in &chats {
        let words = json!({ "content": opened.staying });
        let said = host.post(&format!("{chat}/messages"), &words).await;
        ensure!(said.status == 202, "a message was not taken: {}", said.body);
    }
    model.until_resident(count).await?;
    let after = resident(&host).await?;
    host.kill().await;
    Ok(after.saturating_sub(before) as f64 / 1024.0 / count as f64)
}

/// Makes an agent, and has a turn in a chat with it. Returns the path of the chat.
async fn begin(host: &Host, opened: &Opened, number: usize) -> anyhow::Result<String> {
    let path = format!("/local/agent/{}-{number}", opened.definition);
    let wanted = json!({ "definition": opened.definition, "path": path });
    let made = host.post("/api/agents", &wanted).await;
    ensure!(made.status == 201, "no agent was made: {}", made.body);
    let sessions = format!("/api/agents/{}/sessions", made.text("id"));
    let session = host.post(&sessions, &json!({})).await;
    let chat = format!("{sessions}/{}", session.text("session_id"));
    let words = json!({ "content": opened.ending });
    let said = host
        .post(&format!("{chat}/messages?wait_s=60"), &words)
        .await;
    ensure!(said.status == 200, "a turn did not end: {}", said.body);
    Ok(chat)
}

/// A server of a model that answers at once, except to one word.
struct Model {
    address: SocketAddr,
    /// Number of calls that it does not answer.
    resident: Arc<watch::Sender<usize>>,
    /// It serves until it is dropped.
    _server: JoinSet<()>,
}

impl Model {
    async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let address = listener.local_addr()?;
        let resident = Arc::new(watch::Sender::new(0));
        let router = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(Arc::clone(&resident));
        let mut server = JoinSet::new();
        server.spawn(async move {
            // It serves until it is dropped.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            resident,
            _server: server,
        })
    }

    /// Waits until it holds back the answers to so many calls.
    async fn until_resident(&self, count: usize) -> anyhow::Result<()> {
        let mut resident = self.resident.subscribe();
        let all = resident.wait_for(|resident| *resident >= count);
        tokio::time::timeout(PATIENCE, all)
            .await
            .context("not all of them were open together")??;
        Ok(())
    }
}

async fn answer(State(resident): State<Arc<watch::Sender<usize>>>, asked: String) -> Response {
    if asked.contains(LEASED) {
        resident.send_modify(|resident| *resident += 1);
        pending::<()>().await;
    }
    let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": "Hello." } }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let body = format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// A host with an agent whose model is that one, and one that delegates to such an agent.
fn config(model: SocketAddr) -> Value {
    json!({
        "limits": { "modelCallsMax": CALLS_MAX },
        "agents": [
            {
                "agentId": "talker", "displayName": "Talker", "model": "slow",
                "toolAllowlist": [],
            },
            { "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": ["delegate"] },
            {
                "agentId": "worker", "displayName": "Worker", "model": "slow",
                "toolAllowlist": [], "agentAllowlist": [],
            },
        ],
        "providers": {
            "scripted": { "kind": "scripted", "script": "script.toml" },
            "peer": {
                "kind": "openai-compatible", "baseUrl": format!("http://{model}/v1"),
                "concurrentMax": CALLS_MAX,
            },
        },
        "models": {
            "demo": { "provider": "scripted", "model": "demo" },
            "slow": { "provider": "peer", "model": "slow" },
        },
        "defaultModel": "demo",
    })
}
