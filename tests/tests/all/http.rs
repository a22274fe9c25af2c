//! The program as a process: signals, kills, and a second start.

use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, effects, puppet, scripted};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

fn config() -> Value {
    let tutor = json!({
        "agentId": "tutor", "displayName": "Tutor", "component": "tutor", "toolAllowlist": [],
    });
    scripted(&json!([puppet(), tutor]), &[("effects", effects())])
}

async fn started() -> (Folder, Host) {
    Folder::serving(config(), &["puppet", "effects", "tutor"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_told_to_stop_finishes_its_calls_and_ends_with_success() {
    let (folder, host) = started().await;
    let session = host.open("puppet").await;
    let agent = session.agent();
    let mut frames = host.follow(&format!("{agent}/stream?view=log"), None).await;
    host.play(
        &session,
        &json!([{ "start": [{ "key": "t", "tool": "send", "args": { "sleep": 400 } }] }]),
    )
    .await;
    until(async || !folder.effects().is_empty()).await;
    let status = host.stop().await;
    assert!(status.success(), "{status}: {}", folder.log());
    assert_eq!(
        folder.effects().len(),
        2,
        "the call came to its end: {:?}",
        folder.effects()
    );
    while frames.receive().await.is_some() {}
    assert!(
        !folder.data().join("address").exists(),
        "nobody listens there any more"
    );
    let host = folder.serve().await;
    host.heard(&session, "t parts send done").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_hung_up_on_serves_on_and_logs_that() {
    let (folder, host) = started().await;
    for _ in 0..2 {
        host.signal(rustix::process::Signal::HUP);
    }
    until(async || {
        folder
            .log()
            .contains("SIGHUP: the configuration is read again")
    })
    .await;
    let session = host.open("puppet").await;
    host.play(&session, &json!([{ "reply": "still here" }]))
        .await;
    host.heard(&session, "still here").await;
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_host_without_waiting_for_a_call() {
    let (folder, host) = started().await;
    let session = host.open("puppet").await;
    host.play(
        &session,
        &json!([{ "start": [{ "key": "t", "tool": "send", "args": { "sleep": 8_000 } }] }]),
    )
    .await;
    until(async || !folder.effects().is_empty()).await;
    host.tell_to_stop();
    until(async || folder.log().contains("stopping")).await;
    let status = tokio::time::timeout(Duration::from_secs(4), host.stop())
        .await
        .expect("it does not wait for the call");
    assert!(status.success(), "{status}: {}", folder.log());
    assert_eq!(
        folder.effects().len(),
        1,
        "the call did not come to its end: {:?}",
        folder.effects()
    );
    let host = folder.serve().await;
    host.heard(&session, "t unknown").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tutors_question_waits_through_kill_nine_and_takes_its_answer() {
    let (folder, host) = started().await;
    let session = host.open_as("tutor", "learning").await;
    let agent = session.agent();
    let asks = |seen: &Value| seen["pending_action"].is_object();
    let asked = host.question(&session).await;
    host.kill().await;
    let host = folder.serve().await;
    let again = host.question(&session).await;
    assert_eq!(again, asked, "the same question under the same id");
    let wrong = json!({ "tool_call_id": "ab".repeat(32), "response": {} });
    let wrong = host.post(&format!("{agent}/respond"), &wrong);
    wrong.refused(409, "INVALID_TOOL_CALL_ID").await;
    let answer =
        |call: &Value| json!({ "tool_call_id": call["tool_call_id"], "response": { "index": 0 } });
    host.post(&format!("{agent}/respond"), &answer(&asked))
        .gives(202)
        .await;
    let next = |seen: &Value| {
        asks(seen) && seen["pending_action"]["tool_call_id"] != asked["tool_call_id"]
    };
    host.until(&session, |seen| next(seen) || seen["status"] == "completed")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_compiles_nothing() {
    let (folder, host) = started().await;
    assert!(host.stop().await.success());
    let cache = || -> Vec<(PathBuf, SystemTime)> {
        let entries = std::fs::read_dir(folder.data().join("component-cache"))
            .unwrap()
            .flatten();
        let mut files: Vec<_> = entries
            .map(|entry| (entry.path(), entry.metadata().unwrap().modified().unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = cache();
    assert!(before.len() >= 4, "three components and a key: {before:?}");
    let host = folder.serve().await;
    assert!(host.stop().await.success());
    assert_eq!(cache(), before, "what is compiled is written");
}
