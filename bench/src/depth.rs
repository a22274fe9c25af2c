//! Opening a thread: a session with 10,000 turns, as a client is shown it, beside one with 100.

use crate::measure::{in_turns, mean_us};
use crate::report::{Bar, Row};
use crate::size::{Grouped, Size};
use crate::thread::Conversation;
use agent_host_tests::{Setup, World};
use anyhow::ensure;
use broker::Target;
use domain::user::UserId;
use serde_json::json;
use std::time::Duration;

/// Turns of the long thread.
const LONG: usize = 10_000;
/// Turns of the short one.
const SHORT: usize = 100;
/// Messages of a turn.
const MESSAGES: u64 = 2;
/// Looks of one measurement.
const POLLS: u32 = 50;
/// Messages that an inspection shows.
const SHOWN: usize = 100;

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
    let much = Conversation::begin(world.store()).await?;
    let little = Conversation::begin(world.store()).await?;
    much.exchange(world.store(), long, MESSAGES).await?;
    little.exchange(world.store(), SHORT, MESSAGES).await?;
    let opened = in_turns(
        async || open(&world, much).await,
        async || open(&world, little).await,
    )
    .await?;
    world.broker.shutdown(Duration::ZERO).await;
    let long = Grouped(long);
    let short = Grouped(SHORT);
    Ok(vec![Row::new(
        format!("thread of {long} turns opened / {short}"),
        "µs",
        opened,
        Bar::Within(2.0),
    )])
}

async fn open(world: &World, thread: Conversation) -> anyhow::Result<f64> {
    mean_us(POLLS, async || {
        let seen = world
            .broker
            .sessions()
            .get(
                &UserId::local(),
                &Target::Agent(thread.agent),
                thread.session,
                None,
            )
            .await?;
        ensure!(
            seen.messages.len() == SHOWN,
            "it shows {} messages",
            seen.messages.len()
        );
        Ok(())
    })
    .await
}
