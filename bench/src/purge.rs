//! The cost of a purge for each event that it erases: in a store ten times larger, and of what is
//! ten times longer; and how long commits wait for one, beside an agent with a long past.
//!
//! The time of an empty session's purge is subtracted: every purge begins, ends, and empties
//! the log.

use crate::measure::{Pair, in_turns, ms, us};
use crate::report::{Bar, Row};
use crate::size::{Grouped, Size};
use crate::thread::{BLOBS_OF_TURN, Conversation, new};
use crate::view::NOON;
use agent_host_tests::{Setup, World};
use anyhow::ensure;
use broker::{By, PurgeOf, Target};
use domain::digest::Digest;
use domain::event::{
    Erased, Event, PluginEmitted, ResponseReceived, RunEnded, SlotCompleted, SlotTaken, Subject,
};
use domain::id::{ConversationId, OperationId, RunId, Stream};
use domain::operation::Kept;
use domain::turn::TurnEnd;
use domain::user::UserId;
use rusqlite::Connection;
use serde_json::json;
use std::cell::Cell;
use std::time::{Duration, Instant};
use store::{Commit, Expected, Store};
use uuid::Uuid;

/// Turns of a long thread, and sessions, that the larger store has beside what is purged.
const BESIDE: usize = 10_000;
/// Turns of the long session.
const LONG: usize = 500;
/// Events of the long run.
const LONG_RUN: usize = 10_000;
/// The factor between large and small.
const TIMES: usize = 10;
/// Events of the agent beside whose many events a structured session is purged.
const LONG_PAST: usize = 100_000;
/// Events of the one that has few.
const SHORT_PAST: usize = 1_000;
/// Events about the structured session in its agent's stream.
const SLOT_EVENTS: usize = 600;
/// Answers among them, each with a blob of its own: all but the beginning and the end.
const SLOT_ANSWERS: usize = SLOT_EVENTS - 2;
/// Messages of a turn.
const MESSAGES: u64 = 2;
/// The factor by which an event may cost more.
const TIMES_MAX: f64 = 1.2;
/// Time that reads get to leave the log before a purge.
const LOG_PATIENCE: Duration = Duration::from_secs(5);
/// Milliseconds by which a commit may wait longer: the disk does not always take the same time.
const LONGER_MS: f64 = 5.0;

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
    let long = size.scaled(LONG);
    let long_run = size.scaled(LONG_RUN);
    let large = world_beside(beside).await?;
    let small = world_beside(beside / TIMES).await?;
    let [short, short_run] = [long, long_run].map(|long| long / TIMES);
    let stores = in_turns(
        async || purge(&large, Content::Turns(long)).await,
        async || purge(&small, Content::Turns(long)).await,
    )
    .await?;
    let sessions = in_turns(
        async || purge(&small, Content::Turns(long)).await,
        async || purge(&small, Content::Turns(short)).await,
    )
    .await?;
    let runs = in_turns(
        async || purge(&small, Content::Run(long_run)).await,
        async || purge(&small, Content::Run(short_run)).await,
    )
    .await?;
    let waits = beside_agents(&small, size).await?;
    large.broker.shutdown(Duration::ZERO).await;
    small.broker.shutdown(Duration::ZERO).await;
    let row = |name: String, pair: Pair| Row::new(name, "µs", pair, Bar::Within(TIMES_MAX));
    let [beside, few, long_run, short_run] =
        [beside, beside / TIMES, long_run, short_run].map(Grouped);
    Ok(vec![
        row(
            format!("erased event beside {beside} turns / {few}"),
            stores,
        ),
        row(format!("erased event of {long} turns / {short}"), sessions),
        row(
            format!("erased event of a run of {long_run} / {short_run}"),
            runs,
        ),
        waits,
    ])
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
        .talk_with_blobs(world.store(), others, MESSAGES)
        .await?;
    other.rename(world.store(), others).await?;
    other.open_more(world.store(), others).await?;
    Ok(world)
}

