//! Death of the whole process, at every named place and at random ones, and what is left afterwards.

mod audit;
mod client;

use agent_host_tests::guests::root;
use agent_host_tests::process::Folder;
use anyhow::{Context, Result, ensure};
use audit::audit;
use client::{Client, Sent};
use futures::StreamExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Processes that run side by side.
const SIDE_BY_SIDE: usize = 3;
/// Turns of different kinds.
const TURNS: usize = 3;
/// How often the process is killed at a random moment.
const KILLS: u32 = 10;
/// The crash points that a host passes while it serves, and at which passages the process is to die.
const WHILE_SERVING: [(&str, &[u32]); 14] = [
    ("store.commit.begin", &[1, 2, 3, 5, 8, 13]),
    ("store.commit.inserted", &[1, 2, 3, 4, 6, 9, 14]),
    ("store.commit.committed", &[1, 2, 3, 4, 7, 10, 15]),
    ("broker.accept.before", &[1, 2, 3]),
    ("broker.accept.after", &[1, 2, 3]),
    ("broker.step.before", &[1, 2, 5]),
    ("broker.step.after", &[1, 2, 5]),
    ("broker.commit.before", &[1, 2, 4]),
    ("broker.commit.after", &[1, 2, 4]),
    ("broker.started.after", &[1, 2, 3]),
    ("broker.perform.before", &[1, 2, 3, 6]),
    ("broker.perform.after", &[1, 2, 3, 6]),
    ("broker.settle.before", &[1, 2, 3, 4]),
    ("broker.settle.after", &[1, 2, 3, 4]),
];
/// Those that it passes at its start, at its end, while it makes a backup, or in a long turn.
const AT_THE_EDGES: [(&str, &[u32]); 5] = [
    ("store.migrate", &[1]),
    ("runtime.cache.write", &[1, 2]),
    ("store.checkpoint", &[1, 2]),
    ("store.backup", &[1]),
    ("store.snapshot", &[1]),
];
fn config() -> Value {
    let file = |name: &str| root().join(format!("tests/programs/target/wasm32-wasip2/release/{name}.wasm"));
    json!({
        "agents": [
            { "agentId": "puppet", "displayName": "Puppet", "component": "puppet" },
            { "agentId": "other", "displayName": "Other", "component": "puppet" },
        ],
        "components": {
            "puppet": { "path": file("puppet") },
            "effects": { "path": file("effects"), "directories": [{ "path": "files", "at": "/data", "access": "read-write" }] },
        },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    })
}

/// Turns that pass every crash point, one after the other: all effect classes side by side, several segments, a timer, another agent, a
/// model. Keys carry the number, because a message that arrives at the end of a turn becomes part of it.
fn turn(number: usize) -> String {
    let key = |name: &str| format!("{name}-{number}");
    let reply = json!({ "steps": [{ "reply": "hi" }] }).to_string();
    let turn = match number % TURNS {
        0 => json!({ "steps": [{ "until": "all", "start": [
            { "key": key("look"), "tool": "look" }, { "key": key("put"), "tool": "put" },
            { "key": key("send"), "tool": "send", "args": { "sleep": 5 } },
        ] }] }),
        1 => json!({ "steps": [
            { "start": [{ "key": key("timer"), "timer": 20 }] },
            { "until": "all", "start": [{ "key": key("patient"), "tool": "patient" }, { "key": key("send"), "tool": "send" }] },
        ] }),
        _ => json!({ "steps": [
            { "start": [{ "key": key("agent"), "agent": "other", "text": reply }] },
            { "start": [{ "key": key("model"), "model": "be kind" }] },
        ] }),
    };
    turn.to_string()
}

/// A turn of so many events that its run gets a snapshot.
fn long_turn() -> String {
    let steps: Vec<Value> = (0..40).map(|step| json!({ "start": [{ "key": format!("send-{step}"), "tool": "send" }] })).collect();
    json!({ "steps": steps }).to_string()
}

