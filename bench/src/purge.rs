//! The cost of a purge for each event that it erases: in a store ten times larger, and of what is
//! ten times longer; and the longest commit beside one.
//!
//! The time of an empty session's purge is subtracted: every purge begins, ends, and empties
//! the log. That does not always take the same time, and as long as erasing many events. So a
//! figure of short sessions sums up several of them.

mod waits;

use crate::measure::{Pair, in_turns, us};
use crate::report::{Bar, Row};
use crate::size::{Grouped, Size};
use crate::thread::{BLOBS_OF_TURN, Conversation, new};
use crate::view::NOON;
use agent_host_tests::{Setup, World};
use anyhow::{bail, ensure};
use broker::{By, PurgeOf, Target};
use domain::event::{Erased, Event, Purged, RunEnded, Subject};
use domain::id::{RunId, Stream};
use domain::turn::TurnEnd;
use domain::user::UserId;
use rusqlite::Connection;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use store::{Commit, Expected, Store};

/// Turns of a long thread, and sessions, that the larger store has beside what is purged.
const BESIDE: usize = 10_000;
/// Turns of the long session.
const LONG: usize = 500;
/// The least turns of it at a small size: short sessions have to take longer than empty ones.
const LONG_MIN: usize = 100;
/// Events of the long run.
const LONG_RUN: usize = 10_000;
/// The least events of it at a small size, for the same reason.
const LONG_RUN_MIN: usize = 5_000;
/// The factor between large and small.
const TIMES: usize = 10;
/// Messages of a turn.
const MESSAGES: u64 = 2;
/// The factor by which an event may cost more.
const TIMES_MAX: f64 = 1.2;
/// Time that reads get to leave the log before a purge.
const LOG_PATIENCE: Duration = Duration::from_secs(5);
/// Searches that wait for the full-text index before a purge, each for a limited time.
const SEARCHES_MAX: usize = 100;

/// The content of a session that is purged.
#[derive(Debug, Clone, Copy)]
enum Content {
    /// Nothing.
    Nothing,
    /// So many turns with blobs of their own, and as many requests.
    Turns(usize),
    /// One run with so many events.
    Run(usize),
}

pub(crate) async fn run(size: Size) -> anyhow::Result<Vec<Row>> {
    let beside = size.scaled(BESIDE);
    let long = size.scaled(LONG).max(LONG_MIN);
    let long_run = size.scaled(LONG_RUN).max(LONG_RUN_MIN);
    let large = world_beside(beside).await?;
    let small = world_beside(beside / TIMES).await?;
    let [short, short_run] = [long, long_run].map(|long| long / TIMES);
    let stores = in_turns(
        async || purge(&large, Content::Turns(long), 1).await,
        async || purge(&small, Content::Turns(long), 1).await,
    )
    .await?;
    let sessions = in_turns(
        async || purge(&small, Content::Turns(long), 1).await,
        async || purge(&small, Content::Turns(short), TIMES).await,
    )
    .await?;
    let runs = in_turns(
        async || purge(&small, Content::Run(long_run), 1).await,
        async || purge(&small, Content::Run(short_run), TIMES).await,
    )
    .await?;
    let waits = waits::rows(&small, size).await?;
    large.broker.shutdown(Duration::ZERO).await;
    small.broker.shutdown(Duration::ZERO).await;
    let row = |name: String, pair: Pair| {
        let row = Row::new(name, "µs", pair, Bar::Within(TIMES_MAX));
        row.of_differences("the purge of an empty session")
    };
    let [beside, few, long_run, short_run] =
        [beside, beside / TIMES, long_run, short_run].map(Grouped);
    let mut rows = vec![
        row(
            format!("erased event beside {beside} turns / {few}"),
            stores,
        ),
        row(format!("erased event of {long} turns / {short}"), sessions),
        row(
            format!("erased event of a run of {long_run} / {short_run}"),
            runs,
        ),
    ];
    rows.extend(waits);
    Ok(rows)
}

/// A world whose store has a thread of so many turns, as many requests about it, and as many
/// sessions.
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
    other
        .exchange_with_blobs(world.store(), others, MESSAGES)
        .await?;
    other.rename(world.store(), others).await?;
    other.open_more(world.store(), others).await?;
    Ok(world)
}

/// Purges so many sessions with some content, each after an empty one. Returns the microseconds for
/// each event that the empty ones do not have: 0 or less if those took as long.
async fn purge(world: &World, content: Content, sessions: usize) -> anyhow::Result<f64> {
    let mut longer_us = 0.0;
    let mut events = 0;
    for _ in 0..sessions {
        let (nothing_us, of_nothing) = purge_once(world, Content::Nothing).await?;
        let (taken_us, erased) = purge_once(world, content).await?;
        longer_us += taken_us - nothing_us;
        events += erased.events - of_nothing.events;
    }
    Ok(longer_us / events as f64)
}

