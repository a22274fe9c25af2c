//! Events of triggers: webhook calls that are accepted in a second beside messages, the lateness
//! of a time that is due, and the turns of others while very many times are due at once.

use crate::hooks;
use crate::ingress::{Sessions, WORDS};
use crate::measure::{Pair, ROUNDS, in_turns, median, p99};
use crate::report::{Bar, Row};
use crate::size::{Grouped, Size};
use crate::storm;
use agent_host_tests::{Setup, World};
use anyhow::{Context, ensure};
use broker::{Address, PostRouted};
use bytes::Bytes;
use domain::event::PostedMessage;
use domain::id::SessionId;
use domain::message::Part;
use domain::queue::QueueOverride;
use domain::secret::{Secret, Secrets};
use domain::time::Timestamp;
use domain::trigger::TriggerName;
use domain::user::UserId;
use edge::{Edge, EdgeParts, EdgeSettings, HookAnswer, HookCall, HookForm};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::TriggerRecord;
use tokio::task::JoinSet;

/// Callers of as many webhooks at the same time, and senders to as many sessions.
pub(crate) const CALLERS: usize = 256;
/// Calls of each, and messages, in one measurement.
pub(crate) const CALLS: usize = 20;
/// The share of the messages that the calls have to reach.
const SHARE_MIN: f64 = 0.8;
/// Times that come due one after the other.
const TIMES: usize = 200;
/// Milliseconds between two of them.
const SPACING_MS: u64 = 50;
/// The most that all but one in a hundred of them may be late, in milliseconds.
const LATE_MS_MAX: f64 = 50.0;
/// Schedules that are due at the same time.
const SCHEDULES: usize = 100_000;
/// The factor by which others may be served worse while they are dealt with.
const TIMES_MAX: f64 = 2.0;
/// The time in which triggers are made before the first is due.
const MAKING_MS: u64 = 3_000;
/// Time for each of very many triggers to be made, in microseconds.
const MAKING_US_EACH: u64 = 2_000;
/// The most that anything here is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// The pause between two polls.
pub(crate) const POLL: Duration = Duration::from_millis(20);
/// The secret of the webhooks.
pub(crate) const SECRET: &str = "a-secret-of-the-bench";

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let accepted = Box::pin(accepted()).await?;
    let over_http = Box::pin(hooks::accepted()).await?;
    let late = Box::pin(lateness()).await?;
    let count = size.scaled(SCHEDULES);
    let others = Box::pin(beside_a_crowd(count)).await?;
    Ok(vec![
        Row::new(
            "webhook calls, 256 webhooks / POST /api/messages, 256 sessions",
            "1/s",
            over_http,
            Bar::AtLeast(SHARE_MIN),
        ),
        Row::new(
            "the same without HTTP, and messages without keys",
            "1/s",
            accepted,
            Bar::Reported,
        ),
        Row::new(
            "from a time that is due to its message in the session, p99",
            "ms",
            Pair {
                ours: late,
                peer: LATE_MS_MAX,
            },
            Bar::AtMost(LATE_MS_MAX),
        ),
        Row::new(
            format!(
                "others' turns, p99: {} schedules due / quiet",
                Grouped(count)
            ),
            "ms",
            others,
            Bar::Within(TIMES_MAX),
        ),
    ])
}

/// Starts the edge of a world, with these triggers.
async fn edge(world: &World, triggers: Value) -> anyhow::Result<Edge> {
    let secret = Secret::parse(SECRET)?;
    let parts = EdgeParts {
        broker: world.broker.clone(),
        store: world.store().clone(),
        runtime: world.runtime.clone(),
        settings: EdgeSettings {
            triggers: serde_json::from_value(triggers)?,
            secrets: Secrets::new([("hook".to_owned(), secret)]),
            ..EdgeSettings::default()
        },
    };
    Ok(Edge::start(parts).await?)
}

async fn end(world: &World, edge: &Edge) {
    edge.stop().await;
    world.broker.shutdown(Duration::ZERO).await;
}

