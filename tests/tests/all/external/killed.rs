//! External agents through the program itself: over HTTP, and with the process killed at the worst
//! moments.

use super::{WEATHER, message_of, now_s, signed_at};
use agent_host_tests::patience::until;
use agent_host_tests::peer::{Peer, ReceivedRequest, Says};
use agent_host_tests::process::{Folder, Host};
use domain::id::OperationId;
use reqwest::Method;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Time limit of anything in here.
const PATIENCE: Duration = Duration::from_secs(30);

/// A configuration of two external agents, which are called back at this URL, or at the address of
/// the host.
async fn folder(peer: &Peer, callback_base: Option<&str>) -> Folder {
    let agent = |id: &str, secret: &str| {
        json!({
            "agentId": id, "displayName": id, "type": "external",
            "external": {
                "inputUrl": peer.url("/in"), "secret": secret, "privateAddresses": ["127.0.0.1"],
                "callbackBase": callback_base,
            },
        })
    };
    let folder = Folder::new(json!({
        "agents": [agent("weather", "weather"), agent("traffic", "traffic")],
        "secrets": { "weather": { "file": "weather.key" }, "traffic": { "file": "traffic.key" } },
    }));
    for (name, secret) in [("weather.key", WEATHER), ("traffic.key", super::TRAFFIC)] {
        let file = folder.path().join(name);
        std::fs::write(&file, secret).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    folder.warm(&["external"]).await;
    folder
}

/// Attaches to the session `w-1`, and returns its path.
async fn attach(host: &Host) -> String {
    let wanted = json!({ "agent": "weather", "session": "w-1" });
    let attached = host.post("/external/sessions", &wanted).await;
    assert!([200, 201].contains(&attached.status), "{attached:?}");
    let agent = attached.text("agent_id");
    let session = attached.text("session_id");
    format!("/api/agents/{agent}/sessions/{session}")
}

/// Answers the message that waits longest in `w-1`, or one that is named.
fn answer(host: &Host, message: Option<OperationId>, text: &str) -> reqwest::RequestBuilder {
    let post = signed_at(now_s(), WEATHER, "w-1", message, text);
    let query = message.map(|message| format!("?message={message}"));
    let query = query.unwrap_or_default();
    host.bare(
        Method::POST,
        &format!("/external/sessions/w-1/messages{query}"),
    )
    .header("x-agent-host-time", post.time_s.to_string())
    .header("x-agent-host-signature", post.signature)
    .header("content-type", "application/octet-stream")
    .body(text.to_owned())
}

/// The texts of a session's messages.
fn texts(session: &Value) -> Vec<String> {
    let messages = session["messages"].as_array().unwrap();
    let text = |message: &Value| message["text"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_attaches_hears_and_answers_over_http() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let folder = folder(&peer, None).await;
    let host = folder.serve().await;
    let session = attach(&host).await;
    assert_eq!(attach(&host).await, session);
    let other = json!({ "agent": "traffic", "session": "w-1" });
    host.post("/external/sessions", &other)
        .refused(409, "SESSION_TAKEN")
        .await;
    for wrong in ["", "a b", "a/b", "x".repeat(129).as_str()] {
        let wanted = json!({ "agent": "weather", "session": wrong });
        let refused = host.post("/external/sessions", &wanted).await;
        refused.has(422, &json!({ "field": "/session" }));
    }
    host.say(&session, "Sun?").await;
    let heard = peer.heard(1).await.remove(0);
    let url = heard.body["callbackUrl"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&host.base), "{url}");
    let message = message_of(&heard);
    let unsigned = host
        .bare(Method::POST, "/external/sessions/w-1/messages")
        .body("Rain.");
    host.send(unsigned).refused(403, "SIGNATURE_INVALID").await;
    let large = "x".repeat(10 << 20);
    let large = host.send(answer(&host, message, &large)).attempt().await;
    // The host hangs up on whoever goes on sending.
    if let Ok(large) = large {
        large.is_refusal(413, "ANSWER_TOO_LARGE");
    }
    let taken = host.send(answer(&host, message, "Sun.")).await;
    taken.has(200, &json!({ "replayed": false }));
    let seen = host.rest(&session).await;
    assert_eq!(texts(&seen).last().unwrap(), "Sun.");
    let path = "/api/audit?capability=external.answer";
    let audit = host.get(path).await.body;
    let verdicts: Vec<&str> = audit["lines"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| line["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["limited", "granted"], "{audit}");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_of_an_outbound_message_repeats_it_only_under_the_same_key() {
    for (point, outbound_messages) in [
        ("broker.commit.after", 1),
        ("broker.perform.before", 1),
        ("broker.perform.after", 2),
        ("broker.settle.before", 2),
        ("broker.settle.after", 1),
    ] {
        let peer = Peer::new(|_, _| Says::Status(200));
        // The host has another port after its restart.
        let folder = folder(&peer, Some("https://host.example")).await;
        let host = folder.serve().await;
        let session = attach(&host).await;
        host.stop().await;
        let mut host = folder.start(Some(point)).await.unwrap();
        // It is stored before the process dies, and perhaps not acknowledged.
        let said = json!({ "content": "Again?" });
        drop(
            host.post(&format!("{session}/messages"), &said)
                .attempt()
                .await,
        );
        assert!(host.died(PATIENCE).await.is_some(), "{point}");
        let host = folder.serve().await;
        peer.heard(outbound_messages).await;
        let taken = host.send(answer(&host, None, "Once.")).await;
        assert_eq!(taken.status, 200, "{point}: {taken:?}");
        let seen = host.rest(&session).await;
        assert_eq!(texts(&seen), ["Again?", "Once."], "{point}");
        let heard = peer.heard(outbound_messages).await;
        assert_eq!(heard.len(), outbound_messages, "{point}");
        for other in &heard {
            let key = |outbound_message: &ReceivedRequest| {
                outbound_message.header("idempotency-key").to_owned()
            };
            assert_eq!(key(other), key(&heard[0]), "{point}");
            assert_eq!(other.text, heard[0].text, "{point}");
        }
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_after_an_answer_was_stored_does_not_take_it_twice() {
    let peer = Peer::new(|_, _| Says::Status(200));
    let folder = folder(&peer, None).await;
    let host = folder.serve().await;
    let session = attach(&host).await;
    host.say(&session, "Well?").await;
    let heard = peer.heard(1).await.remove(0);
    let message = message_of(&heard);
    let audit = "/api/audit?capability=net.http";
    until(async || host.get(audit).await.body["lines"] != json!([])).await;
    host.stop().await;
    let mut host = folder.start(Some("broker.settle.after")).await.unwrap();
    let died = host.send(answer(&host, message, "Well.")).attempt().await;
    assert!(died.is_err(), "it died before it could say so");
    host.died(PATIENCE).await;
    let host = folder.serve().await;
    let again = host.send(answer(&host, message, "Well.")).await;
    again.has(200, &json!({ "replayed": true }));
    let seen = host.rest(&session).await;
    assert_eq!(texts(&seen), ["Well?", "Well."]);
    assert_eq!(peer.count(), 1);
    host.stop().await;
}
