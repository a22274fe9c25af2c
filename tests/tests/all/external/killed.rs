//! External agents through the program itself: over HTTP, and with the process killed at the worst
//! moments.

use super::peer::{Peer, Says};
use super::{WEATHER, message_of, now_s, signed_at};
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
                "inputUrl": peer.url(), "secret": secret, "privateAddresses": ["127.0.0.1"],
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
    let attached = host.post("/external/sessions", &wanted).await.unwrap();
    assert!([200, 201].contains(&attached.status), "{attached:?}");
    let agent = attached.text("agent_id");
    let session = attached.text("session_id");
    format!("/api/agents/{agent}/sessions/{session}")
}

async fn say(host: &Host, session: &str, text: &str) {
    let said = host.post(&format!("{session}/messages"), &json!({ "content": text }));
    assert_eq!(said.await.unwrap().status, 202);
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

/// Waits until a session has nothing to do, and returns it.
async fn idle(host: &Host, session: &str) -> Value {
    let waiting = async {
        loop {
            let seen = host.get(session).await.unwrap().body;
            if seen["run_id"].is_null() && seen["waiting"] == 0 {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap()
}

/// The texts of a session's messages.
fn texts(session: &Value) -> Vec<String> {
    let messages = session["messages"].as_array().unwrap();
    let text = |message: &Value| message["text"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_attaches_hears_and_answers_over_http() {
    let peer = Peer::new(|_| Says::Status(200));
    let folder = folder(&peer, None).await;
    let host = folder.start(None).await.unwrap();
    let session = attach(&host).await;
    assert_eq!(attach(&host).await, session);
    let other = json!({ "agent": "traffic", "session": "w-1" });
    let taken = host.post("/external/sessions", &other).await.unwrap();
    assert_eq!(
        (taken.status, taken.text("code")),
        (409, "SESSION_TAKEN".to_owned())
    );
    for wrong in ["", "a b", "a/b", "x".repeat(129).as_str()] {
        let wanted = json!({ "agent": "weather", "session": wrong });
        let refused = host.post("/external/sessions", &wanted).await.unwrap();
        assert_eq!(
            (refused.status, refused.text("field")),
            (422, "/session".to_owned())
        );
    }
    say(&host, &session, "Sun?").await;
    let heard = peer.heard(1).await.remove(0);
    let url = heard.body["callbackUrl"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&host.base), "{url}");
    let message = message_of(&heard);
    let unsigned = host
        .bare(Method::POST, "/external/sessions/w-1/messages")
        .body("Rain.");
    let unsigned = host.send(unsigned).await.unwrap();
    assert_eq!(
        (unsigned.status, unsigned.text("code")),
        (403, "SIGNATURE_INVALID".to_owned())
    );
    let large = "x".repeat(10 << 20);
    let large = host.send(answer(&host, message, &large)).await;
    // The host hangs up on whoever goes on sending.
    if let Ok(large) = large {
        assert_eq!(
            (large.status, large.text("code")),
            (413, "ANSWER_TOO_LARGE".to_owned())
        );
    }
    let taken = host.send(answer(&host, message, "Sun.")).await.unwrap();
    assert_eq!(
        (taken.status, &taken.body["replayed"]),
        (200, &json!(false)),
        "{taken:?}"
    );
    let seen = idle(&host, &session).await;
    assert_eq!(texts(&seen).last().unwrap(), "Sun.");
    let path = "/api/audit?capability=external.answer";
    let audit = host.get(path).await.unwrap().body;
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
async fn a_kill_at_any_moment_of_a_delivery_repeats_it_only_under_the_same_key() {
    for (point, deliveries) in [
        ("broker.commit.after", 1),
        ("broker.perform.before", 1),
        ("broker.perform.after", 2),
        ("broker.settle.before", 2),
        ("broker.settle.after", 1),
    ] {
        let peer = Peer::new(|_| Says::Status(200));
        // The host has another port after its restart.
        let folder = folder(&peer, Some("https://host.example")).await;
        let host = folder.start(None).await.unwrap();
        let session = attach(&host).await;
        host.stop().await;
        let mut host = folder.start(Some(point)).await.unwrap();
        // It is stored before the process dies, and perhaps not acknowledged.
        let said = json!({ "content": "Again?" });
        drop(host.post(&format!("{session}/messages"), &said).await);
        assert!(host.died(PATIENCE).await.is_some(), "{point}");
        let host = folder.start(None).await.unwrap();
        peer.heard(deliveries).await;
        let taken = host.send(answer(&host, None, "Once.")).await.unwrap();
        assert_eq!(taken.status, 200, "{point}: {taken:?}");
        let seen = idle(&host, &session).await;
        assert_eq!(texts(&seen), ["Again?", "Once."], "{point}");
        let heard = peer.heard(deliveries).await;
        assert_eq!(heard.len(), deliveries, "{point}");
        for other in &heard {
            let key = |delivery: &super::Heard| delivery.header("idempotency-key");
            assert_eq!(key(other), key(&heard[0]), "{point}");
            assert_eq!(other.bytes, heard[0].bytes, "{point}");
        }
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_after_an_answer_was_stored_does_not_take_it_twice() {
    let peer = Peer::new(|_| Says::Status(200));
    let folder = folder(&peer, None).await;
    let host = folder.start(None).await.unwrap();
    let session = attach(&host).await;
    say(&host, &session, "Well?").await;
    let heard = peer.heard(1).await.remove(0);
    let message = message_of(&heard);
    let audit = "/api/audit?capability=net.http";
    while host.get(audit).await.unwrap().body["lines"] == json!([]) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    host.stop().await;
    let mut host = folder.start(Some("broker.settle.after")).await.unwrap();
    let died = host.send(answer(&host, message, "Well.")).await;
    assert!(died.is_err(), "it died before it could say so");
    host.died(PATIENCE).await;
    let host = folder.start(None).await.unwrap();
    let again = host.send(answer(&host, message, "Well.")).await.unwrap();
    assert_eq!(
        (again.status, &again.body["replayed"]),
        (200, &json!(true)),
        "{again:?}"
    );
    let seen = idle(&host, &session).await;
    assert_eq!(texts(&seen), ["Well?", "Well."]);
    assert_eq!(peer.count(), 1);
    host.stop().await;
}
