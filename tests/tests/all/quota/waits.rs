//! Waits for replies: a key and a user have so many at the same time, and what is beyond them is
//! accepted without waiting.

use super::open;
use agent_host_tests::process::{Answer, Folder, Line, PATIENCE, Reply, Session, puppets};
use futures::future::select_all;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Sends a message in a session, and waits for the reply as long as a client may.
fn ask(line: &Line, session: &str, steps: &Value) -> Reply {
    let body = json!({ "content": json!({ "steps": steps }).to_string() });
    let path = format!("{session}/messages?wait_s=60");
    line.post(&path, &body)
}

/// Asks in a session of its own for something that is answered without delay.
async fn ask_briefly(line: &Line) -> Answer {
    let session = Session::of(&open(line).await);
    let asked = ask(line, &session, &json!([{ "reply": "soup" }]));
    timeout(PATIENCE, asked).await.expect("an answer")
}

#[track_caller]
fn replied(answer: &Answer) {
    answer.has(200, &json!({ "outcome": "replied" }));
}

#[track_caller]
fn accepted_only(answer: &Answer) {
    assert_eq!(
        (answer.status, answer.body.get("outcome")),
        (202, None),
        "{answer:?}"
    );
    assert!(answer.text("stream_url").contains("after="), "{answer:?}");
}

/// Sends two messages whose turns go on, with a key that has one wait. Returns their sessions, and
/// the request that waits.
async fn take_the_wait(line: &Line) -> ([Session; 2], Reply) {
    let sessions = [
        Session::of(&open(line).await),
        Session::of(&open(line).await),
    ];
    let steps = json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]);
    let asked = sessions.iter().map(|session| ask(line, session, &steps));
    let answered = timeout(PATIENCE, select_all(asked)).await;
    let (answer, _, mut waiting) = answered.expect("an answer to one of them at once");
    accepted_only(&answer);
    (sessions, waiting.remove(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_takes_its_waits_for_replies_and_everybody_else_goes_on() {
    let mut config =
        puppets(&json!([{ "agentId": "cook", "displayName": "Cook", "component": "puppet" }]));
    config["server"] = json!({
        "listen": "127.0.0.1:0", "dataDir": "data",
        "limits": { "waitsPerKeyMax": 1, "waitsPerUserMax": 2 },
    });
    let (_folder, host) = Folder::serving(config, &["puppet"]).await;
    let scopes = ["read", "write"];
    let first = host.user("alice", &scopes).await;
    let second = host.user("alice", &scopes).await;
    let third = host.user("alice", &scopes).await;
    let bob = host.user("bob", &scopes).await;
    let (sessions, waiting) = take_the_wait(&first).await;
    replied(&ask_briefly(&second).await);
    let (_, _waiting_too) = take_the_wait(&second).await;
    // The user's are taken, and this key has none of them.
    accepted_only(&ask_briefly(&third).await);
    replied(&ask_briefly(&bob).await);
    replied(&ask_briefly(&host.line()).await);
    // By an address as well.
    let routed = json!({ "to": { "agent": "cook" }, "content": r#"{"steps":[{"reply":"soup"}]}"# });
    let asked = third.post("/api/messages?wait_s=60", &routed);
    let answer = timeout(PATIENCE, asked).await.expect("an answer");
    accepted_only(&answer);
    // Who waits no longer may wait again.
    for session in &sessions {
        let all = json!({ "waiting": true });
        let path = format!("{session}/cancel");
        first.post(&path, &all).gives(200).await;
    }
    let ended = timeout(PATIENCE, waiting).await.expect("an end");
    assert_eq!(ended.status, 200, "{ended:?}");
    replied(&ask_briefly(&first).await);
}
