//! Death of the process between a call and its commit: what the call wrote is there exactly when its result is.

use super::shared;
use crate::all::crash::{open, rest};
use agent_host_tests::guests::root;
use agent_host_tests::process::{Folder, PATIENCE};
use domain::id::SessionId;
use serde_json::{Value, json};

fn config() -> Value {
    let file = |name: &str| root().join(format!("tests/programs/target/wasm32-wasip2/release/{name}.wasm"));
    json!({
        "agents": [{ "agentId": "puppet", "displayName": "Puppet", "component": "puppet" }],
        "components": {
            "puppet": { "path": file("puppet") },
            "shelf": { "path": file("shelf"), "keyValue": [{ "bucket": "notes", "scope": "component", "access": "read-write" }] },
        },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    })
}

/// Two calls, of which one may be made again and the other not, in a process that dies at a crash point. What the agent was told of them,
/// and what their counters are.
async fn dies_at(point: &str) -> (String, [Option<String>; 2]) {
    let folder = Folder::new(config());
    folder.warm(&["puppet", "shelf"]).await;
    let mut host = folder.start(Some(point)).await.unwrap();
    let answer = host.post("/api/agents/puppet/sessions", &json!({})).await.unwrap();
    let session = answer.text("id");
    let add = |key: &str, tool: &str| json!({ "key": key, "tool": tool, "args": { "do": [["add", key, 1]] } });
    let steps = json!({ "steps": [{ "start": [add("again", "keep")] }, { "start": [add("once", "once")] }] });
    let path = format!("/api/agents/{}/sessions/{session}/messages", answer.text("agent_id"));
    // It may die before it answers, and has accepted the message all the same.
    let _ = host.post(&path, &json!({ "content": steps.to_string() })).await;
    assert!(host.died(PATIENCE).await.is_some(), "{point} was never passed");
    let host = folder.start(None).await.unwrap();
    rest(&host, &session).await.unwrap();
    assert!(host.stop().await.success());

    let store = open(&folder).await;
    let id: SessionId = session.parse().unwrap();
    let row = store.session(id).await.unwrap().unwrap();
    let messages = store.messages(row.head, 1, row.head_message).await.unwrap();
    let said = messages.last().map(domain::message::Message::text).unwrap_or_default();
    let value = |key| {
        let store = &store;
        async move { store.bucket_value(&shared("notes"), key).await.unwrap().map(|value| String::from_utf8(value).unwrap()) }
    };
    let values = [value("again").await, value("once").await];
    assert_eq!(store.verify().await.unwrap().fault, None, "{point}");
    store.close().await;
    (said, values)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_call_and_commit_neither_loses_nor_doubles_an_increment() {
    let mut unknown = 0;
    for point in [
        "broker.perform.before:1",
        "broker.perform.after:1",
        "broker.step.before:2",
        "broker.commit.before:2",
        "broker.commit.after:2",
        "broker.started.after:1",
        "broker.perform.after:2",
        "broker.step.after:3",
        "broker.commit.before:3",
        "broker.commit.after:3",
        "store.commit.inserted:4",
        "store.commit.committed:4",
        "store.commit.inserted:6",
        "store.commit.committed:6",
    ] {
        let (said, [again, once]) = dies_at(point).await;
        let told: Vec<&str> = said.lines().collect();
        assert_eq!((told[0], again.as_deref()), ("again parts 1", Some("1")), "{point}");
        match told[1] {
            "once unknown" => {
                unknown += 1;
                assert_eq!(once, None, "{point}");
            }
            told => assert_eq!((told, once.as_deref()), ("once parts 1", Some("1")), "{point}"),
        }
    }
    assert!(unknown > 0, "no death came between a call that must not be repeated and its commit");
}
