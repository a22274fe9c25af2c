//! Labels that clients put on messages.

use super::{Peer, folder};
use agent_host_tests::patience::until;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_kept_and_shown_with_a_message_and_no_model_is_told_of_them() {
    let peer = Peer::start();
    let more = json!({ "agents": [{
        "agentId": "single", "displayName": "Single", "toolAllowlist": [],
        "maxConcurrentMessages": 1,
    }] });
    let folder = folder(&peer, more).await;
    let host = folder.serve().await;
    let session = host.open("single").await;
    let path = format!("{session}/messages?wait_s=30");
    let labels = json!({ "ticket": "T-4711", "team/topic": "über" });
    let said = host.post(&path, &json!({ "content": "hello", "labels": labels }));
    let said = said.await.body;
    assert_eq!(said["outcome"], "replied", "{said}");
    assert_eq!(said["labels"], labels, "{said}");
    let input = said["input_id"].as_str().unwrap();
    let shown = host.get(&format!("{session}/inputs/{input}")).await;
    assert_eq!(shown.body["labels"], labels, "{shown:?}");
    let id = session.rsplit('/').next().unwrap();
    let events = host.get(&format!("/api/events?limit=1000&session={id}"));
    let events = events.await.body.to_string();
    assert!(events.contains("T-4711"), "{events}");
    let asked = peer.bodies();
    assert!(
        asked.len() == 1 && !asked[0].to_string().contains("T-4711"),
        "{asked:?}"
    );

    // What waits can be found by its labels.
    peer.slow_ms(5_000);
    let content = json!({ "content": "busy" });
    host.post(&format!("{session}/messages"), &content).await;
    let other = host.open("single").await;
    until(async || peer.bodies().len() >= 2).await;
    for topic in ["a", "b"] {
        let labelled = json!({ "content": topic, "labels": { "topic": topic } });
        host.post(&format!("{other}/messages"), &labelled).await;
    }
    for (filter, count) in [
        ("", 2),
        ("?label=topic", 2),
        ("?label=topic=a", 1),
        ("?label=no", 0),
    ] {
        let waiting = host.get(&format!("{other}/inputs{filter}")).await;
        let inputs = waiting.body["inputs"].as_array().cloned();
        assert_eq!(
            inputs.map(|inputs| inputs.len()),
            Some(count),
            "{filter}: {waiting:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_that_are_too_many_or_too_long_are_refused_with_their_field() {
    let peer = Peer::start();
    let folder = folder(&peer, json!({})).await;
    let host = folder.serve().await;
    let session = host.open("plain").await;
    let many: serde_json::Map<String, Value> =
        (0..17).map(|n| (format!("l{n}"), json!("x"))).collect();
    for labels in [
        Value::Object(many),
        json!({ "a b": "x" }),
        json!({ "a": "x".repeat(257) }),
    ] {
        let message = json!({ "content": "hello", "labels": labels });
        let refused = host
            .post(&format!("{session}/messages"), &message)
            .gives(422)
            .await;
        assert_eq!(refused.text("field"), "/labels", "{refused:?}");
    }
    let directive = json!({ "content": "/queue collect", "labels": { "a": "b" } });
    host.post(&format!("{session}/messages"), &directive)
        .gives(422)
        .await;
}
