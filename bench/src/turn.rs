//! A whole turn, from the user's message to the stored reply, beside the bare syncs that it waits
//! for. The model answers at once.

use crate::disk::Disk;
use crate::measure::{Pair, median, ms, us};
use crate::parts::{self, Division, Repetitions, Span};
use crate::report::{Bar, Row};
use crate::shim;
use crate::steps;
use agent_host_tests::{Setup, World};
use anyhow::{Context, ensure};
use domain::id::SessionId;
use serde_json::json;
use std::time::{Duration, Instant};

/// Asks for [`measure`] on the slow disk.
pub(crate) const FLAG: &str = "--turns";
/// Asks for [`measure_parts`] on a disk whose syncs take no time.
pub(crate) const PARTS_FLAG: &str = "--turn-parts";
/// The agent of all sessions.
const AGENT: &str = "assistant";
/// Sessions, and turns of each.
const SESSIONS: u64 = 5;
const TURNS: u64 = 20;
/// Sessions whose turns are divided into parts.
const PARTS_SESSIONS: u64 = 10;
/// The share of these turns of which every commit has to be seen.
const SEEN_SHARE_MIN: f64 = 0.25;
/// Pause around a turn that is divided into parts, so that no work is left from the one before.
const REST: Duration = Duration::from_millis(2);
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
        let steady = shim::again(FLAG, shim::STEADY)?;
        let [steady, syncs, _] = steady
            .first_chunk()
            .copied()
            .context("three numbers were expected")?;
        rows.push(Row::new(
            "the same with syncs of 4 ms",
            "ms",
            Pair {
                ours: steady,
                peer: syncs,
            },
            bar,
        ));
        rows.extend(part_rows(ours)?);
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

/// The rows that say where the time of a turn goes beside its syncs, of which a turn took so many
/// milliseconds with those of the real disk.
fn part_rows(real_ms: f64) -> anyhow::Result<Vec<Row>> {
    let reported = shim::again(PARTS_FLAG, Duration::ZERO)?;
    let (numbers, more) = reported
        .split_first_chunk()
        .context("four numbers were expected")?;
    let division = Division::from_numbers(*numbers);
    let [steps, seen] = more
        .first_chunk()
        .copied()
        .context("two more numbers were expected")?;
    let pair = Pair {
        ours: division.whole,
        peer: real_ms * 1e3,
    };
    let share = Pair {
        ours: seen,
        peer: (PARTS_SESSIONS * TURNS) as f64,
    };
    let mut rows = vec![
        Row::new(
            "a turn whose syncs take no time / real syncs",
            "µs",
            pair,
            Bar::Reported,
        ),
        Row::new(
            "of that: turns seen commit by commit / all",
            "turns",
            share,
            Bar::Reported,
        ),
    ];
    rows.extend(division.rows(
        &[("fresh instances and their steps", steps)],
        "guards, blobs, keys, locks, wake-ups, reads, model",
    ));
    Ok(rows)
}

