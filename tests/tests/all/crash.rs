//! Death of the whole process, at every named place and at random ones, and what is left
//! afterwards.

mod audit;
mod client;
mod conversation;
mod matrix;

use agent_host_tests::guests::root;
use agent_host_tests::process::{Folder, Session, effects, scripted};
use agent_host_tests::repeats::is_whole;
use anyhow::{Context, Result, ensure};
use audit::audit;
use client::Client;
pub(super) use client::rest;
use client::{Ledger, Sent};
use conversation::Conversation;
pub(super) use conversation::turn;
use domain::time::Timestamp;
use futures::StreamExt;
use matrix::{AMONG_AGENTS, MATRIX, Matrix};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{EventFilter, Store};

/// Processes that run side by side.
const SIDE_BY_SIDE: usize = 4;
/// Number of times that the process is killed at a random moment.
const KILLS: u32 = 10;
/// More events than any of these tests makes.
const EVENTS_MAX: usize = 1_000_000;
/// Time after which a host that is ready goes on with what was unfinished, in milliseconds.
const PICKUP_MS: u64 = 1_000;

pub(super) fn config() -> Value {
    let question = json!({ "start": [{ "key": "question", "client": "question" }] });
    let agents = json!([
            // Words that arrive at a turn's end make it go on: a limit would end it sooner or
            // later.
            {
                "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
                "limits": { "stepsMax": 100_000 },
            },
            { "agentId": "other", "displayName": "Other", "component": "puppet" },
            { "agentId": "gone", "displayName": "Gone", "component": "puppet" },
            {
                "agentId": "limited", "displayName": "Limited", "component": "puppet",
                "limits": { "stepsMax": 2 },
            },
            { "agentId": "completed", "displayName": "Completed", "component": "puppet",
              "settings": { "script": { "steps": [question, { "complete": { "score": 1 } }] } } },
            { "agentId": "terminated", "displayName": "Terminated", "component": "puppet",
              "settings": { "script": { "steps": [question] } } },
    ]);
    scripted(&agents, &[("effects", effects())])
}

/// The result of one case.
struct CaseOutcome {
    /// Number of times that the process died.
    deaths: u32,
    /// Number of calls of which nothing is known.
    unknown: usize,
}

/// Holds a conversation in which the process dies at a crash point, and looks at what is left.
async fn dies_at(conversation: Conversation, point: &str, passage: u32) -> Result<CaseOutcome> {
    let folder = Folder::new(config());
    if point != "runtime.cache.write" {
        folder.warm(&["puppet", "effects"]).await;
    }
    let mut client = Client::start(folder, Some(&format!("{point}:{passage}"))).await?;
    let mut ledger = Ledger::default();
    conversation.hold(&mut client, &mut ledger).await?;
    let (folder, deaths) = client.finish(&mut ledger).await?;
    let unknown = audit(&folder, &ledger).await?;
    ensure!(deaths <= 1, "the process died {deaths} times");
    Ok(CaseOutcome { deaths, unknown })
}

/// The passages of one crash point that are tried: all of them where everything is asked for, and
/// otherwise the first, which is the likeliest to come, and any one of the others.
fn tried(passages: &'static [u32]) -> Vec<u32> {
    match passages {
        [first, others @ ..] if !is_whole() => {
            let other = fastrand::choice(others).copied();
            [*first].into_iter().chain(other).collect()
        }
        all => all.to_vec(),
    }
}

