//! Death of the process between a call and its commit: what the call wrote is there exactly when
//! its result is.

use super::{shared, shelved};
use crate::all::crash::{open, rest};
use agent_host_tests::process::{Folder, Host, PATIENCE};
use domain::id::SessionId;
use reqwest::Method;
use serde_json::json;
use store::Store;

async fn last_reply(store: &Store, session: SessionId) -> String {
    let row = store.session(session).await.unwrap().unwrap();
    let messages = store.messages(row.head, 1, row.head_message).await.unwrap();
    messages
        .last()
        .map(domain::message::Message::text)
        .unwrap_or_default()
}

/// Makes two calls in a process that dies at a crash point. One of them may be made again, the
/// other not. Returns the agent's reply, and the calls' counters.
async fn dies_at(point: &str) -> (String, [Option<String>; 2]) {
    let folder = Folder::new(shelved("component"));
    folder.warm(&["puppet", "shelf"]).await;
    let mut host = folder.start(Some(point)).await.unwrap();
    let answer = host.post("/api/agents/puppet/sessions", &json!({})).await;
    let session = answer.text("session_id");
    let add = |key: &str, tool: &str| {
        json!({
            "key": key, "tool": tool, "args": { "do": [["add", key, 1]] },
        })
    };
    let steps = json!({
        "steps": [{ "start": [add("again", "keep")] }, { "start": [add("once", "once")] }],
    });
    let path = format!(
        "/api/agents/{}/sessions/{session}/messages",
        answer.text("agent_id")
    );
    let message = json!({ "content": steps.to_string() });
    let request = |host: &Host| {
        host.request(Method::POST, &path)
            .header("idempotency-key", "1")
            .json(&message)
    };
    let accepted = host
        .send(request(&host))
        .attempt()
        .await
        .is_ok_and(|answer| answer.status == 202);
    assert!(
        host.died(PATIENCE).await.is_some(),
        "{point} was never passed"
    );
    let host = folder.serve().await;
    if !accepted {
        // It died before it answered, and may have accepted the message all the same: under the
        // same key it counts once.
        assert_eq!(host.send(request(&host)).await.status, 202, "{point}");
    }
    rest(&host, &session).await.unwrap();
    assert!(host.stop().await.success());

    let store = open(&folder).await;
    let said = last_reply(&store, session.parse().unwrap()).await;
    let value = |key| {
        let store = &store;
        async move {
            store
                .bucket_value(&shared("notes"), key)
                .await
                .unwrap()
                .map(|value| String::from_utf8(value).unwrap())
        }
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
        let reported: Vec<&str> = said.lines().collect();
        assert_eq!(
            (reported[0], again.as_deref()),
            ("again parts 1", Some("1")),
            "{point}"
        );
        match reported[1] {
            "once unknown" => {
                unknown += 1;
                assert_eq!(once, None, "{point}");
            }
            reported => assert_eq!(
                (reported, once.as_deref()),
                ("once parts 1", Some("1")),
                "{point}"
            ),
        }
    }
    assert!(
        unknown > 0,
        "no death came between a call that must not be repeated and its commit"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_or_a_call_that_panics_lets_its_buckets_go() {
    for (point, first) in [
        ("panic@broker.perform.after:1", "again failed host-failed"),
        ("panic@broker.step.before:2", "again parts 1"),
        ("panic@broker.commit.before:2", "again parts 1"),
        ("panic@broker.commit.after:2", "again parts 1"),
    ] {
        let folder = Folder::new(shelved("component"));
        folder.warm(&["puppet", "shelf"]).await;
        let host = folder.start(Some(point)).await.unwrap();
        let mut sessions = Vec::new();
        for _ in 0..2 {
            let answer = host.post("/api/agents/puppet/sessions", &json!({})).await;
            let agent = answer.text("agent_id");
            let session = answer.text("session_id");
            let steps = json!({
                "steps": [{
                    "start": [{
                        "key": "again", "tool": "keep", "args": { "do": [["add", "n", 1]] },
                    }],
                }],
            });
            host.post(
                &format!("/api/agents/{agent}/sessions/{session}/messages"),
                &json!({ "content": steps.to_string() }),
            )
            .await;
            rest(&host, &session).await.unwrap();
            sessions.push(session.parse().unwrap());
        }
        assert!(
            folder.log().contains("a test wants a panic at"),
            "{point}: nothing panicked"
        );
        assert!(host.stop().await.success());
        let store = open(&folder).await;
        let mut reported = Vec::new();
        for session in sessions {
            reported.push(last_reply(&store, session).await);
        }
        let sum = if first.ends_with('1') { 2 } else { 1 };
        assert!(
            reported[0].starts_with(first) && reported[1] == format!("again parts {sum}"),
            "{point}: {reported:?}"
        );
        store.close().await;
    }
}
