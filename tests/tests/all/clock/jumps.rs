//! The real program while its wall clock jumps, and while its process is stopped.

use super::{HOUR_MS, SLOW, is_under_way, play, said, started};
use agent_host_tests::peer::{Peer, Says};
use agent_host_tests::process::{
    Answer, Folder, Host, PATIENCE, Session, is_asking, puppet, puppets,
};
use agent_host_tests::prompt::{completion, saying};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::sleep;

/// More than idempotency keys are remembered.
const EIGHT_DAYS_MS: i64 = 8 * 24 * HOUR_MS;

fn timer(ms: u64) -> Value {
    json!([{ "start": [{ "key": "t", "timer": ms }] }])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_of_seconds_takes_seconds_after_jumps_back_and_a_restart() {
    let (folder, host) = started().await;
    let session = play(&host, &timer(2_000)).await;
    is_under_way(&host, &session).await;
    folder.clock().shift(-HOUR_MS);
    assert!(said(&host, &session).await.contains("t elapsed"));
    let session = play(&host, &timer(2_000)).await;
    is_under_way(&host, &session).await;
    folder.clock().shift(-24 * HOUR_MS);
    host.kill().await;
    let host = folder.serve().await;
    assert!(said(&host, &session).await.contains("t elapsed"));
    host.play(&session, &json!([{ "reply": "it takes words" }]))
        .await;
    assert!(said(&host, &session).await.contains("it takes words"));
}

/// A host with a clock of its own, and one agent more, which leads lessons of an hour.
async fn leading() -> (Folder, Host) {
    let asks = json!([{ "start": [{ "key": "q", "client": "confirmation" }] }, { "complete": {} }]);
    let folder = Folder::with_clock(puppets(&json!([
        puppet(),
        { "agentId": "other", "displayName": "Other", "component": "puppet" },
        {
            "agentId": "leads", "displayName": "Leads", "component": "puppet",
            "settings": { "script": { "steps": asks } },
            "sessions": { "lesson": { "timeLimitS": 3600 } },
        },
    ])));
    std::fs::write(folder.path().join("script.toml"), SLOW).unwrap();
    folder.warm(&["puppet"]).await;
    let host = folder.serve().await;
    (folder, host)
}

/// Begins a lesson, and waits until it asks something.
async fn lesson(host: &Host) -> Session {
    let lesson = host.open_as("leads", "lesson").await;
    host.until(&lesson, is_asking).await;
    lesson
}

/// Says something under the same key each time; the id of the input that it became.
async fn say_once(host: &Host, session: &str) -> String {
    let words = json!({ "content": json!({ "steps": [{ "reply": "once" }] }).to_string() });
    let answer = host
        .line()
        .ask_under(
            "the key",
            Method::POST,
            &format!("{session}/messages"),
            Some(&words),
        )
        .gives(202)
        .await;
    answer.text("input_id")
}

/// A jump ahead of eight days ends and forgets nothing until an operator confirms it.
#[tokio::test(flavor = "multi_thread")]
async fn a_jump_of_eight_days_ends_and_forgets_nothing_until_an_operator_confirms_it() {
    let (folder, host) = leading().await;
    let lesson = lesson(&host).await;
    let work = json!({ "steps": [
        { "start": [{ "key": "t", "timer": 1_500 }] },
        { "reply": "handed back" },
    ] })
    .to_string();
    let caller = play(
        &host,
        &json!([{ "start": [{ "key": "d", "agent": "other", "text": work, "timeout": 60_000 }] }]),
    )
    .await;
    let asking = play(
        &host,
        &json!([{ "start": [{ "key": "slow", "model": "x" }] }]),
    )
    .await;
    let chat = play(&host, &json!([{ "reply": "hello" }])).await;
    let first = say_once(&host, &chat).await;

    folder.clock().shift(EIGHT_DAYS_MS);
    assert_eq!(say_once(&host, &chat).await, first);
    assert!(said(&host, &caller).await.contains("handed back"));
    assert!(said(&host, &asking).await.contains("at last"));
    let users = said(&host, &chat).await.matches(r#""role":"user""#).count();
    assert_eq!(users, 2, "what began it, and what was said once");
    assert_eq!(
        host.get(&lesson).await.body["status"],
        "awaiting_client_action"
    );
    let clock = host.get("/api/clock").await.body;
    let ahead_ms = clock["jump"]["ms"].as_i64().unwrap();
    assert!(
        (EIGHT_DAYS_MS - 5_000..=EIGHT_DAYS_MS).contains(&ahead_ms)
            && clock["jump"]["left_ms"].is_u64(),
        "{clock}"
    );

    folder.succeeds(&["clock", "confirm"]).await;
    host.until(&lesson, |seen| seen["terminated_reason"] == "expired")
        .await;
    assert_ne!(
        say_once(&host, &chat).await,
        first,
        "its seven days are over"
    );
    let shown = folder.run(&["clock", "show", "--json"]).await;
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert!(
        shown.get("jump").is_none()
            && shown["wall_ahead_ms"]
                .as_i64()
                .is_some_and(|ms| ms.abs() < 1_000),
        "{shown}"
    );
}

/// A start after a jump of eight days ends nothing on the same boot and forgets no key on another.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_after_a_jump_ends_nothing_on_the_same_boot_and_keeps_keys_on_another() {
    let (folder, host) = leading().await;
    let lesson = lesson(&host).await;
    let chat = play(&host, &json!([{ "reply": "hello" }])).await;
    let first = say_once(&host, &chat).await;
    said(&host, &chat).await;
    host.kill().await;
    folder.clock().shift(EIGHT_DAYS_MS);
    let host = folder.serve().await;
    assert_eq!(say_once(&host, &chat).await, first);
    let clock = host.get("/api/clock").await.body;
    assert!(
        clock["jump"]["ms"]
            .as_i64()
            .is_some_and(|ms| ms >= EIGHT_DAYS_MS - 5_000)
            && clock.get("gap").is_none(),
        "{clock}"
    );
    assert_eq!(
        host.get(&lesson).await.body["status"],
        "awaiting_client_action"
    );
    host.kill().await;
    // As if the machine had been booted: nothing tells the jump from downtime.
    std::fs::remove_file(folder.data().join("clock")).unwrap();
    let host = folder.serve().await;
    host.until(&lesson, |seen| seen["terminated_reason"] == "expired")
        .await;
    assert_eq!(say_once(&host, &chat).await, first);
    let clock = host.get("/api/clock").await.body;
    assert!(
        clock["gap"]["ms"]
            .as_i64()
            .is_some_and(|ms| ms >= EIGHT_DAYS_MS - 30_000)
            && clock.get("jump").is_none(),
        "{clock}"
    );
    // As little is it forgotten when other keys come.
    host.line()
        .ask_under(
            "another",
            Method::POST,
            "/api/agents/puppet/sessions",
            Some(&json!({})),
        )
        .gives(201)
        .await;
    assert_eq!(say_once(&host, &chat).await, first);
    host.post("/api/clock/confirm", &json!({})).await;
    assert_ne!(say_once(&host, &chat).await, first);
}

/// Has the next host find that the machine was booted.
fn boot(folder: &Folder) {
    let file = folder.data().join("clock");
    let text = std::fs::read_to_string(&file).unwrap();
    let (_, times) = text.split_once(' ').unwrap();
    std::fs::write(&file, format!("another-boot {times}")).unwrap();
}

/// A key that is good for an hour.
async fn key_for_an_hour(host: &Host) -> Answer {
    host.post(
        "/api/keys",
        &json!({ "user": "alice", "scopes": ["read"], "expires_in_s": 3_600 }),
    )
    .gives(201)
    .await
}

async fn is_let_in(host: &Host, key: &str) -> bool {
    host.send(host.bare(Method::GET, "/api/me").bearer_auth(key))
        .await
        .status
        == 200
}

/// The clock of a machine may be hours ahead after a boot, until NTP puts it right.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_end_by_a_clock_that_was_put_right_once_an_operator_has_confirmed_it() {
    let (folder, host) = started().await;
    let key = key_for_an_hour(&host).await.text("key");
    assert!(is_let_in(&host, &key).await);
    host.kill().await;
    boot(&folder);
    folder.clock().shift(8 * HOUR_MS);
    let host = folder.serve().await;
    assert!(!is_let_in(&host, &key).await);
    // So that what is stored is as far ahead.
    key_for_an_hour(&host).await;
    folder.clock().shift(0);
    assert!(
        !is_let_in(&host, &key).await,
        "nobody has said which is right"
    );
    let before = host.get("/api/clock").await;

    folder.succeeds(&["clock", "confirm"]).await;
    assert!(is_let_in(&host, &key).await);
    let after = host.get("/api/clock").await;
    assert!(
        after.text("now") >= before.text("now"),
        "the host's time goes on: {after:?}"
    );
    let behind_ms = -after.body["wall_ahead_ms"].as_i64().unwrap();
    assert!((8 * HOUR_MS - behind_ms).abs() < 60_000, "{after:?}");
    assert!(
        key_for_an_hour(&host).await.text("expires_at") < before.text("now"),
        "an hour is an hour"
    );

    // Over a restart and two boots, the second with a clock that is ahead again.
    host.kill().await;
    let host = folder.serve().await;
    assert!(is_let_in(&host, &key).await);
    host.kill().await;
    boot(&folder);
    let host = folder.serve().await;
    assert!(is_let_in(&host, &key).await);
    host.kill().await;
    boot(&folder);
    folder.clock().shift(8 * HOUR_MS);
    let host = folder.serve().await;
    assert!(!is_let_in(&host, &key).await);
    folder.clock().shift(0);
    assert!(is_let_in(&host, &key).await);
}

