//! Loading what has a long past: an agent with 100,000 events beside one with 1,000, and beside it
//! a run; and talking to one with many users.

use crate::measure::{in_turns, mean_us};
use crate::report::{Bar, Row};
use crate::size::{Grouped, Size};
use crate::thread::Conversation;
use agent_host_tests::{Setup, World};
use anyhow::ensure;
use broker::{PostMessage, Target};
use domain::id::RunId;
use domain::user::UserId;
use serde_json::json;
use std::time::Duration;

/// Events of the long past.
const LONG: usize = 100_000;
/// Events of the short one.
const SHORT: usize = 1_000;
/// Users of an agent that has many.
const USERS: usize = 999;
/// Bytes that it remembers of each.
const REMEMBERED_BYTES: usize = 32 << 10;
/// Turns of one measurement.
const TURNS: u32 = 20;
/// Time limit of a turn.
const TURN: Duration = Duration::from_secs(20);
/// Loads of one measurement.
const LOADS: u32 = 500;

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let long = size.scaled(LONG);
    let world = World::new(Setup {
        components: vec!["assistant"],
        definitions: vec![
            json!({ "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [] }),
        ],
        ..Setup::default()
    })
    .await;
    let much = Past::of(&world, long).await?;
    let little = Past::of(&world, SHORT).await?;
    let agents = in_turns(
        async || much.load_agent(&world).await,
        async || little.load_agent(&world).await,
    )
    .await?;
    let runs = in_turns(
        async || much.fold_run(&world).await,
        async || little.fold_run(&world).await,
    )
    .await?;
    let shared = Conversation::begin(world.store()).await?;
    let own = Conversation::begin(world.store()).await?;
    let users = size.scaled(USERS);
    shared.share(world.store(), users, REMEMBERED_BYTES).await?;
    let turns = in_turns(
        async || talk(&world, shared).await,
        async || talk(&world, own).await,
    )
    .await?;
    world.broker.shutdown(Duration::ZERO).await;
    let long = Grouped(long);
    let short = Grouped(SHORT);
    Ok(vec![
        Row::new(
            format!("agent with {long} events / {short}"),
            "µs",
            agents,
            Bar::Within(2.0),
        ),
        Row::new(
            format!("turn with an agent of {} users / of 1", Grouped(users + 1)),
            "µs",
            turns,
            Bar::Within(1.1),
        ),
        Row::new(
            format!("run with {long} events / {short}"),
            "µs",
            runs,
            Bar::Reported,
        ),
    ])
}

/// A message to an agent and its reply.
async fn talk(world: &World, to: Conversation) -> anyhow::Result<f64> {
    mean_us(TURNS, async || {
        let message = PostMessage {
            target: Target::Agent(to.agent),
            ..world.message("assistant", to.session, "hello", None)
        };
        let receipt = world.broker.post_message(message).await?;
        let became = world.broker.await_reply(receipt.input, TURN).await?;
        ensure!(became.is_some(), "no reply in time");
        Ok(())
    })
    .await
}

/// An agent and a run with so many events each.
struct Past {
    agent: Conversation,
    run: RunId,
    events: u64,
}

impl Past {
    async fn of(world: &World, events: usize) -> anyhow::Result<Self> {
        let agent = Conversation::begin(world.store()).await?;
        // Its creation is the first.
        agent.prefer(world.store(), events - 1).await?;
        Ok(Self {
            agent,
            run: agent.run(world.store(), events).await?,
            events: events as u64,
        })
    }

    /// Loads the agent and its owner, as every command does first.
    async fn load_agent(&self, world: &World) -> anyhow::Result<f64> {
        mean_us(LOADS, async || {
            let found = world
                .broker
                .agent(&UserId::local(), &Target::Agent(self.agent.agent))
                .await?;
            ensure!(
                found.row.version == self.events,
                "the agent has {} events",
                found.row.version
            );
            Ok(())
        })
        .await
    }

    /// Folds a run as before it goes on after a restart: from its snapshot, and the events since.
    async fn fold_run(&self, world: &World) -> anyhow::Result<f64> {
        mean_us(LOADS, async || {
            let (_, version) = broker::replay::fold(world.store(), self.run).await?;
            ensure!(version == self.events, "the run has {version} events");
            Ok(())
        })
        .await
    }
}
