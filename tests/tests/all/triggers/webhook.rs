//! Webhooks: who proves to know the secret is heard once for each of their calls, and nobody else
//! learns anything.

use super::scene::{SECRET, Scene, config, trigger, webhook, with};
use agent_host_tests::process::Reply;
use domain::digest::Digest;
use domain::time::Timestamp;
use futures::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;
/// The time after which a call that proves nothing is refused, whatever is wrong with it.
const REFUSED_AFTER: Duration = Duration::from_millis(25);
/// More than a webhook takes from anybody, in bytes.
const TOO_LARGE: usize = (1 << 20) + 1;

/// HMAC-SHA256 of a text under the secret, in hexadecimal digits.
fn hmac(text: &str) -> String {
    let mut key = [0_u8; BLOCK];
    key[..SECRET.len()].copy_from_slice(SECRET.as_bytes());
    let padded = |sign: u8| key.map(|byte| byte ^ sign).to_vec();
    let inner = Digest::of(&[padded(0x36), text.as_bytes().to_vec()].concat());
    Digest::of(&[padded(0x5c), inner.0.to_vec()].concat()).hex()
}

/// The header of a signature that Stripe makes at a time.
fn stripe(time: Timestamp, body: &str) -> String {
    let seconds = time.0 / 1_000;
    format!("t={seconds},v1={}", hmac(&format!("{seconds}.{body}")))
}

/// Three webhooks, each with another proof.
fn proved() -> Value {
    let hook = |scheme: &str| {
        let auth = json!({ "hmac": { "secret": "hook", "scheme": scheme } });
        trigger(&json!({ "webhook": { "auth": auth, "answer": "now" } }))
    };
    json!({ "token": webhook(&json!({})), "github": hook("github"), "stripe": hook("stripe") })
}

