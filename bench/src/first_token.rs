//! A model's first token: until a client of the real program has it, beside asking the same model
//! itself, and where the difference goes.

use crate::measure::{Pair, median, ms};
use crate::report::{Bar, Row};
use crate::served;
use agent_host_tests::process::{Frames, Host};
use anyhow::{Context, ensure};
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Replies of one measurement.
const REPLIES: usize = 100;
/// Replies beforehand that are not counted.
const WARMING: usize = 10;
/// Path of the model's endpoint.
const PATH: &str = "/v1/chat/completions";
/// The one token of its reply.
const TOKEN: &str = "Hello.";
/// Pause between two replies, so that no work is left from the one before.
const REST: Duration = Duration::from_millis(20);

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let address = listener.local_addr()?;
    let (asked, mut asks) = mpsc::unbounded_channel();
    let mut model = JoinSet::new();
    model.spawn(async move {
        // It serves until it is dropped.
        let _ = axum::serve(
            listener,
            Router::new().route(PATH, post(reply)).with_state(asked),
        )
        .await;
    });
    let folder = served::folder().await?;
    folder.configure(config(address));
    let host = served::start(&folder).await?;
    let mut session = Watched::open(&host).await?;
    let client = reqwest::Client::new();
    let url = format!("http://{address}{PATH}");
    let mut ours = Spans::default();
    let mut peer = Vec::with_capacity(REPLIES);
    let mut probes = Vec::with_capacity(REPLIES);
    for reply in 0..WARMING + REPLIES {
        let one = session.first_token(&host, &mut asks).await?;
        tokio::time::sleep(REST).await;
        let itself = ask(&client, &url, &mut asks).await?;
        tokio::time::sleep(REST).await;
        let probe = probe(&host).await?;
        if reply >= WARMING {
            ours.add(one);
            peer.push(itself);
            probes.push(probe);
        }
    }
    host.kill().await;
    drop(folder);
    let [whole, accepted, begun, shown] = ours.medians();
    let peer = median(&mut peer);
    let part = |name: &str, ours| Row::new(name, "ms", Pair { ours, peer: whole }, Bar::Reported);
    Ok(vec![
        Row::new(
            "first token to a client / asking the model itself",
            "ms",
            Pair { ours: whole, peer },
            Bar::WithinPlus(1.0, 2.0),
        ),
        part("of that: from the words to their acceptance", accepted),
        Row::new(
            "of the acceptance: HTTP alone, a /healthz",
            "ms",
            Pair {
                ours: median(&mut probes),
                peer: accepted,
            },
            Bar::Reported,
        ),
        part("from the words to the model's request", begun),
        part("from the model's token to the client", shown),
    ])
}

/// Milliseconds of a request of the same client that has nothing done.
async fn probe(host: &Host) -> anyhow::Result<f64> {
    let began = Instant::now();
    let answer = host.get("/healthz").await;
    let taken = ms(began.elapsed());
    ensure!(answer.status == 200, "the host is not well");
    Ok(taken)
}

/// Answers with one token at once, and says when it was asked.
async fn reply(State(asked): State<mpsc::UnboundedSender<Instant>>) -> Response {
    let _ = asked.send(Instant::now());
    let fragment = json!({ "choices": [{ "index": 0, "delta": { "content": TOKEN } }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let body = format!("data: {fragment}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Milliseconds until the model's own first token is there.
async fn ask(
    client: &reqwest::Client,
    url: &str,
    asks: &mut mpsc::UnboundedReceiver<Instant>,
) -> anyhow::Result<f64> {
    let hello = json!({ "role": "user", "content": "hello" });
    let body = json!({ "model": "m", "stream": true, "messages": [hello] });
    let began = Instant::now();
    let mut response = client.post(url).json(&body).send().await?;
    let fragment = response.chunk().await?.context("the model says nothing")?;
    let taken = ms(began.elapsed());
    ensure!(
        String::from_utf8_lossy(&fragment).contains(TOKEN),
        "the model says something else"
    );
    while response.chunk().await?.is_some() {}
    asks.recv().await.context("the model was not asked")?;
    Ok(taken)
}

/// A session whose client follows it.
struct Watched {
    frames: Frames,
    messages: String,
}

impl Watched {
    async fn open(host: &Host) -> anyhow::Result<Self> {
        let opened = host
            .post("/api/agents/assistant/sessions", &json!({}))
            .await;
        let agent = format!("/api/agents/{}", opened.text("agent_id"));
        let id = opened.text("session_id");
        let frames = host
            .follow(&format!("{agent}/stream?session={id}"), None)
            .await;
        Ok(Self {
            frames,
            messages: format!("{agent}/sessions/{id}/messages"),
        })
    }

    /// Says something and waits for the first token: milliseconds until that, until the words were
    /// accepted and until the model was asked, and from then to the token.
    async fn first_token(
        &mut self,
        host: &Host,
        asks: &mut mpsc::UnboundedReceiver<Instant>,
    ) -> anyhow::Result<[f64; 4]> {
        let words = json!({ "content": "hello" });
        let began = Instant::now();
        let said = async {
            host.post(&self.messages, &words).await;
            anyhow::Ok(began.elapsed())
        };
        let frames = &mut self.frames;
        let shown = async {
            loop {
                let frame = frames.receive().await.context("the stream ended")?;
                if frame.event == "content_chunk" {
                    return anyhow::Ok(Instant::now());
                }
            }
        };
        let (accepted, shown) = tokio::try_join!(said, shown)?;
        let asked = asks.recv().await.context("the model was not asked")?;
        self.frames.until("stream_complete").await;
        Ok([
            ms(shown - began),
            ms(accepted),
            ms(asked - began),
            ms(shown.saturating_duration_since(asked)),
        ])
    }
}

/// Measured times of each part.
#[derive(Default)]
struct Spans([Vec<f64>; 4]);

impl Spans {
    fn add(&mut self, one: [f64; 4]) {
        self.0
            .iter_mut()
            .zip(one)
            .for_each(|(all, one)| all.push(one));
    }

    fn medians(mut self) -> [f64; 4] {
        self.0.each_mut().map(|all| median(all))
    }
}

/// A host whose model is that one.
fn config(model: SocketAddr) -> Value {
    json!({
        "agents": [{ "agentId": "assistant", "displayName": "Assistant", "maxConcurrentMessages": 100_000, "toolAllowlist": [] }],
        "providers": {
            "peer": { "kind": "openai-compatible", "baseUrl": format!("http://{model}/v1") },
        },
        "models": { "m": { "provider": "peer", "model": "m" } },
    })
}