/// Milliseconds of a turn and of the bare syncs, and the commits of a turn. One of each is measured
/// after the other, because disks change their pace.
///
/// # Errors
/// The store's and the system's.
pub(crate) async fn measure() -> anyhow::Result<[f64; 3]> {
    let world = world().await;
    let folder = tempfile::tempdir()?;
    let mut disk = Disk::new(folder.path())?;
    // The first session also makes the agent, and its turn warms up.
    let first = world.open(AGENT).await;
    turn(&world, first, &mut Vec::new()).await?;
    let before = world.store().stats();
    let mut ours = Vec::new();
    let mut peer = Vec::new();
    for _ in 0..SESSIONS {
        let session = world.open(AGENT).await;
        for _ in 0..TURNS {
            ours.push(ms(turn(&world, session, &mut Vec::new()).await?));
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

/// Microseconds of a turn, divided; those of the steps; and the number of turns that they are the
/// medians of. To be asked for on a disk whose syncs take no time.
///
/// # Errors
/// The store's and the runtime's, or the commits of most turns were not seen one by one.
pub(crate) async fn measure_parts() -> anyhow::Result<[f64; 6]> {
    let world = world().await;
    let first = world.open(AGENT).await;
    turn(&world, first, &mut Vec::new()).await?;
    let mut turns = Repetitions::default();
    for _ in 0..PARTS_SESSIONS {
        let session = world.open(AGENT).await;
        for _ in 0..TURNS {
            add(&mut turns, watch(&world, session).await?);
        }
    }
    let all = PARTS_SESSIONS * TURNS;
    let seen = turns.spans.len();
    ensure!(
        seen as f64 >= SEEN_SHARE_MIN * all as f64,
        "only {seen} turns of {all} were seen commit by commit"
    );
    let events = parts::events(world.store()).await?;
    let steps = steps::take_again(&world, AGENT, &events, &turns.spans).await?;
    world.broker.shutdown(Duration::ZERO).await;
    let [whole, commits, encoding, wake_ups] = turns.divide(events).await?.numbers();
    Ok([whole, commits, encoding, wake_ups, steps, seen as f64])
}

/// Adds a turn if every commit of it was seen: the whole and its parts are of the same turns.
fn add(turns: &mut Repetitions, watched: Watched) {
    turns.ends.extend(watched.ends);
    if watched.is_seen {
        turns.whole.push(watched.taken_us);
        turns.spans.push(watched.span);
    }
}

/// A turn with the positions at which its commits ended.
struct Watched {
    taken_us: f64,
    span: Span,
    ends: Vec<u64>,
    /// True if the end of every commit was seen.
    is_seen: bool,
}

async fn watch(world: &World, session: SessionId) -> anyhow::Result<Watched> {
    let store = world.store();
    tokio::time::sleep(REST).await;
    let before = *store.durable().borrow();
    let transactions = store.stats().transactions;
    let mut ends = vec![before];
    let taken = turn(world, session, &mut ends).await?;
    tokio::time::sleep(REST).await;
    let end = *store.durable().borrow();
    ends.push(end);
    ends.dedup();
    // The first end is that of what came before.
    let seen = ends.len() as u64 - 1;
    Ok(Watched {
        taken_us: us(taken),
        span: Span { before, end },
        ends,
        is_seen: seen == store.stats().transactions - transactions,
    })
}

async fn world() -> World {
    World::new(Setup {
        components: vec![AGENT],
        definitions: vec![
            json!({ "agentId": AGENT, "displayName": "Assistant", "maxConcurrentMessages": 100_000, "toolAllowlist": [] }),
        ],
        script: "[[rule]]\nreply = { text = \"Hello.\" }\n".to_owned(),
        ..Setup::default()
    })
    .await
}

/// Says something and waits for the end of the turn, woken by each commit. Adds the positions that
/// were durable meanwhile.
async fn turn(world: &World, session: SessionId, ends: &mut Vec<u64>) -> anyhow::Result<Duration> {
    let mut durable = world.store().durable();
    let began = Instant::now();
    let message = world.message(AGENT, session, "hello", None);
    world.broker.messages().post(message).await?;
    loop {
        ends.push(*durable.borrow_and_update());
        let row = world.store().session(session).await?;
        if row.is_some_and(|row| row.open_run.is_none() && row.waiting == 0) {
            return Ok(began.elapsed());
        }
        durable.changed().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::{Watched, add};
    use crate::parts::{Repetitions, Span};

    #[test]
    fn a_turn_whose_commits_were_not_all_seen_is_in_no_median() {
        let mut turns = Repetitions::default();
        for (taken_us, before, is_seen) in [(9.0, 0, true), (500.0, 4, false), (11.0, 8, true)] {
            let end = before + 4;
            let watched = Watched {
                taken_us,
                span: Span { before, end },
                ends: vec![before, end],
                is_seen,
            };
            add(&mut turns, watched);
        }
        assert_eq!(turns.whole, [9.0, 11.0]);
        let begins: Vec<u64> = turns.spans.iter().map(|span| span.before).collect();
        assert_eq!(begins, [0, 8]);
        assert_eq!(turns.ends, [0, 4, 4, 8, 8, 12]);
    }
}