fn name(number: usize) -> String {
    format!("t-{number}")
}

/// Returns so many triggers under their names.
pub(crate) fn triggers(count: usize, trigger: impl Fn(usize) -> Value) -> Value {
    let named = (0..count).map(|number| (name(number), trigger(number)));
    Value::Object(named.collect())
}

/// Calls of webhooks that are accepted in a second, and messages. Nothing else is done meanwhile:
/// the sessions wait for their clients, and the triggers rest after failures.
async fn accepted() -> anyhow::Result<Pair> {
    let busy = Arc::new(Sessions::busy_beside(CALLERS, &["rogue-trigger"]).await?);
    let hook = json!({
        "user": "local", "target": { "agent": "puppet" }, "component": "rogue-trigger",
        "message": "trap", "webhook": { "auth": { "token": { "secret": "hook" } } },
    });
    let edge = edge(&busy.world, triggers(CALLERS, |_| hook.clone())).await?;
    rest(&busy.world, &edge).await?;
    let mut round = 0;
    let pair = in_turns(
        async || {
            round += 1;
            call(&edge, round, CALLS).await
        },
        async || busy.emptied(say(&busy).await).await,
    )
    .await?;
    end(&busy.world, &edge).await;
    Ok(pair)
}

/// Has every trigger fail until it rests.
async fn rest(world: &World, edge: &Edge) -> anyhow::Result<()> {
    call(edge, 0, 1).await?;
    let resting = async {
        for caller in 0..CALLERS {
            let name: TriggerName = name(caller).parse()?;
            while world
                .store()
                .trigger(&name)
                .await?
                .is_none_or(|row| row.failures.open_until.is_none())
            {
                tokio::time::sleep(POLL).await;
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, resting)
        .await
        .context("the triggers do not rest in time")?
}

/// Calls that are accepted in a second, when each caller waits for each of its own.
async fn call(edge: &Edge, round: usize, calls: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let triggers = edge.triggers().clone();
        callers.spawn(async move {
            let name = name(caller);
            for number in 0..calls {
                let call = hook_call(format!("{round}-{number}"));
                let answer = triggers.hook(&name, call).await?;
                let is_taken = matches!(answer, HookAnswer::Accepted { .. });
                ensure!(is_taken, "a call is answered by {answer:?}");
            }
            anyhow::Ok(())
        });
    }
    all_done(callers).await?;
    Ok(per_second(CALLERS * calls, began.elapsed()))
}

fn hook_call(id: String) -> HookCall {
    let header = |name: &str, value: String| (name.to_owned(), value);
    HookCall {
        path: String::new(),
        headers: vec![
            header("authorization", format!("Bearer {SECRET}")),
            header("content-type", "text/plain".to_owned()),
            header("webhook-id", id),
        ],
        query: Vec::new(),
        body: Bytes::from_static(WORDS.as_bytes()),
        form: HookForm::Any,
    }
}

/// Messages that are accepted in a second, when each session's sender waits for each of its own.
async fn say(busy: &Arc<Sessions>) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut senders = JoinSet::new();
    for session in busy.sessions.clone() {
        let busy = busy.clone();
        senders.spawn(async move {
            for _ in 0..CALLS {
                busy.world
                    .broker
                    .messages()
                    .post_routed(message(session))
                    .await?;
            }
            anyhow::Ok(())
        });
    }
    all_done(senders).await?;
    Ok(per_second(CALLERS * CALLS, began.elapsed()))
}

fn message(session: SessionId) -> PostRouted {
    PostRouted {
        to: Address::Session(session),
        content: vec![Part::text(WORDS)],
        model: None,
        queue: QueueOverride::default(),
        priority: None,
        labels: domain::message_labels::MessageLabels::default(),
        user: UserId::local(),
        idempotency_key: None,
    }
}

