//! The cost of a purge for each event that it erases: in a store ten times larger, and of a session
//! ten times longer.

use crate::measure::{Pair, in_turns, us};
use crate::report::{Bar, Row};
use crate::size::{Grouped, Size};
use crate::thread::Conversation;
use agent_host_tests::{Setup, World};
use anyhow::ensure;
use broker::{By, PurgeOf, Target};
use domain::user::UserId;
use serde_json::json;
use std::time::{Duration, Instant};

/// Turns of a long thread, and sessions, that the larger store has beside what is purged.
const BESIDE: usize = 10_000;
/// Turns of the long session.
const LONG: usize = 500;
/// The factor between large and small.
const TIMES: usize = 10;
/// Messages of a turn.
const MESSAGES: u64 = 2;
/// The factor by which an event may cost more.
const TIMES_MAX: f64 = 1.2;

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let beside = size.scaled(BESIDE);
    let long = size.scaled(LONG);
    let short = long / TIMES;
    let large = world_beside(beside).await?;
    let small = world_beside(beside / TIMES).await?;
    let stores = in_turns(
        async || purge(&large, short).await,
        async || purge(&small, short).await,
    )
    .await?;
    let sessions = in_turns(
        async || purge(&small, long).await,
        async || purge(&small, short).await,
    )
    .await?;
    large.broker.shutdown(Duration::ZERO).await;
    small.broker.shutdown(Duration::ZERO).await;
    let row = |name: String, pair: Pair| Row::new(name, "µs", pair, Bar::Within(TIMES_MAX));
    Ok(vec![
        row(
            format!(
                "erased event beside {} turns / {}",
                Grouped(beside),
                Grouped(beside / TIMES)
            ),
            stores,
        ),
        row(format!("erased event of {long} turns / {short}"), sessions),
    ])
}

/// A world whose store has a thread of so many turns, and as many sessions.
async fn world_beside(others: usize) -> anyhow::Result<World> {
    let world = World::new(Setup {
        components: vec!["assistant"],
        definitions: vec![
            json!({ "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [] }),
        ],
        ..Setup::default()
    })
    .await;
    let other = Conversation::begin(world.store()).await?;
    other.talk(world.store(), others, MESSAGES).await?;
    other.open_more(world.store(), others).await?;
    Ok(world)
}

/// Purges a session of so many turns, as the operator does; microseconds for each event.
async fn purge(world: &World, turns: usize) -> anyhow::Result<f64> {
    let said = Conversation::begin(world.store()).await?;
    said.talk(world.store(), turns, MESSAGES).await?;
    let user = UserId::local();
    let by = By {
        user: &user,
        key: None,
    };
    let target = Target::Agent(said.agent);
    world
        .broker
        .delete_session(by, &target, said.session)
        .await?;
    let what = PurgeOf::Session(target, said.session);
    let began = Instant::now();
    let gone = world.broker.purge(by, &what).await?;
    let taken = us(began.elapsed());
    let erased = gone.purged.erased;
    ensure!(
        erased.turns == turns as u64,
        "{} of {turns} turns are erased",
        erased.turns
    );
    Ok(taken / erased.events as f64)
}
