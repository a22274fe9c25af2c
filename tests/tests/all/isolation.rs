//! Ends of the process again and again: the work that ends it is found, and nothing else is given
//! up with it.

use super::exhaustion::idle_within;
use super::poison::quarantined;
use agent_host_tests::guests::test_program;
use agent_host_tests::process::{Folder, Host, PATIENCE, PERFORMING_DIES_ON, puppet, scripted};
use agent_host_tests::repeats::is_whole;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A model that takes longer than a process lives.
const SCRIPT: &str = r#"
[[rule]]
reply = { text = "hello from the model", firstDelayMs = 4000 }
"#;
/// The time for all chats of a test, which compute one after the other.
const ALL_ANSWERED: Duration = Duration::from_secs(4 * PATIENCE.as_secs());
/// Calls of a chat that computes.
const CALLS: usize = 5;
/// The time after which a host that has not ended does not end over its work: suspects are resumed
/// a second after the start, and the groups of a few follow within seconds.
const LIVES: Duration = Duration::from_secs(6);

async fn folder() -> Folder {
    let toil = json!({ "path": test_program("toil"), "limits": { "cpuMsMax": 100 } });
    let mut config = scripted(&json!([puppet()]), &[("toil", toil)]);
    config["providers"]["scripted"]["concurrentMax"] = json!(64);
    let folder = Folder::new(config);
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    folder.warm(&["puppet", "toil"]).await;
    folder
}

/// A chat whose turn asks the slow model, or calls a tool.
fn script(operation: &Value) -> String {
    json!({ "steps": [{ "start": [operation] }] }).to_string()
}

/// A chat whose turn computes for a while, call by call.
fn computes() -> String {
    let call = |call| {
        let call = json!({ "key": format!("t{call}"), "tool": "spin" });
        json!({ "start": [call] })
    };
    json!({ "steps": (0..CALLS).map(call).collect::<Vec<_>>() }).to_string()
}

fn waits() -> String {
    script(&json!({ "key": "m", "model": "be brief" }))
}

fn calls(tool: &str, arguments: &Value) -> String {
    script(&json!({ "key": "t", "tool": tool, "args": arguments }))
}

/// Opens a chat and says something in it. A host that dies over that has taken it.
async fn chat(host: &Host, words: &str) -> String {
    let opened = host.post("/api/agents/puppet/sessions", &json!({})).await;
    let agent = opened.text("agent_id");
    let session = format!("/api/agents/{agent}/sessions/{}", opened.text("session_id"));
    let path = format!("{session}/messages");
    let _ = host
        .post(&path, &json!({ "content": words }))
        .attempt()
        .await;
    session
}

/// The last words of a chat, once it is at rest.
async fn answered(host: &Host, session: &str) -> String {
    let patience = Instant::now() + ALL_ANSWERED;
    loop {
        let seen = host.get(session).await.body;
        if seen["quarantined"].is_null() {
            return idle_within(host, session, ALL_ANSWERED).await["messages"].to_string();
        }
        assert!(Instant::now() < patience, "it still waits: {seen}");
        sleep(Duration::from_millis(50)).await;
    }
}

async fn dead_letters(host: &Host) -> Value {
    host.get("/api/dead-letters").await.body["dead_letters"].clone()
}