/// Makes a session and purges it; how many microseconds the purge took, and what it erased.
async fn purge_once(world: &World, content: Content) -> anyhow::Result<(f64, Erased)> {
    let store = world.store();
    let said = Conversation::begin(store).await?;
    let mut least = Erased::default();
    match content {
        Content::Nothing => {}
        Content::Turns(turns) => {
            said.exchange_with_blobs(store, turns, MESSAGES).await?;
            said.rename(store, turns).await?;
            least.turns = turns as u64;
            least.events = least.turns;
            least.blobs = least.turns * BLOBS_OF_TURN;
            least.requests = least.turns;
        }
        Content::Run(events) => {
            let run = said.run(store, events).await?;
            end(store, said, run).await?;
            least.events = events as u64;
        }
    }
    delete(world, said).await?;
    settle(world, said).await?;
    let began = Instant::now();
    let erased = purge_deleted(world, said).await?.erased;
    let taken = us(began.elapsed());
    ensure!(
        erased.turns >= least.turns
            && erased.events >= least.events
            && erased.blobs >= least.blobs
            && erased.requests >= least.requests,
        "{erased:?} is not all of {content:?}"
    );
    Ok((taken, erased))
}

/// Ends a run without a turn.
async fn end(store: &Store, said: Conversation, run: RunId) -> anyhow::Result<()> {
    let ended = Event::RunEnded(RunEnded {
        run,
        session: said.session,
        end: TurnEnd::Failed,
        code: None,
        reason: None,
        turn: None,
        stopped: Vec::new(),
        said: Vec::new(),
        inputs: Vec::new(),
        compacts: false,
        time: NOON,
    });
    append(store, Stream::Run(run), ended).await
}

/// Deletes a session, as its user does.
async fn delete(world: &World, said: Conversation) -> anyhow::Result<()> {
    let user = UserId::local();
    let by = By {
        user: &user,
        key: None,
    };
    let target = Target::Agent(said.agent);
    world
        .broker
        .sessions()
        .delete(by, &target, said.session)
        .await?;
    Ok(())
}

/// Has the store do what is left to do for what came before. It would otherwise do some of that in
/// the middle of the next purge.
async fn settle(world: &World, said: Conversation) -> anyhow::Result<()> {
    index_words(world, said).await?;
    empty_log(world)
}

/// Has all words indexed, as a search does. If many wait, the writer indexes some after each
/// commit, also after the one with which a purge begins. And words that are not indexed yet cost a
/// purge nothing, but those of a session that was deleted some time ago are.
async fn index_words(world: &World, said: Conversation) -> anyhow::Result<()> {
    let connection = Connection::open(database(world))?;
    let text = "SELECT EXISTS (SELECT 1 FROM recall WHERE id > coalesce((SELECT CAST(value AS \
                INTEGER) FROM meta WHERE name = 'indexed'), 0))";
    for _ in 0..SEARCHES_MAX {
        world.store().recall(said.agent, None, "words", 1).await?;
        let is_behind: bool = connection.query_row(text, [], |row| row.get(0))?;
        if !is_behind {
            return Ok(());
        }
    }
    bail!("the full-text index does not come to its end")
}

/// Moves the write-ahead log to the database and empties it, as a purge does at its end. The next
/// one then moves only what it writes itself.
fn empty_log(world: &World) -> anyhow::Result<()> {
    let connection = Connection::open(database(world))?;
    connection.busy_timeout(LOG_PATIENCE)?;
    let text = "PRAGMA wal_checkpoint(TRUNCATE)";
    let is_busy: bool = connection.query_row(text, [], |row| row.get(0))?;
    ensure!(!is_busy, "somebody reads from the log");
    Ok(())
}

fn database(world: &World) -> PathBuf {
    world.dir.path().join("data/store.db")
}

/// Purges a session, as the operator does.
async fn purge_deleted(world: &World, said: Conversation) -> anyhow::Result<Purged> {
    let user = UserId::local();
    let by = By {
        user: &user,
        key: None,
    };
    let what = PurgeOf::Session(Target::Agent(said.agent), said.session);
    Ok(world.broker.purge(by, &what).await?.purged)
}

/// Appends an event that is about nothing in particular.
async fn append(store: &Store, stream: Stream, event: Event) -> anyhow::Result<()> {
    let events = vec![new(event, Subject::default())];
    let commit = Commit::new().append(stream, Expected::Any, events);
    store.commit(commit).await?;
    Ok(())
}