/// Holds a conversation in which the process dies at a crash point, and looks at what is left. Returns how many outcomes were `unknown`.
async fn dies_at(point: &str, passage: u32) -> Result<usize> {
    let folder = Folder::new(config());
    if point != "runtime.cache.write" {
        folder.warm(&["puppet", "effects"]).await;
    }
    let mut client = Client::start(folder, Some(&format!("{point}:{passage}"))).await?;
    let sessions = [client.open("puppet").await?, client.open("puppet").await?];
    let mut ledger = Vec::new();
    for number in 0..TURNS {
        for session in &sessions {
            let mut sent = Sent::new(session, &turn(number), number);
            client.say(&mut sent).await?;
            ledger.push(sent);
        }
        for session in &sessions {
            client.idle(session).await?;
        }
    }
    if point == "store.snapshot" {
        let mut sent = Sent::new(&sessions[0], &long_turn(), TURNS);
        client.say(&mut sent).await?;
        ledger.push(sent);
        client.idle(&sessions[0]).await?;
    }
    if point == "store.backup" {
        client.back_up().await?;
    }
    let (folder, deaths) = client.finish().await?;
    ensure!(deaths == 1, "the process died {deaths} times");
    audit(&folder, &ledger).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_was_acknowledged_survives_death_at_every_crash_point() {
    let cases: Vec<(&str, u32)> = WHILE_SERVING
        .into_iter()
        .chain(AT_THE_EDGES)
        .flat_map(|(point, passages)| passages.iter().map(move |passage| (point, *passage)))
        .collect();
    let count = cases.len();
    let results: Vec<Result<usize>> = futures::stream::iter(cases)
        .map(|(point, passage)| async move { dies_at(point, passage).await.with_context(|| format!("{point}:{passage}")) })
        .buffer_unordered(SIDE_BY_SIDE)
        .collect()
        .await;
    let wrong: Vec<String> = results.iter().filter_map(|result| result.as_ref().err()).map(|error| format!("{error:#}")).collect();
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
    let unknown: usize = results.into_iter().flatten().sum();
    assert!(unknown > 0, "no death left a call of which nothing is known, so this was never tried");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_was_acknowledged_survives_ten_kills_at_random_moments() {
    let folder = Folder::new(config());
    folder.warm(&["puppet", "effects"]).await;
    let mut client = Client::start(folder, None).await.unwrap();
    let mut talks = Vec::new();
    for _ in 0..4 {
        talks.push((client.open("puppet").await.unwrap(), Vec::<Sent>::new()));
    }
    for _ in 0..KILLS {
        let pause = Duration::from_millis(u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * 2 + 20);
        client.talk_until(&mut talks, turn, pause).await.unwrap();
        client.kill().await.unwrap();
    }
    let mut ledger = Vec::new();
    for (session, sent) in talks {
        for mut sent in sent {
            client.say(&mut sent).await.unwrap();
            ledger.push(sent);
        }
        client.idle(&session).await.unwrap();
    }
    assert!(ledger.len() >= 10, "{} messages are no load", ledger.len());
    let (folder, _) = client.finish().await.unwrap();
    audit(&folder, &ledger).await.unwrap();
}

#[test]
fn every_crash_point_of_the_sources_is_listed_and_tried() {
    let mut found = BTreeSet::new();
    collect(&root().join("host"), &mut found);
    let listed: BTreeSet<String> =
        [store::CRASH_POINTS, runtime::CRASH_POINTS, broker::CRASH_POINTS].concat().into_iter().map(str::to_owned).collect();
    assert_eq!(found, listed, "in the sources, and in the lists");
    let tried: BTreeSet<String> = WHILE_SERVING.iter().chain(&AT_THE_EDGES).map(|(point, _)| (*point).to_owned()).collect();
    assert_eq!(tried, listed, "in the matrix, and in the lists");
}

/// The names of all crash points in a folder's sources, tests excepted.
fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("tests") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("point(\"").skip(1).filter_map(|rest| rest.split_once("\")")).map(|(name, _)| name.to_owned());
            found.extend(names);
        }
    }
}
