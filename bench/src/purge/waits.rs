//! The longest commit while a session is purged, one commit after the other: of a session with a
//! long run, of a long one whose turns stay in a fork, and of a structured one beside its agent's
//! long past.

use super::{LONG_RUN, MESSAGES, TIMES, TIMES_MAX};
use super::{append, delete, end, purge_deleted, settle};
use crate::measure::{Pair, in_turns, ms};
use crate::report::{Bar, Row};
use crate::size::{Grouped, Size};
use crate::thread::{Conversation, new};
use crate::view::NOON;
use agent_host_tests::World;
use anyhow::ensure;
use domain::digest::Digest;
use domain::event::{
    Event, PluginEmitted, Purged, ResponseReceived, SlotCompleted, SlotTaken, Subject,
};
use domain::id::{ConversationId, OperationId, RunId, Stream};
use domain::operation::Kept;
use domain::user::UserId;
use serde_json::json;
use std::cell::Cell;
use std::time::Instant;
use store::{Commit, Expected};
use uuid::Uuid;

/// Turns of the long session that is forked at its end.
const FORKED: usize = 2_000;
/// Events of the agent beside whose many events a structured session is purged.
const LONG_PAST: usize = 100_000;
/// Events of the one that has few.
const SHORT_PAST: usize = 1_000;
/// Events about the structured session in its agent's stream.
const SLOT_EVENTS: usize = 600;
/// Answers among them, each with a blob of its own: all but the beginning and the end.
const SLOT_ANSWERS: usize = SLOT_EVENTS - 2;
/// Milliseconds by which a commit may wait longer: the disk does not always take the same time.
const LONGER_MS: f64 = 5.0;

/// The rows of the longest commits.
pub(super) async fn rows(world: &World, size: Size) -> anyhow::Result<Vec<Row>> {
    Ok(vec![
        beside_agents(world, size).await?,
        of_runs(world, size).await?,
        of_forked(world, size).await?,
    ])
}

fn row(purged: &str, waits: Pair) -> Row {
    let name = format!("longest commit, purge {purged}");
    Row::new(name, "ms", waits, Bar::WithinPlus(TIMES_MAX, LONGER_MS))
}

/// The purge of a structured session beside many events of its agent, and beside few.
async fn beside_agents(world: &World, size: Size) -> anyhow::Result<Row> {
    let long = size.scaled(LONG_PAST);
    let much = Conversation::begin(world.store()).await?;
    much.prefer(world.store(), long).await?;
    let little = Conversation::begin(world.store()).await?;
    little.prefer(world.store(), SHORT_PAST).await?;
    let waits = in_turns(
        async || structured(world, much).await,
        async || structured(world, little).await,
    )
    .await?;
    let [long, short] = [long, SHORT_PAST].map(Grouped);
    let purged = format!("beside {long} events of an agent / {short}");
    Ok(row(&purged, waits))
}

/// The purge of a session with a run of many events, and of one with few.
async fn of_runs(world: &World, size: Size) -> anyhow::Result<Row> {
    let long = size.scaled(LONG_RUN);
    let short = long / TIMES;
    let waits = in_turns(
        async || with_run(world, long).await,
        async || with_run(world, short).await,
    )
    .await?;
    let [long, short] = [long, short].map(Grouped);
    Ok(row(&format!("of a run of {long} / {short}"), waits))
}

/// The purge of a session of many turns that a fork keeps, and of one of few.
async fn of_forked(world: &World, size: Size) -> anyhow::Result<Row> {
    let long = size.scaled(FORKED);
    let short = long / TIMES;
    let waits = in_turns(
        async || forked(world, long).await,
        async || forked(world, short).await,
    )
    .await?;
    let [long, short] = [long, short].map(Grouped);
    Ok(row(&format!("of {long} forked turns / {short}"), waits))
}