/// A host whose model answers when a test says so, within limits of some seconds.
async fn asking_a_peer(asked: Arc<Semaphore>, answers: Arc<Semaphore>) -> (Folder, Host) {
    // One at a time.
    let turn = Mutex::new(());
    let peer = Peer::new(move |_, _| {
        let _turn = turn.lock().unwrap();
        asked.add_permits(1);
        while answers.try_acquire().map(SemaphorePermit::forget).is_err() {
            std::thread::sleep(Duration::from_millis(2));
        }
        Says::Json(200, completion(&saying("patience")))
    });
    let agent = json!({
        "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
        "limits": { "activeMsMax": 5_000 },
    });
    let mut config = puppets(&json!([agent]));
    config["providers"] = json!({
        "peer": { "kind": "openai-compatible", "baseUrl": peer.url("/v1") },
    });
    config["models"] = json!({ "m": { "provider": "peer", "model": "m" } });
    config["timeouts"] =
        json!({ "firstTokenMs": 4_000, "idleMs": 4_000, "wholeMs": 4_000, "totalMs": 5_000 });
    config["retry"] = json!({ "attemptsMax": 1 });
    Folder::serving(config, &["puppet"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_stopped_for_longer_than_a_model_may_take_still_hears_its_reply() {
    let asked = Arc::new(Semaphore::new(0));
    let answers = Arc::new(Semaphore::new(0));
    let (_folder, host) = asking_a_peer(asked.clone(), answers.clone()).await;
    let session = play(&host, &json!([{ "start": [{ "key": "m", "model": "x" }] }])).await;
    tokio::time::timeout(PATIENCE, asked.acquire())
        .await
        .expect("a prompt in time")
        .unwrap()
        .forget();
    host.signal(Signal::STOP);
    sleep(Duration::from_secs(8)).await;
    host.signal(Signal::CONT);
    // It had its chance to give the model up.
    sleep(Duration::from_millis(500)).await;
    answers.add_permits(1);
    let said = said(&host, &session).await;
    assert!(
        said.contains("patience") && !said.contains("which is its limit"),
        "{said}"
    );
    assert_eq!(asked.available_permits(), 0, "it was asked once");
}