/// Kills from outside blame no turn that waits for its model, however many there are in a row.
#[tokio::test(flavor = "multi_thread")]
async fn chats_with_slow_models_are_all_answered_however_often_the_host_is_killed() {
    let (chats, kills) = if is_whole() { (50, 10) } else { (20, 4) };
    let folder = folder().await;
    let mut host = folder.serve().await;
    let mut sessions = Vec::new();
    for _ in 0..chats {
        sessions.push(chat(&host, &waits()).await);
    }
    for _ in 0..kills {
        sleep(Duration::from_millis(fastrand::u64(1_000..3_500))).await;
        host.kill().await;
        host = folder.serve().await;
    }
    for session in &sessions {
        let seen = answered(&host, session).await;
        assert!(seen.contains("hello from the model"), "{seen}");
    }
    assert_eq!(dead_letters(&host).await, json!([]));
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// One chat whose call ends the process each time it is made, beside chats that wait and chats that
/// compute.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_turn_that_ends_the_process_each_time_is_given_up() {
    let (waiting, computing) = if is_whole() { (25, 25) } else { (6, 6) };
    let folder = folder().await;
    let deadly = Some((PERFORMING_DIES_ON, "deadly"));
    let mut host = folder.start_in(&[], deadly).await.unwrap();
    let mut others = Vec::new();
    for _ in 0..waiting {
        others.push(chat(&host, &waits()).await);
    }
    for _ in 0..computing {
        others.push(chat(&host, &computes()).await);
    }
    let guilty = chat(&host, &calls("idle", &json!({ "deadly": true }))).await;
    // The first call is behind those of the others, however long they take.
    let mut patience = ALL_ANSWERED;
    let mut ends = 0;
    loop {
        if host.died(patience).await.is_none() {
            break;
        }
        patience = LIVES;
        ends += 1;
        host = loop {
            match folder.start_in(&[], deadly).await {
                Ok(host) => break host,
                Err(_) => ends += 1,
            }
        };
        assert!(ends < 20, "it is not found: {}", folder.log());
    }
    // Five for the one that is suspected alone, and one for each halving of those that computed.
    let halvings = u32::BITS - u32::leading_zeros(computing);
    assert!((5..=5 + halvings).contains(&ends), "{ends} ends");
    for session in &others {
        let seen = answered(&host, session).await;
        let is_answered = seen.contains("hello from the model") || seen.contains("t4 failed");
        assert!(is_answered, "{seen}");
    }
    let ended = host.story(&guilty, "run.ended.v1").await;
    assert_eq!(ended[0]["code"], "host-failed", "{ended:?}");
    let dead = dead_letters(&host).await;
    assert_eq!(dead.as_array().map(Vec::len), Some(1), "{dead}");
    folder.over(host).await;
}

/// A suspect waits where its user and the operator see it, and goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_suspect_waits_in_quarantine_and_goes_on_by_itself_while_others_are_served() {
    let folder = folder().await;
    let deadly = Some((PERFORMING_DIES_ON, "deadly"));
    let mut host = folder.start_in(&[], deadly).await.unwrap();
    let session = chat(&host, &calls("idle", &json!({ "deadly": true }))).await;
    host.died(PATIENCE).await.expect("an end over its call");
    host = folder.start_in(&[], deadly).await.unwrap();
    host.died(PATIENCE).await.expect("another end");
    host = folder.serve().await;
    let why = quarantined(&host, &session).await;
    assert_eq!(why["why"], "suspected", "{why}");
    let said = why["reason"].as_str().unwrap();
    assert!(said.contains("goes on by itself"), "{said}");
    let other = chat(&host, &calls("idle", &json!({}))).await;
    assert!(answered(&host, &other).await.contains("t parts"));
    assert!(answered(&host, &session).await.contains("t parts"));
    let list = host.get("/api/quarantine").await.body["quarantined"].clone();
    assert_eq!(list, json!([]));
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// The sessions that the last process computed for are known to the next until it has noted them.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_killed_before_it_notes_whom_it_suspects_forgets_no_suspicion() {
    let folder = folder().await;
    let deadly = Some((PERFORMING_DIES_ON, "deadly"));
    let mut host = folder.start_in(&[], deadly).await.unwrap();
    let session = chat(&host, &calls("idle", &json!({ "deadly": true }))).await;
    host.died(PATIENCE).await.expect("an end over its call");
    host = folder.start_in(&[], deadly).await.unwrap();
    host.died(PATIENCE).await.expect("another end");
    let killed = folder.start(Some("broker.suspicions.before:1")).await;
    assert!(killed.is_err(), "it dies as it starts");
    host = folder.serve().await;
    let why = quarantined(&host, &session).await;
    assert_eq!(why["why"], "suspected", "{why}");
    assert!(answered(&host, &session).await.contains("t parts"));
    assert!(host.stop().await.success(), "{}", folder.log());
}
