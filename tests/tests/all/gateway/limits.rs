//! The limits of a definition on messages and sessions.

use super::{Peer, folder};
use agent_host_tests::patience::until;
use agent_host_tests::process::{Host, Line, Session, tells};
use futures::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;

/// An agent of the peer's model with one key more.
fn limited(key: &str, value: u64) -> Value {
    let mut agent = json!({ "agentId": "limited", "displayName": "Limited", "toolAllowlist": [] });
    agent[key] = json!(value);
    json!({ "agents": [agent] })
}

/// Posts a message, and returns the status and the body.
async fn post(host: &Host, session: &str, words: &str) -> (u16, Value) {
    let path = format!("{session}/messages");
    let posted = host.post(&path, &json!({ "content": words })).await;
    (posted.status, posted.body)
}

/// The events of a session, as text.
async fn events(host: &Host, session: &Session) -> String {
    let events = host.events(&format!("&session={}", session.id())).await;
    json!(events).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_works_on_five_messages_at_once_or_as_many_as_its_definition_says() {
    let peer = Peer::start();
    let folder = folder(&peer, limited("maxConcurrentMessages", 2)).await;
    let host = folder.serve().await;
    peer.slow_ms(300);
    for (agent, most) in [("limited", 2), ("plain", 5)] {
        let mut sessions = Vec::new();
        for _ in 0..8 {
            sessions.push(host.open(agent).await);
        }
        let said = sessions
            .iter()
            .map(|session| host.turn(session, "hello").gives(200));
        for outcome in join_all(said).await {
            assert_eq!(outcome.body["outcome"], "replied", "{outcome:?}");
        }
        assert_eq!(peer.open_most(), most, "{agent}");
    }
}

/// Sends something as a user, and returns what came of it.
async fn sent(line: &Line, path: &str, body: &Value) -> Value {
    let answer = line.post(path, body).await;
    assert!((200..300).contains(&answer.status), "{answer:?}");
    answer.body
}

/// Waits until the peer was asked so often.
async fn asked(peer: &Peer, times: usize) {
    until(async || peer.bodies().len() >= times).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_take_turns_with_the_messages_of_an_agent() {
    let peer = Peer::start();
    let folder = folder(&peer, limited("maxConcurrentMessages", 1)).await;
    let host = folder.serve().await;
    let alice = host.user("alice", &["read", "write"]).await;
    let bob = host.user("bob", &["read", "write"]).await;
    let made = sent(&alice, "/api/agents", &json!({ "definition": "limited" })).await;
    let agent = format!("/api/agents/{}", made["id"].as_str().unwrap());
    let shared = json!({ "user_id": "bob", "role": "shared" });
    sent(&alice, &format!("{agent}/assign"), &shared).await;
    let mut posts = Vec::new();
    for (line, words) in [
        (&alice, "first of alice"),
        (&alice, "second of alice"),
        (&alice, "third of alice"),
        (&alice, "fourth of alice"),
        (&bob, "words of bob"),
    ] {
        let opened = sent(line, &format!("{agent}/sessions"), &json!({})).await;
        let session = opened["session_id"].as_str().unwrap();
        let path = format!("{agent}/sessions/{session}/messages");
        posts.push((line, path, json!({ "content": words })));
    }
    // The first is at work until all others wait; Bob's is the last to come.
    peer.slow_ms(4_000);
    for (line, path, body) in &posts {
        sent(line, path, body).await;
        asked(&peer, 1).await;
        peer.slow_ms(0);
    }
    assert_eq!(peer.bodies().len(), 1, "the others wait");
    asked(&peer, posts.len()).await;
    let asked: Vec<String> = peer.bodies().iter().map(Value::to_string).collect();
    let place = |words: &str| asked.iter().position(|body| body.contains(words)).unwrap();
    assert_eq!(place("first of alice"), 0);
    assert!(place("words of bob") <= 2, "{asked:#?}");
    assert_eq!(peer.open_most(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_wait_for_their_agent_are_answered_after_a_crash() {
    let peer = Peer::start();
    let folder = folder(&peer, limited("maxConcurrentMessages", 1)).await;
    let host = folder.serve().await;
    peer.slow_ms(1_500);
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let session = host.open("limited").await;
        assert_eq!(post(&host, &session, "hello").await.0, 202);
        sessions.push(session);
    }
    host.kill().await;
    // The peer is done with the call of the host that is gone.
    tokio::time::sleep(Duration::from_millis(1_600)).await;
    peer.slow_ms(300);
    peer.forget_most();
    let host = folder.serve().await;
    for session in &sessions {
        until(async || events(&host, session).await.contains("\"well\"")).await;
    }
    assert_eq!(peer.open_most(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_comes_no_further_fails_as_timed_out() {
    let peer = Peer::start();
    let folder = folder(&peer, limited("messageTimeout", 1)).await;
    let host = folder.serve().await;
    let session = host.open("limited").await;
    assert_eq!(
        host.turn(&session, "hello").gives(200).await.body["outcome"],
        "replied"
    );
    peer.slow_ms(20_000);
    let outcome = host.turn(&session, "hello").gives(200).await.body;
    assert_eq!(outcome["outcome"], "failed", "{outcome}");
    let error = &outcome["error"];
    assert_eq!(error["code"], "message-timed-out", "{outcome}");
    assert_eq!(error["retryable"], true, "{outcome}");
    assert_eq!(error["category"], "MESSAGE_PROCESSING_FAILED", "{outcome}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("messageTimeout"), "{outcome}");
    let events = events(&host, &session).await;
    tells(&events, &["message-timed-out", "messageTimeout"]);
}

/// Each attempt is given up before the turn would be, and begins its time anew.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_together_take_longer_than_a_turn_may_rest_lead_to_a_reply() {
    let peer = Peer::start();
    let mut config = limited("messageTimeout", 2);
    config["timeouts"] = json!({ "firstTokenMs": 1_300 });
    let folder = folder(&peer, config).await;
    let host = folder.serve().await;
    let session = host.open("limited").await;
    peer.slow_ms(20_000);
    let mended = async {
        // Both of the first attempts have come, and neither gets an answer in time.
        until(async || peer.bodies().len() >= 2).await;
        peer.slow_ms(0);
    };
    let both = futures::future::join(host.turn(&session, "hello").gives(200), mended);
    let outcome = both.await.0.body;
    assert_eq!(outcome["outcome"], "replied", "{outcome}");
    assert_eq!(peer.bodies().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_full_or_was_idle_for_too_long_takes_no_more_messages() {
    for (key, value, code) in [
        ("maxSessionMessages", 2, "SESSION_FULL"),
        ("sessionTimeout", 1, "SESSION_EXPIRED"),
    ] {
        let peer = Peer::start();
        let folder = folder(&peer, limited(key, value)).await;
        let host = folder.serve().await;
        let session = host.open("limited").await;
        assert_eq!(
            host.turn(&session, "hello").gives(200).await.body["outcome"],
            "replied"
        );
        if code == "SESSION_EXPIRED" {
            assert_eq!(
                host.turn(&session, "at once").gives(200).await.body["outcome"],
                "replied"
            );
            tokio::time::sleep(Duration::from_millis(1_200)).await;
        }
        let (status, refused) = post(&host, &session, "more").await;
        assert_eq!((status, &refused["code"]), (409, &json!(code)), "{refused}");
        assert!(
            refused["detail"].as_str().unwrap().contains(key),
            "{refused}"
        );
        assert_eq!(refused["details"]["limit"], key, "{refused}");
        if code == "SESSION_FULL" {
            assert_eq!(refused["details"]["max"], value, "{refused}");
        }
        let other = host.open("limited").await;
        assert_eq!(post(&host, &other, "more").await.0, 202);
        let unlimited = host.open("plain").await;
        assert_eq!(
            host.turn(&unlimited, "hello").gives(200).await.body["outcome"],
            "replied"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_beyond_the_window_of_the_definition_is_sent_cut() {
    let peer = Peer::start();
    let folder = folder(&peer, limited("contextWindowSize", 2_000)).await;
    let host = folder.serve().await;
    let session = host.open("limited").await;
    host.turn(&session, "hello").gives(200).await;
    assert_eq!(peer.bodies().len(), 1);
    let said = host
        .turn(&session, &"many words ".repeat(4_000))
        .gives(200)
        .await
        .body;
    assert_eq!(said["outcome"], "replied", "{said}");
    let bodies = peer.bodies();
    assert!(bodies.len() > 1, "it is sent, cut");
    for body in &bodies {
        let bytes = body.to_string().len();
        assert!(
            bytes < 4 * 2_000,
            "the model could take all of it, the agent may not: {bytes} bytes"
        );
    }
    let checked = super::folder(&peer, limited("contextWindowSize", 10)).await;
    let checked = checked.run(&["config", "check"]).await;
    let reported = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(2), "{reported}");
    tells(&reported, &["agents[1].contextWindowSize"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_streaming_is_answered_in_one_piece_and_says_so() {
    let peer = Peer::start();
    let whole = json!({
        "agentId": "whole", "displayName": "Whole", "toolAllowlist": [], "enableStreaming": false,
    });
    let folder = folder(&peer, json!({ "agents": [whole] })).await;
    let host = folder.serve().await;
    for (agent, streamed) in [("plain", true), ("whole", false)] {
        let session = host.open(agent).await;
        let said = host.turn(&session, "hello").gives(200).await.body;
        assert_eq!(
            (&said["reply"]["text"], &said["streamed"]),
            (&json!("well"), &json!(streamed)),
            "{agent}: {said}"
        );
        let id = session.rsplit('/').next().unwrap();
        let path = session.replace(&format!("/sessions/{id}"), "/stream");
        let from = format!("{path}?session={id}&from=thread");
        let mut frames = host.follow(&from, None).await;
        host.turn(&session, "hello again").gives(200).await;
        let reported = frames.until("stream_complete").await;
        let chunks = reported.iter().any(|frame| frame.event == "content_chunk");
        assert_eq!(chunks, streamed, "{agent}: {reported:?}");
    }
    let bodies = peer.bodies();
    let asked: Vec<&Value> = bodies.iter().map(|body| &body["stream"]).collect();
    let yes = json!(true);
    assert_eq!(asked, [&yes, &yes, &Value::Null, &Value::Null]);
}