/// Tries the cases of a matrix, and says how many calls there were of which nothing is known.
async fn try_all(matrix: Matrix) -> usize {
    let mut cases = Vec::new();
    for (conversation, points) in matrix {
        let of_one = points.iter().flat_map(|(point, passages)| {
            tried(passages)
                .into_iter()
                .map(move |passage| (*conversation, *point, passage))
        });
        cases.extend(of_one);
    }
    let count = cases.len();
    let results: Vec<(Conversation, &str, Result<CaseOutcome>)> = futures::stream::iter(cases)
        .map(|(conversation, point, passage)| async move {
            let result = dies_at(conversation, point, passage).await;
            (
                conversation,
                point,
                result.with_context(|| format!("{conversation:?}, {point}:{passage}")),
            )
        })
        .buffer_unordered(SIDE_BY_SIDE)
        .collect()
        .await;
    let wrong: Vec<String> = results
        .iter()
        .filter_map(|(.., result)| result.as_ref().err())
        .map(|error| format!("{error:#}"))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {count} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let ended: Vec<(Conversation, &str, CaseOutcome)> = results
        .into_iter()
        .filter_map(|(conversation, point, ended)| Some((conversation, point, ended.ok()?)))
        .collect();
    // Commits that happen to share a transaction make some passages too few; but nearly all cases
    // must have been what they say.
    let mut deaths: BTreeMap<(Conversation, &str), u32> = BTreeMap::new();
    for (conversation, point, ended) in &ended {
        *deaths.entry((*conversation, point)).or_default() += ended.deaths;
    }
    let never: Vec<_> = deaths.iter().filter(|(_, deaths)| **deaths == 0).collect();
    assert!(never.is_empty(), "nothing ever died here: {never:?}");
    let total: u32 = deaths.values().sum();
    assert!(
        total as usize * 10 >= count * 9,
        "{total} deaths in {count} cases"
    );
    ended.iter().map(|(.., ended)| ended.unknown).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_was_acknowledged_survives_death_at_every_crash_point() {
    assert!(
        try_all(MATRIX).await > 0,
        "no death left a call of which nothing is known, so this was never tried"
    );
}

/// Work that agents hand to each other is done once and told once, whenever the process dies.
#[tokio::test(flavor = "multi_thread")]
async fn work_between_agents_is_done_once_and_told_once_whenever_the_process_dies() {
    try_all(AMONG_AGENTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_was_acknowledged_survives_ten_kills_at_random_moments() {
    let folder = Folder::new(config());
    folder.warm(&["puppet", "effects"]).await;
    let mut client = Client::start(folder, None).await.unwrap();
    let mut ledger = Ledger::default();
    let mut exchanges: Vec<(Session, Vec<Sent>)> = Vec::new();
    for _ in 0..4 {
        exchanges.push((client.open("puppet").await.unwrap(), Vec::new()));
    }
    for _ in 0..KILLS {
        let pause = Duration::from_millis(u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * 2 + 20);
        client
            .exchange_until(&mut exchanges, turn, pause)
            .await
            .unwrap();
        client.kill().await.unwrap();
    }
    for (exchange, sent) in exchanges {
        for sent in sent {
            client.say(&mut ledger, sent).await.unwrap();
        }
        client.idle(&exchange).await.unwrap();
    }
    assert!(
        ledger.sent.len() >= 10,
        "{} messages are no load",
        ledger.sent.len()
    );
    let (folder, _) = client.finish(&mut ledger).await.unwrap();
    audit(&folder, &ledger).await.unwrap();
}

/// The last position, and the sessions that have something to do.
async fn inspect(folder: &Folder) -> (u64, Vec<domain::id::SessionId>) {
    let store = open(folder).await;
    let work = store.sessions_with_work(now()).await.unwrap();
    let head = *store.durable().borrow();
    store.close().await;
    (head, work)
}

pub(super) async fn open(folder: &Folder) -> Store {
    let data = folder.data();
    tokio::task::spawn_blocking(move || Store::open(&data, store::Options::default()).unwrap())
        .await
        .unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with the times of events, which come from the same clock"
)]
fn now() -> Timestamp {
    Timestamp(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis()
            .try_into()
            .unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_work_goes_on_within_a_second_of_ready() {
    for (point, passage) in [
        ("broker.accept.after", 4),
        ("api.answered", 12),
        ("broker.step.before", 4),
        ("broker.step.after", 4),
        ("broker.commit.after", 4),
        ("broker.started.after", 3),
        ("broker.perform.before", 5),
        ("broker.perform.after", 5),
        ("broker.settle.after", 3),
    ] {
        let folder = Folder::new(config());
        folder.warm(&["puppet", "effects"]).await;
        let mut host = folder
            .start(Some(&format!("{point}:{passage}")))
            .await
            .unwrap();
        for _ in 0..8 {
            let opened = host.post("/api/agents/puppet/sessions", &json!({}));
            let Ok(opened) = opened.attempt().await else {
                break;
            };
            let path = format!("{}/messages", Session::of(&opened));
            // The connection that it dies on is the last.
            let said = host.post(&path, &json!({ "content": turn(0) }));
            let Ok(_) = said.attempt().await else {
                break;
            };
        }
        assert!(
            host.died(Duration::from_secs(10)).await.is_some(),
            "{point} was never passed"
        );
        let (head, unfinished) = inspect(&folder).await;
        assert!(!unfinished.is_empty(), "{point} left nothing to do");
        let host = folder.serve().await;
        let ready = now();
        for session in &unfinished {
            rest(&host, &session.to_string()).await.unwrap();
        }
        assert!(host.stop().await.success());
        let store = open(&folder).await;
        let events = store
            .events(head, EventFilter::default(), EVENTS_MAX)
            .await
            .unwrap();
        for session in unfinished {
            let first = events
                .iter()
                .find(|event| event.subject.session == Some(session))
                .unwrap();
            let ms = first.time.since_ms(ready);
            assert!(
                ms <= PICKUP_MS,
                "{point}: session {session} went on {ms} ms after the host was ready"
            );
        }
        store.close().await;
    }
}

#[test]
fn every_crash_point_of_the_sources_is_listed_and_tried() {
    let mut found = BTreeSet::new();
    collect(&root().join("host"), &mut found);
    let [of_triggers, of_connectors] = edge::CRASH_POINTS;
    let listed: BTreeSet<String> = [
        store::CRASH_POINTS,
        runtime::CRASH_POINTS,
        broker::CRASH_POINTS,
        of_triggers,
        of_connectors,
        api::CRASH_POINTS,
    ]
    .concat()
    .into_iter()
    .map(str::to_owned)
    .collect();
    assert_eq!(found, listed, "in the sources, and in the lists");
    let tried: BTreeSet<String> = MATRIX
        .iter()
        .flat_map(|(_, points)| points.iter())
        .map(|(point, _)| (*point).to_owned())
        .collect();
    // Those of a purge are passed where something is purged: `purge.rs`; those of a recovery after
    // another crash: `poison.rs`; that of suspicions: `isolation.rs`; those of a cut where a prompt
    // outgrows its window: `compaction/during.rs`; those of reading a session into notes:
    // `memory.rs`; those of the edge: `triggers/crash.rs` and `connectors/restarts.rs`.
    let elsewhere = [
        "store.purge.",
        "broker.recover.",
        "broker.suspicions.",
        "broker.cut.",
        "broker.memory.",
        "edge.",
    ];
    let in_matrix: BTreeSet<String> = listed
        .into_iter()
        .filter(|point| !elsewhere.iter().any(|of| point.starts_with(of)))
        .collect();
    assert_eq!(tried, in_matrix, "in the matrix, and in the lists");
}

/// The names of all crash points in a folder's sources, tests excepted.
fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("tests") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text
                .split("point(\"")
                .skip(1)
                .filter_map(|rest| rest.split_once("\")"))
                .map(|(name, _)| name.to_owned());
            found.extend(names);
        }
    }
}