#[track_caller]
fn sent(scene: &Scene, request: RequestBuilder) -> Reply {
    scene.host.send(request)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_taken_by_its_token_or_by_the_signature_of_github_or_stripe() {
    let scene = Scene::new(&proved()).await;
    let body = r#"{"id":"evt_1","says":"hello"}"#;
    let now = scene.now().await;
    let token = scene.bare("token", body).bearer_auth(SECRET);
    let other = scene.bare("token", r#"{"id":"evt_2"}"#);
    let other = other.header("x-agenthost-token", SECRET);
    let signature = format!("sha256={}", hmac(body));
    let github = scene
        .bare("github/push", body)
        .header("x-hub-signature-256", signature);
    let signature = stripe(now, body);
    let stripe = scene
        .bare("stripe", body)
        .header("stripe-signature", signature);
    for (request, status) in [(token, 202), (other, 202), (github, 200), (stripe, 200)] {
        let answer = sent(&scene, request).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.body["replayed"], false, "{answer:?}");
    }
    for (name, count) in [("token", 2), ("github", 1), ("stripe", 1)] {
        scene.done(name, count).await;
        let reported = scene.reported(name).await;
        assert_eq!(reported.len(), count, "{name}: {reported:?}");
        let text = reported[0]["text"].to_string();
        assert!(text.contains("evt_1"), "{name}: {text}");
    }
    let runs = scene.runs("stripe").await;
    assert_eq!(runs[0]["trigger_event"]["call_id"], "evt_1");
    assert!(!scene.folder.log().contains(SECRET));
}

/// Calls that prove nothing, each under what is wrong with it.
async fn unproved(scene: &Scene) -> Vec<(&'static str, RequestBuilder)> {
    let body = r#"{"id":"evt_1"}"#;
    let bare = |path: &str| scene.bare(path, body);
    let github = |signature: String| bare("github").header("x-hub-signature-256", signature);
    let stale = Timestamp(scene.now().await.0 - 301_000);
    vec![
        ("no proof", bare("token")),
        (
            "wrong token",
            bare("token").bearer_auth("a-secret-of-others"),
        ),
        (
            "host's own token",
            bare("token").bearer_auth(&scene.host.token),
        ),
        ("query", bare(&format!("token?token={SECRET}"))),
        ("basic", bare("token").basic_auth("hook", Some(SECRET))),
        (
            "two tokens",
            bare("token")
                .bearer_auth(SECRET)
                .header("x-agenthost-token", "other"),
        ),
        ("other body", github(format!("sha256={}", hmac("{}")))),
        ("no scheme", github(hmac(body))),
        ("token for a signature", bare("github").bearer_auth(SECRET)),
        (
            "stale",
            bare("stripe").header("stripe-signature", stripe(stale, body)),
        ),
        ("no such name", bare("none").bearer_auth(SECRET)),
        ("no name at all", bare("NO%20NAME").bearer_auth(SECRET)),
        ("no webhook", bare("tick").bearer_auth(SECRET)),
        ("disabled", bare("off").bearer_auth(SECRET)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_or_stale_call_is_answered_like_one_of_a_name_that_is_not_there() {
    let every = json!({ "schedule": { "every": "1d" }, "message": "Hello." });
    let more = json!({
        "tick": trigger(&every), "off": webhook(&json!({ "enabled": false })),
    });
    let scene = Scene::new(&with(proved(), &more)).await;
    let mut shapes = BTreeSet::new();
    for (wrong, request) in unproved(&scene).await {
        let began = Instant::now();
        let answer = sent(&scene, request).await;
        assert!(began.elapsed() >= REFUSED_AFTER, "the time tells: {wrong}");
        assert_eq!(answer.status, 401, "{wrong}: {answer:?}");
        let fields = ["code", "title", "detail", "type"].map(|field| answer.text(field));
        assert_eq!(fields[0], "CALL_UNVERIFIED", "{wrong}");
        let keys: Vec<String> = answer.body.as_object().unwrap().keys().cloned().collect();
        shapes.insert((answer.content_type, fields, keys));
    }
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    for name in ["token", "github", "stripe", "tick", "off"] {
        assert_eq!(scene.runs(name).await, [] as [Value; 0], "{name}");
    }
    assert!(!scene.folder.log().contains(SECRET));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_signature_is_taken_once_however_often_and_when_it_comes() {
    let scene = Scene::new(&proved()).await;
    let body = r#"{"id":"evt_1"}"#;
    let signature = stripe(scene.now().await, body);
    let call = |scene: &Scene| {
        let request = scene.bare("stripe", body);
        scene
            .host
            .send(request.header("stripe-signature", signature.clone()))
    };
    let first = call(&scene).await;
    assert_eq!(first.body["replayed"], false, "{first:?}");
    let again = call(&scene).await;
    assert_eq!(again.body["replayed"], true, "{again:?}");
    let mut scene = scene.restarted_after(0).await;
    assert_eq!(call(&scene).await.body, again.body);
    scene.pass(301_000).await;
    assert_eq!(call(&scene).await.status, 401, "its time is over");
    assert_eq!(scene.done("stripe", 1).await.len(), 1);
}

/// GitHub and Stripe sign the body. Whoever holds a call cannot make it once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_body_is_taken_once_under_whatever_id_path_and_query_it_comes() {
    let scene = Scene::new(&proved()).await;
    let body = r#"{"id":"evt_1"}"#;
    let github = format!("sha256={}", hmac(body));
    let stripe = stripe(scene.now().await, body);
    for (name, header, proof) in [
        ("github", "x-hub-signature-256", github),
        ("stripe", "stripe-signature", stripe),
    ] {
        let call = |path: &str, id: &str| {
            let request = scene.bare(path, body).header(header, &proof);
            let ids = ["x-github-delivery", "webhook-id", "idempotency-key"];
            let request = ids
                .iter()
                .fold(request, |it, header| it.header(*header, id));
            sent(&scene, request)
        };
        let first = call(name, "1").await;
        assert_eq!(first.body["replayed"], false, "{first:?}");
        for path in ["", "/other", "?again=1"] {
            let again = call(&format!("{name}{path}"), "2").await;
            assert_eq!(again.body["replayed"], true, "{name}{path}: {again:?}");
        }
        assert_eq!(scene.done(name, 1).await.len(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_id_is_taken_once_from_twenty_at_a_time_and_after_a_restart() {
    let scene = Scene::new(&json!({ "calls": webhook(&json!({})) })).await;
    let payload = json!({ "n": 1 });
    let calls = (0..20).map(|_| scene.call("calls", "same", &payload));
    let answers = join_all(calls).await;
    let statuses = |wanted: u16| answers.iter().filter(|it| it.status == wanted).count();
    assert_eq!((statuses(202), statuses(200)), (1, 19), "{answers:?}");
    let trigger_event = &answers[0].body["trigger_event_id"];
    assert!(
        answers
            .iter()
            .all(|it| it.body["trigger_event_id"] == *trigger_event)
    );
    let scene = scene.restarted_after(0).await;
    let again = scene.call("calls", "same", &json!({ "n": 2 })).await;
    let expected = json!({ "trigger_event_id": trigger_event, "replayed": true });
    assert_eq!((again.status, &again.body), (200, &expected));
    scene.call("calls", "other", &payload).gives(202).await;
    assert_eq!(scene.done("calls", 2).await.len(), 2);
    assert_eq!(scene.reported("calls").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_or_cannot_be_read_is_told_to_who_proved_the_call() {
    let hook = json!({ "auth": { "token": { "secret": "hook" } }, "bytesMax": 100 });
    let scene = Scene::new(&json!({ "small": trigger(&json!({ "webhook": hook })) })).await;
    let event = "application/cloudevents+json";
    let post = |content: &str, body: Vec<u8>| {
        let request = scene.host.bare(Method::POST, "/hooks/small");
        request.header("content-type", content).body(body)
    };
    let json = "application/json";
    for (content, body, status, code) in [
        (json, vec![b' '; 101], 413, "BODY_TOO_LARGE"),
        (json, b"{\"a\":".to_vec(), 400, "CALL_MALFORMED"),
        ("text/plain", vec![0xff, 0xfe], 400, "CALL_MALFORMED"),
        (
            "multipart/form-data; boundary=x",
            b"--x--".to_vec(),
            400,
            "CALL_MALFORMED",
        ),
        (
            event,
            b"{\"specversion\":\"1.0\"}".to_vec(),
            400,
            "CALL_MALFORMED",
        ),
        (event, b"[]".to_vec(), 400, "CALL_MALFORMED"),
    ] {
        let proved = post(content, body.clone()).bearer_auth(SECRET);
        let answer = sent(&scene, proved).await;
        assert_eq!(
            (answer.status, answer.text("code").as_str()),
            (status, code),
            "{body:?}: {answer:?}"
        );
        let answer = sent(&scene, post(content, body)).await;
        assert_eq!(answer.status, 401, "nobody else is told: {answer:?}");
    }
    for name in ["small", "none"] {
        let request = scene.bare(name, "x".repeat(TOO_LARGE));
        assert_eq!(sent(&scene, request).await.status, 413, "{name}");
    }
    assert_eq!(scene.runs("small").await, [] as [Value; 0]);
}

/// The configuration with the two webhooks for words of programs.
fn hooked() -> Value {
    let hooks = json!({
        "token": "hook", "user": "local", "agent": "puppet", "agents": ["other"],
    });
    with(config(&json!({})), &json!({ "hooks": hooks }))
}

#[tokio::test(flavor = "multi_thread")]
async fn wake_speaks_to_the_latest_chat_and_agent_begins_one_with_whom_it_names() {
    let scene = Scene::of(hooked()).await;
    let chat = scene.say(&json!({ "agent": "puppet" }), "hello").await;
    let call =
        async |path: &str, id: &str, payload: Value| scene.call(path, id, &payload).await.status;
    assert_eq!(call("wake", "1", json!({ "text": "Wake up." })).await, 200);
    assert_eq!(scene.reported_once("wake").await, "Wake up.");
    assert_eq!(scene.sessions("wake").await, std::slice::from_ref(&chat));
    let message = |agent: &str| json!({ "message": "Inspection.", "agentId": agent });
    assert_eq!(
        call("agent", "1", json!({ "message": "Inspection." })).await,
        202
    );
    assert_eq!(call("agent", "2", message("other")).await, 202);
    assert_eq!(call("agent", "3", message("nobody")).await, 202);
    let runs = scene.done("agent", 3).await;
    let outcomes: Vec<&Value> = runs
        .iter()
        .map(|run| &run["messages"][0]["outcome"])
        .collect();
    assert_eq!(outcomes, ["refused", "accepted", "accepted"], "{runs:?}");
    let sessions = scene.sessions("agent").await;
    assert_eq!(sessions.len(), 2);
    assert!(!sessions.contains(&chat), "each begins a session");
    let agents: BTreeSet<&str> = sessions
        .iter()
        .filter_map(|path| path.split('/').nth(3))
        .collect();
    assert_eq!(agents.len(), 2, "{agents:?}");
    for (path, payload) in [
        ("wake", json!({ "message": "Inspection." })),
        ("wake", json!({ "text": " " })),
        ("agent", json!("Inspection.")),
        ("agent", json!({ "message": 1 })),
    ] {
        assert_eq!(call(path, "wrong", payload).await, 400, "{path}");
    }
    let again = scene.say(&json!({ "agent": "puppet" }), "hello").await;
    assert_eq!(
        again, chat,
        "sessions of trigger runs are nobody's latest chat"
    );
}
