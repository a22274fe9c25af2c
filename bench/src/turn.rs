//! A whole turn, from the user's message to the stored reply, beside the bare syncs that it waits
//! for. The model answers at once.

use crate::disk::Disk;
use crate::measure::{Pair, median, ms};
use crate::report::{Bar, Row};
use crate::shim;
use agent_host_tests::{Setup, World};
use anyhow::Context;
use domain::id::SessionId;
use serde_json::json;
use std::time::{Duration, Instant};

/// Asks for [`measure`] on the slow disk.
pub(crate) const FLAG: &str = "--turns";
/// Sessions, and turns of each.
const SESSIONS: u64 = 5;
const TURNS: u64 = 20;
/// The commits that a turn declares: the message, the step that asks the model, the model's answer
/// with the reply.
const DECLARED_COMMITS: u32 = 3;
/// The most that a turn may make.
const COMMITS_MAX: f64 = 4.0;

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let [ours, peer, commits] = measure().await?;
    let bar = Bar::WithinPlus(1.1, 1.0);
    let mut rows = vec![Row::new(
        "whole turn, model at once / bare syncs",
        "ms",
        Pair { ours, peer },
        bar,
    )];
    if shim::AVAILABLE {
        let steady = shim::again(FLAG)?;
        let [ours, peer, _] = steady
            .first_chunk()
            .copied()
            .context("three numbers were expected")?;
        rows.push(Row::new(
            "the same with syncs of 4 ms",
            "ms",
            Pair { ours, peer },
            bar,
        ));
    }
    let commits = Pair {
        ours: commits,
        peer: f64::from(DECLARED_COMMITS),
    };
    rows.push(Row::new(
        "commits of a turn / declared",
        "commits",
        commits,
        Bar::AtMost(COMMITS_MAX),
    ));
    Ok(rows)
}

/// Milliseconds of a turn and of the bare syncs, and the commits of a turn. One of each is measured
/// after the other, because disks change their pace.
///
/// # Errors
/// The store's and the system's.
pub(crate) async fn measure() -> anyhow::Result<[f64; 3]> {
    let world = World::new(Setup {
        components: vec!["assistant"],
        definitions: vec![
            json!({ "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [] }),
        ],
        script: "[[rule]]\nreply = { text = \"Hello.\" }\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let folder = tempfile::tempdir()?;
    let mut disk = Disk::new(folder.path())?;
    // The first session also makes the agent, and its turn warms up.
    let first = world.open("assistant").await;
    turn(&world, first).await?;
    let before = world.store().stats();
    let mut ours = Vec::new();
    let mut peer = Vec::new();
    for _ in 0..SESSIONS {
        let session = world.open("assistant").await;
        for _ in 0..TURNS {
            ours.push(ms(turn(&world, session).await?));
            let syncs = (0..DECLARED_COMMITS)
                .map(|_| disk.sync())
                .sum::<anyhow::Result<Duration>>()?;
            peer.push(ms(syncs));
        }
    }
    // Opening a session is a commit of its own.
    let commits = world.store().stats().transactions - before.transactions - SESSIONS;
    world.broker.shutdown(Duration::ZERO).await;
    Ok([
        median(&mut ours),
        median(&mut peer),
        commits as f64 / (SESSIONS * TURNS) as f64,
    ])
}

/// Says something and waits for the end of the turn, woken by each commit.
async fn turn(world: &World, session: SessionId) -> anyhow::Result<Duration> {
    let mut durable = world.store().durable();
    let began = Instant::now();
    let message = world.message("assistant", session, "hello", None);
    world.broker.post_message(message).await?;
    loop {
        durable.borrow_and_update();
        let row = world.store().session(session).await?;
        if row.is_some_and(|row| row.open_run.is_none() && row.waiting == 0) {
            return Ok(began.elapsed());
        }
        durable.changed().await?;
    }
}