pub(crate) async fn all_done(mut tasks: JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

pub(crate) fn per_second(things: usize, taken: Duration) -> f64 {
    things as f64 / taken.as_secs_f64()
}

fn setup(components: Vec<&'static str>, agent: &str, component: &str) -> Setup {
    Setup {
        components,
        definitions: vec![json!({
            "agentId": agent, "displayName": agent, "component": component,
            "maxConcurrentMessages": 100_000, "toolAllowlist": [],
        })],
        script: "[[rule]]\nreply = { text = \"Hello.\" }\n".to_owned(),
        ..Setup::default()
    }
}

/// Milliseconds after which all but one in a hundred times have their message in the session.
async fn lateness() -> anyhow::Result<f64> {
    let world = World::new(setup(vec!["puppet", "schedule"], "puppet", "puppet")).await;
    let begin = world.broker.clock().now().plus_ms(MAKING_MS);
    let due = |number: usize| begin.plus_ms(number as u64 * SPACING_MS);
    let message = json!({ "steps": [{ "reply": "Hello." }] }).to_string();
    let at = |number: usize| {
        let schedule = json!({ "at": due(number).to_string() });
        json!({
            "user": "local", "target": { "agent": "puppet" }, "schedule": schedule,
            "message": message,
        })
    };
    let edge = edge(&world, triggers(TIMES, at)).await?;
    let mut late = Vec::with_capacity(TIMES);
    for number in 0..TIMES {
        let name: TriggerName = name(number).parse()?;
        let taken = tokio::time::timeout(PATIENCE, taken_at(&world, &name));
        let taken = taken.await.context("a time is not dealt with in time")??;
        late.push(taken.since_ms(due(number)) as f64);
    }
    end(&world, &edge).await;
    Ok(p99(&mut late))
}

/// The time at which a session took the message of a trigger.
async fn taken_at(world: &World, name: &TriggerName) -> anyhow::Result<Timestamp> {
    loop {
        let records = world.store().trigger_events_of(name, None, 1).await?;
        let posted = records.into_iter().find_map(|record| match record {
            TriggerRecord::TriggerEvent(row) => row.posted,
            TriggerRecord::Skipped { .. } => None,
        });
        if let Some(posted) = posted {
            let Some(PostedMessage::Accepted { input, .. }) = posted.first() else {
                anyhow::bail!("the message of `{name}` came to {posted:?}");
            };
            let found = world.store().input(*input).await?;
            let (accepted, _) = found.context("an input that was accepted")?;
            return Ok(accepted.time);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Milliseconds that all but one in a hundred turns take while so many schedules that were due at
/// the same time are dealt with, and on a quiet host.
async fn beside_a_crowd(count: usize) -> anyhow::Result<Pair> {
    let world = World::new(setup(
        vec!["assistant", "rogue-trigger"],
        "assistant",
        "assistant",
    ))
    .await;
    let session = world.open("assistant").await;
    storm::p99(&world, session).await;
    let mut quiet = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        quiet.push(storm::p99(&world, session).await);
    }
    let making_ms = MAKING_MS + count as u64 * MAKING_US_EACH / 1_000;
    let due = world.broker.clock().now().plus_ms(making_ms);
    let schedule = json!({ "every": "1d", "anchor": due.to_string(), "spread": false });
    let keeps = json!({
        "user": "local", "target": { "agent": "assistant" }, "schedule": schedule,
        "component": "rogue-trigger", "message": "count",
    });
    let edge = edge(&world, triggers(count, |_| keeps.clone())).await?;
    let now = world.broker.clock().now();
    ensure!(
        now < due,
        "the schedules were not made before they were due"
    );
    tokio::time::sleep(Duration::from_millis(due.since_ms(now))).await;
    let mut crowded = Vec::with_capacity(ROUNDS);
    while crowded.len() < ROUNDS {
        crowded.push(storm::p99(&world, session).await);
        let now = world.broker.clock().now();
        if world
            .store()
            .open_trigger_events(now, 1, &[])
            .await?
            .is_empty()
        {
            break;
        }
    }
    end(&world, &edge).await;
    Ok(Pair {
        ours: median(&mut crowded),
        peer: median(&mut quiet),
    })
}