/// Purges a session with some content; microseconds for each event that an empty one does not have.
async fn purge(world: &World, content: Content) -> anyhow::Result<f64> {
    let (nothing, of_nothing) = purge_once(world, Content::Nothing).await?;
    let (taken, erased) = purge_once(world, content).await?;
    ensure!(
        taken > nothing,
        "{taken} µs, and {nothing} µs for an empty session"
    );
    Ok((taken - nothing) / (erased.events - of_nothing.events) as f64)
}

/// Makes a session and purges it; how many microseconds the purge took, and what it erased.
async fn purge_once(world: &World, content: Content) -> anyhow::Result<(f64, Erased)> {
    let store = world.store();
    let said = Conversation::begin(store).await?;
    let mut least = Erased::default();
    match content {
        Content::Nothing => {}
        Content::Turns(turns) => {
            said.talk_with_blobs(store, turns, MESSAGES).await?;
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
    empty_log(world)?;
    let began = Instant::now();
    let erased = purge_deleted(world, said).await?;
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
    append(store, Stream::Run(run), vec![ended]).await
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
        .delete_session(by, &target, said.session)
        .await?;
    Ok(())
}

/// Moves the write-ahead log to the database and empties it, as the end of a purge does: none has to
/// move what was written before it.
fn empty_log(world: &World) -> anyhow::Result<()> {
    let connection = Connection::open(world.dir.path().join("data/store.db"))?;
    connection.busy_timeout(LOG_PATIENCE)?;
    let text = "PRAGMA wal_checkpoint(TRUNCATE)";
    let is_busy: bool = connection.query_row(text, [], |row| row.get(0))?;
    ensure!(!is_busy, "somebody reads from the log");
    Ok(())
}

/// Purges a session, as the operator does.
async fn purge_deleted(world: &World, said: Conversation) -> anyhow::Result<Erased> {
    let user = UserId::local();
    let by = By {
        user: &user,
        key: None,
    };
    let what = PurgeOf::Session(Target::Agent(said.agent), said.session);
    Ok(world.broker.purge(by, &what).await?.purged.erased)
}

/// Measures how long commits wait for the purge of a structured session beside many events of its
/// agent, and beside few.
async fn beside_agents(world: &World, size: Size) -> anyhow::Result<Row> {
    let long = size.scaled(LONG_PAST);
    let much = Conversation::begin(world.store()).await?;
    much.prefer(world.store(), long).await?;
    let little = Conversation::begin(world.store()).await?;
    little.prefer(world.store(), SHORT_PAST).await?;
    let waits = in_turns(
        async || longest_wait(world, much).await,
        async || longest_wait(world, little).await,
    )
    .await?;
    Ok(Row::new(
        format!(
            "longest commit, purge beside {} events of an agent / {}",
            Grouped(long),
            Grouped(SHORT_PAST)
        ),
        "ms",
        waits,
        Bar::WithinPlus(TIMES_MAX, LONGER_MS),
    ))
}

/// Purges a structured session of an agent; the most milliseconds that a commit took meanwhile.
async fn longest_wait(world: &World, of: Conversation) -> anyhow::Result<f64> {
    let store = world.store();
    let said = of.begin_another(store).await?;
    store.commit(of_slot(said)).await?;
    delete(world, said).await?;
    empty_log(world)?;
    let is_over = Cell::new(false);
    let purging = async {
        let erased = purge_deleted(world, said).await;
        is_over.set(true);
        erased
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
            append(store, stream, vec![emitted]).await?;
            longest = longest.max(ms(began.elapsed()));
        }
        anyhow::Ok(longest)
    };
    let (erased, longest) = tokio::join!(purging, committing);
    let erased = erased?;
    let is_all = erased.events >= SLOT_EVENTS as u64 && erased.blobs >= SLOT_ANSWERS as u64;
    ensure!(is_all, "{erased:?} is not all of the session");
    longest
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

/// Appends events that are about nothing in particular.
async fn append(store: &Store, stream: Stream, events: Vec<Event>) -> anyhow::Result<()> {
    let events = events
        .into_iter()
        .map(|event| new(event, Subject::default()))
        .collect();
    let commit = Commit::new().append(stream, Expected::Any, events);
    store.commit(commit).await?;
    Ok(())
}
