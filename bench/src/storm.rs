//! The latency of others' turns during a storm, beside the same turns on a quiet host. The storms:
//! messages to one session as fast as they are taken, two agents that answer each other, and agents
//! that hand work to as many as they can.

use crate::measure::{self, Pair, ROUNDS, median, ms};
use crate::report::{Bar, Row};
use agent_host_tests::{Setup, World};
use broker::PostMessage;
use domain::id::SessionId;
use domain::user::UserId;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Turns of the others in one measurement.
const TURNS: usize = 200;
/// Senders to the one session.
const SENDERS: usize = 16;
/// Time that a sender waits after a refusal, in milliseconds: shorter than the host asks for.
const REFUSED_MS: u64 = 50;
/// The factor by which others may be served worse than on a quiet host.
const TIMES_MAX: f64 = 1.5;

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, storm) in [
        ("10,000 words to one session", Storm::Words),
        ("agents that answer each other", Storm::Answers),
        ("a fan-out bomb", Storm::FanOut),
    ] {
        let mut quiet = Vec::with_capacity(ROUNDS);
        let mut stormy = Vec::with_capacity(ROUNDS);
        let world = Arc::new(World::new(setup()).await);
        let others = world.open("assistant").await;
        p99(&world, others).await;
        for _ in 0..ROUNDS {
            quiet.push(p99(&world, others).await);
            let over = Arc::new(AtomicBool::new(false));
            let mut senders = storm.begin(&world, &over).await?;
            stormy.push(p99(&world, others).await);
            over.store(true, Ordering::Relaxed);
            while senders.join_next().await.is_some() {}
        }
        world.broker.shutdown(Duration::ZERO).await;
        let pair = Pair {
            ours: median(&mut stormy),
            peer: median(&mut quiet),
        };
        rows.push(Row::new(
            format!("others' turns, p99: {name} / quiet"),
            "ms",
            pair,
            Bar::Within(TIMES_MAX),
        ));
    }
    Ok(rows)
}

/// The load that runs beside the others.
#[derive(Clone, Copy)]
enum Storm {
    Words,
    Answers,
    FanOut,
}

impl Storm {
    /// Begins it; it goes on until it is over.
    async fn begin(
        self,
        world: &Arc<World>,
        over: &Arc<AtomicBool>,
    ) -> anyhow::Result<JoinSet<()>> {
        let mut senders = JoinSet::new();
        let (agent, script, count) = match self {
            Self::Words => (
                "puppet",
                json!({ "steps": [{ "start": [{ "key": "q", "client": "confirmation" }] }] }),
                SENDERS,
            ),
            Self::Answers => ("puppet", answering(), 1),
            Self::FanOut => ("puppet", fanning_out(), 1),
        };
        let mallory: UserId = "mallory".parse()?;
        let session = world.open_for(&mallory, agent).await;
        let message = move |world: &World, words: &str| PostMessage {
            user: mallory.clone(),
            ..world.message(agent, session, words, None)
        };
        if matches!(self, Self::Words) {
            world
                .broker
                .messages()
                .post(message(world, &script.to_string()))
                .await?;
        }
        for _ in 0..count {
            let words = if count == 1 {
                script.to_string()
            } else {
                "and this".to_owned()
            };
            let world = world.clone();
            let over = over.clone();
            let message = message.clone();
            senders.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    if world
                        .broker
                        .messages()
                        .post(message(&world, &words))
                        .await
                        .is_err()
                    {
                        tokio::time::sleep(Duration::from_millis(REFUSED_MS)).await;
                    }
                }
            });
        }
        Ok(senders)
    }
}

/// Hands work on without waiting, to an agent that does the same.
fn answering() -> Value {
    let hands_on =
        |to: &str, text: &str| json!({ "key": "d", "agent": to, "text": text, "detached": true });
    let inner = json!({
        "steps": [{ "start": [hands_on("puppet", "and you?")] }, { "reply": "and you?" }],
    });
    json!({
        "steps": [{ "start": [hands_on("other", &inner.to_string())] }, { "reply": "well" }],
    })
}

/// Hands work to as many as it can, each of whom does the same.
fn fanning_out() -> Value {
    let start = |text: &str| -> Vec<Value> {
        (0..20)
            .map(|n| json!({ "key": format!("d{n}"), "agent": "other", "text": text }))
            .collect()
    };
    let inner = json!({ "steps": [{ "until": "all", "start": start("{}") }] }).to_string();
    json!({ "steps": [{ "until": "all", "start": start(&inner) }] })
}

fn setup() -> Setup {
    let puppet = |id: &str| json!({ "agentId": id, "displayName": id, "component": "puppet", "maxConcurrentMessages": 100_000 });
    Setup {
        components: vec!["assistant", "puppet"],
        definitions: vec![
            json!({ "agentId": "assistant", "displayName": "Assistant", "maxConcurrentMessages": 100_000, "toolAllowlist": [] }),
            puppet("puppet"),
            puppet("other"),
        ],
        script: "[[rule]]\nreply = { text = \"Hello.\" }\n".to_owned(),
        ..Setup::default()
    }
}

/// Milliseconds that all but one in a hundred turns take, from the message to the stored reply.
pub(crate) async fn p99(world: &World, session: SessionId) -> f64 {
    let mut taken = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let began = Instant::now();
        world.say("assistant", session, "hello").await;
        world.idle(session).await;
        taken.push(ms(began.elapsed()));
    }
    measure::p99(&mut taken)
}
