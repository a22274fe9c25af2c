//! Loading what has a long past: an agent with 100,000 events beside one with 1,000, and beside it
//! a run; and talking to one with many users.

use crate::measure::{in_turns, mean_us, median, us};
use crate::report::{Bar, Row};
use crate::size::{Grouped, Size};
use crate::thread::Conversation;
use agent_host_tests::{Setup, World};
use anyhow::ensure;
use broker::{InputReceipt, PostMessage, Target};
use domain::id::RunId;
use domain::user::UserId;
use serde_json::json;
use std::time::{Duration, Instant};

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
/// Messages whose acceptance is timed in one measurement.
const MESSAGES: usize = 50;
/// Time limit of a turn.
const TURN: Duration = Duration::from_secs(20);
/// Loads of one measurement.
const LOADS: u32 = 500;

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let long = size.scaled(LONG);
    let world = World::new(Setup {
        components: vec!["assistant"],
        definitions: vec![
            json!({ "agentId": "assistant", "displayName": "Assistant", "maxConcurrentMessages": 100_000, "toolAllowlist": [] }),
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
    let [accepted, turn] = with_many_users(&world, size).await?;
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
        accepted,
        turn,
        Row::new(
            format!("run with {long} events / {short}"),
            "µs",
            runs,
            Bar::Reported,
        ),
    ])
}

/// Measures messages to an agent with many users, of each of whom it remembers something, beside
/// those to an agent with one: until they are accepted, and until the reply.
async fn with_many_users(world: &World, size: Size) -> anyhow::Result<[Row; 2]> {
    let shared = Conversation::begin(world.store()).await?;
    let own = Conversation::begin(world.store()).await?;
    let others = size.scaled(USERS);
    shared
        .share(world.store(), others, REMEMBERED_BYTES)
        .await?;
    let accepted = in_turns(
        async || accept(world, shared).await,
        async || accept(world, own).await,
    )
    .await?;
    let turns = in_turns(
        async || exchange(world, shared).await,
        async || exchange(world, own).await,
    )
    .await?;
    let users = Grouped(others + 1);
    Ok([
        Row::new(
            format!("words accepted, agent of {users} users / of 1"),
            "µs",
            accepted,
            Bar::Within(1.1),
        ),
        Row::new(
            format!("turn with an agent of {users} users / of 1"),
            "µs",
            turns,
            Bar::Within(1.1),
        ),
    ])
}

/// Microseconds until a message is accepted, as a median. Each is sent after the reply to the one
/// before, and the turn between them is not timed.
async fn accept(world: &World, to: Conversation) -> anyhow::Result<f64> {
    let mut taken = Vec::with_capacity(MESSAGES);
    for _ in 0..MESSAGES {
        let began = Instant::now();
        let receipt = post(world, to).await?;
        taken.push(us(began.elapsed()));
        reply(world, &receipt).await?;
    }
    Ok(median(&mut taken))
}

/// A message to an agent and its reply.
async fn exchange(world: &World, to: Conversation) -> anyhow::Result<f64> {
    mean_us(TURNS, async || {
        let receipt = post(world, to).await?;
        reply(world, &receipt).await
    })
    .await
}

/// Sends words to an agent, and returns when they are accepted.
async fn post(world: &World, to: Conversation) -> anyhow::Result<InputReceipt> {
    let message = PostMessage {
        target: Target::Agent(to.agent),
        ..world.message("assistant", to.session, "hello", None)
    };
    Ok(world.broker.messages().post(message).await?)
}

/// Waits for the reply to a message.
async fn reply(world: &World, to: &InputReceipt) -> anyhow::Result<()> {
    let became = world.broker.messages().await_reply(to.input, TURN).await?;
    ensure!(became.is_some(), "no reply in time");
    Ok(())
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
                .agents()
                .get(&UserId::local(), &Target::Agent(self.agent.agent))
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