/// A structured session of an agent.
async fn structured(world: &World, of: Conversation) -> anyhow::Result<f64> {
    let store = world.store();
    let said = of.begin_another(store, None).await?;
    store.commit(of_slot(said)).await?;
    let (longest, purged) = longest_commit(world, said).await?;
    let erased = purged.erased;
    let is_all = erased.events >= SLOT_EVENTS as u64 && erased.blobs >= SLOT_ANSWERS as u64;
    ensure!(is_all, "{erased:?} is not all of the session");
    Ok(longest)
}

/// A session with one run of so many events.
async fn with_run(world: &World, events: usize) -> anyhow::Result<f64> {
    let store = world.store();
    let said = Conversation::begin(store).await?;
    let run = said.run(store, events).await?;
    end(store, said, run).await?;
    let (longest, purged) = longest_commit(world, said).await?;
    let erased = purged.erased.events;
    ensure!(erased >= events as u64, "{erased} of {events} events");
    Ok(longest)
}

/// A session of so many turns, each with a request about it, all of which a fork keeps.
async fn forked(world: &World, turns: usize) -> anyhow::Result<f64> {
    let store = world.store();
    let said = Conversation::begin(store).await?;
    let head = said.exchange_with_blobs(store, turns, MESSAGES).await?;
    said.rename(store, turns).await?;
    said.begin_another(store, head).await?;
    let (longest, purged) = longest_commit(world, said).await?;
    let Purged { erased, kept, .. } = purged;
    let is_all = erased.requests >= turns as u64 && kept.turns == turns as u64;
    ensure!(is_all, "{erased:?}, {kept:?} of {turns} turns");
    Ok(longest)
}

/// Deletes and purges a session; the most milliseconds that a commit took during the purge, and the
/// purge's result.
async fn longest_commit(world: &World, said: Conversation) -> anyhow::Result<(f64, Purged)> {
    let store = world.store();
    delete(world, said).await?;
    settle(world, said).await?;
    let is_over = Cell::new(false);
    let purging = async {
        let purged = purge_deleted(world, said).await;
        is_over.set(true);
        purged
    };
    let committing = async {
        let stream = Stream::Run(RunId(Uuid::now_v7()));
        let mut longest = 0.0_f64;
        while !is_over.get() {
            let emitted = Event::PluginEmitted(PluginEmitted {
                name: "plugin.bench.event".to_owned(),
                data: json!({}),
            });
            let began = Instant::now();
            append(store, stream, emitted).await?;
            longest = longest.max(ms(began.elapsed()));
        }
        anyhow::Ok(longest)
    };
    let (purged, longest) = tokio::join!(purging, committing);
    Ok((longest?, purged?))
}

/// The commit of the events of the agent's stream about a structured session: a beginning, answers
/// that are too long for an event, and an end.
fn of_slot(said: Conversation) -> Commit {
    let Conversation { agent, session } = said;
    let taken = Event::SlotTaken(SlotTaken {
        agent,
        session_id: session,
        conversation_id: ConversationId(Uuid::nil()),
        session_type: "lesson".to_owned(),
        started_by: UserId::local(),
        started_at: NOON,
        expires_at: None,
        items_imported: 0,
    });
    let run = RunId(Uuid::now_v7());
    let answers: Vec<Vec<u8>> = (0..SLOT_ANSWERS)
        .map(|n| format!("\"answer {n} in {session}\"").into_bytes())
        .collect();
    let answered = |answer: &Vec<u8>| {
        Event::ResponseReceived(ResponseReceived {
            agent,
            session_id: session,
            tool_call_id: OperationId::mint(run, 0, "asked"),
            response_data: Kept::Blob(Digest::of(answer)),
            received_at: NOON,
        })
    };
    let completed = Event::SlotCompleted(SlotCompleted {
        agent,
        session_id: session,
        summary: json!("done"),
        completed_at: NOON,
    });
    let events = std::iter::once(taken)
        .chain(answers.iter().map(answered))
        .chain([completed])
        .map(|event| new(event, Subject::default()))
        .collect();
    let mut commit = Commit::new().append(Stream::Agent(agent), Expected::Any, events);
    commit.blobs = answers;
    commit
}
