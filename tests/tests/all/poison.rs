//! Turns, sessions and events that end the process or cannot be gone on with: they do not take the
//! host down for good.

use super::exhaustion::say;
use agent_host_tests::patience;
use agent_host_tests::process::{
    CONTRADICTS_ON, CRASH_AT, Folder, Host, PANICS_ON, PATIENCE, READING_DIES_ON,
    READING_PANICS_ON, Session, puppet, scripted, shows, tells,
};
use domain::digest::Salt;
use futures::stream::{self, StreamExt};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// A model that never gets to its first word, and the one that replies at once.
const SCRIPT: &str = r#"
[[rule]]
when = { user = "slow" }
reply = { text = "at last", firstDelayMs = 120000 }

[[rule]]
reply = { text = "hello from the model" }
"#;

fn config() -> Value {
    let mut config = scripted(&json!([puppet()]), &[]);
    config["server"] =
        json!({ "listen": "127.0.0.1:0", "dataDir": "data", "limits": { "drainMs": 200 } });
    config
}

async fn folder() -> Folder {
    folder_of(config()).await
}

async fn folder_of(config: Value) -> Folder {
    let folder = Folder::new(config);
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    folder.warm(&["puppet"]).await;
    folder
}

/// A script that asks the model that takes two minutes.
fn slow() -> String {
    json!({ "steps": [{ "start": [{ "key": "slow", "model": "be brief" }] }] }).to_string()
}

/// A script that asks its user something.
fn asks() -> String {
    json!({ "steps": [{ "start": [{ "key": "q", "client": "question" }] }] }).to_string()
}

/// Waits until a session has so many events of one kind.
async fn until(host: &Host, session: &str, kind: &str, count: usize) {
    patience::until(async || host.story(session, kind).await.len() >= count).await;
}

async fn until_stepped(host: &Host, session: &str, count: usize) {
    patience::until(async || host.steps(session).await.len() >= count).await;
}

/// The recorded recoveries of a session's turns, by their number in a row.
async fn recoveries(host: &Host, session: &str) -> Vec<u64> {
    host.story(session, "run.recovered.v1")
        .await
        .iter()
        .filter_map(|data| data["count"].as_u64())
        .collect()
}

/// The host's answer to whoever asks whether it is ready.
async fn readiness(host: &Host) -> String {
    let asked = host.bare(reqwest::Method::GET, "/readyz").send();
    asked.await.unwrap().text().await.unwrap()
}

/// The quarantine of a session as it is shown, once it is in it.
pub(super) async fn quarantined(host: &Host, session: &str) -> Value {
    let is = |seen: &Value| !seen["quarantined"].is_null();
    host.until(session, is).await["quarantined"].take()
}

/// A host that ended five times over a turn that had taken a step, with the session and the input.
async fn ended_five_times(folder: &Folder) -> (Host, Session, String) {
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    let said = host.say(&session, &slow()).await;
    until_stepped(&host, &session, 1).await;
    (
        end_five_times(folder, host).await,
        session,
        said.text("input_id"),
    )
}

/// Kills a host while all its turns wait, which blames none of them. Then it dies five times as it
/// begins to work on one of them, and is started again.
async fn end_five_times(folder: &Folder, host: Host) -> Host {
    host.kill().await;
    for _ in 0..5 {
        dies(folder, "broker.perform.before:1", None).await;
    }
    folder.serve().await
}

async fn dead_letters(host: &Host) -> Value {
    host.get("/api/dead-letters").await.body["dead_letters"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_ends_the_host_five_times_fails_and_asks_no_model_again() {
    let folder = folder().await;
    let (host, session, input) = ended_five_times(&folder).await;
    let seen = host.rest(&session).await;
    let reason = "the host ended 5 times in a row while it worked on this, and was not told to";
    assert!(seen["messages"].to_string().contains(reason), "{seen}");
    assert_eq!(recoveries(&host, &session).await, [1, 2, 3, 4, 5]);
    assert_eq!(
        host.story(&session, "operation.attempted.v1").await.len(),
        5,
        "once in each process before, and not here"
    );
    let ended = host.story(&session, "run.ended.v1").await;
    assert_eq!(
        (&ended[0]["end"], &ended[0]["code"]),
        (&json!("failed"), &json!("host-failed")),
        "{ended:?}"
    );
    // The session goes on.
    let replies = json!([{ "reply": "still here" }]);
    host.play(&session, &replies).await;
    host.heard(&session, "still here").await;
    // What the turn did is done again only for whoever says that it may be.
    let requeue = format!("/api/dead-letters/{input}/requeue");
    host.post(&requeue, &json!({}))
        .refused(409, "MAY_REPEAT_WORK")
        .await;
    assert_eq!(host.story(&session, "run.started.v1").await.len(), 2);
    let run = dead_letters(&host).await[0]["run_id"].clone();
    let repeat = format!("{requeue}?repeat={}", run.as_str().unwrap());
    let ada = host.user("ada", &["admin"]).await;
    for _ in 0..2 {
        let asked = ada.ask_under("once", reqwest::Method::POST, &repeat, Some(&json!({})));
        let repeated = asked.await;
        assert_eq!(repeated.status, 202, "{repeated:?}");
    }
    until(&host, &session, "run.started.v1", 3).await;
    assert_eq!(dead_letters(&host).await, json!([]));
    let requeued = json!({ "input_id": input, "requeued_by": "ada", "repeat": run });
    assert_eq!(
        host.story(&session, "session.input.requeued.v1").await,
        [requeued]
    );
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_with_a_reply_leaves_no_dead_letter_when_its_turn_is_given_up() {
    let mut config = config();
    config["agents"] = json!([
        puppet(),
        { "agentId": "other", "displayName": "Other", "component": "puppet" },
    ]);
    let folder = folder_of(config).await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    let replies = json!({ "steps": [
        { "start": [{ "key": "r", "tool": "reply_to_caller", "args": { "content": "early" } }] },
        { "start": [{ "key": "slow", "model": "be brief" }] },
    ] });
    let work = json!({ "target": "other", "content": replies.to_string(), "wait": true });
    let hands_over = json!([
        { "start": [{ "key": "d", "tool": "dispatch_to_agent", "args": work }] },
        { "reply": "thanks" },
    ]);
    host.play(&session, &hands_over).await;
    host.rest(&session).await;
    let id = session.rsplit('/').next().unwrap();
    let started = host.events_of("run.started.v1").await;
    let mut sessions = started
        .iter()
        .filter_map(|event| event["session_id"].as_str());
    let other = sessions.find(|of| *of != id).unwrap();
    until_stepped(&host, other, 2).await;
    let host = end_five_times(&folder, host).await;
    until(&host, other, "run.ended.v1", 1).await;
    let ended = host.story(other, "run.ended.v1").await;
    assert_eq!(ended[0]["code"], "host-failed", "{ended:?}");
    assert_eq!(dead_letters(&host).await, json!([]));
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_response_to_a_message_that_becomes_a_dead_letter_has_the_reason() {
    let folder = folder().await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    let traps = json!({ "steps": [{ "trap": "on purpose" }] }).to_string();
    let path = format!("{session}/messages?wait_s=30");
    let said = host.post(&path, &json!({ "content": traps })).await;
    said.has(200, &json!({ "outcome": "dead" }));
    let reason = dead_letters(&host).await[0]["reason"].clone();
    let expected = json!({
        "code": "step-failed", "message": reason, "retryable": false,
        "category": "MESSAGE_PROCESSING_FAILED",
    });
    assert_eq!(said.body["error"], expected, "{said:?}");
    assert!(reason.to_string().contains("on purpose"), "{reason}");
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// A dead letter of a turn that had begun stays over a restart and a rebuild, until its session is
/// purged.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_given_up_is_listed_with_its_reason_until_its_session_is_purged() {
    let folder = folder().await;
    let (host, session, input) = ended_five_times(&folder).await;
    host.rest(&session).await;
    let dead = dead_letters(&host).await;
    assert_eq!(dead.as_array().map(Vec::len), Some(1), "{dead}");
    let letter = &dead[0];
    let seen = host.get(&format!("{session}/inputs/{input}")).await.body;
    assert_eq!(seen["state"], "dead", "{seen}");
    assert!(
        seen["turn_id"].is_string() && seen["run_id"].is_string(),
        "{seen}"
    );
    let (agent, id) = session
        .trim_start_matches("/api/agents/")
        .split_once("/sessions/")
        .unwrap();
    let expected = json!({
        "input_id": input,
        "session_id": id,
        "agent_id": agent,
        "user_id": "local",
        "run_id": seen["run_id"],
        "begun": true,
        "reason": seen["reason"],
        "died_at": letter["died_at"],
        "accepted_at": letter["accepted_at"],
        "message": letter["message"],
    });
    assert_eq!(*letter, expected);
    let reason = seen["reason"].as_str().unwrap();
    tells(reason, &["the host ended 5 times in a row"]);

    let run = seen["run_id"].as_str().unwrap();
    let texts = [&*input, id, agent, run, "(had begun)", "user local", reason];
    folder.prints("dead-letter list", 0, &texts).await;
    let refused = folder.run(&["dead-letter", "requeue", &input]).await;
    assert!(!refused.status.success(), "{refused:?}");
    tells(&String::from_utf8_lossy(&refused.stderr), &["--repeat"]);
    assert!(host.stop().await.success(), "{}", folder.log());

    assert!(folder.run(&["rebuild"]).await.status.success());
    let host = folder.serve().await;
    assert_eq!(dead_letters(&host).await, dead);
    let line = host.line();
    line.delete(&session).gives(200).await;
    let whose = json!({ "agent_id": agent, "session_id": id });
    host.post("/api/purges", &whose).gives(200).await;
    assert_eq!(dead_letters(&host).await, json!([]));
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_page_by_page_and_dropped_for_good() {
    let folder = folder().await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    let traps = json!({ "steps": [{ "trap": "on purpose" }] }).to_string();
    let mut inputs = Vec::new();
    for count in 1..=3 {
        let said = host.say(&session, &traps).await;
        inputs.insert(0, said.text("input_id"));
        until(&host, &session, "session.input.dead.v1", count).await;
    }
    let mut seen = Vec::new();
    let mut path = "/api/dead-letters?limit=1".to_owned();
    loop {
        let page = host.get(&path).await.body;
        seen.push(
            page["dead_letters"][0]["input_id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
        match page["next_after"].as_u64() {
            Some(next) => path = format!("/api/dead-letters?limit=1&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, inputs, "the newest first, each once");

    let dropped = &inputs[1];
    let drops = [
        "dead-letter",
        "drop",
        dropped.as_str(),
        "--reason",
        "done by hand",
    ];
    folder.succeeds(&drops).await;
    let data = host.story(&session, "session.input.cancelled.v1").await;
    let expected = json!({
        "input_id": dropped, "cancelled_by": "local", "reason": "done by hand",
    });
    assert_eq!(data, [expected]);
    let input = host.get(&format!("{session}/inputs/{dropped}")).await;
    assert_eq!(input.body["state"], "cancelled");
    let listed = folder.prints("dead-letter list", 0, &[]).await;
    for (input, is_listed) in inputs.iter().zip([true, false, true]) {
        assert_eq!(listed.contains(input.as_str()), is_listed, "{listed}");
    }
    assert!(!folder.run(&drops).await.status.success());
    assert!(host.stop().await.success(), "{}", folder.log());
    assert!(folder.run(&["rebuild"]).await.status.success());
    folder.verified().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_that_somebody_wanted_count_for_nothing() {
    let folder = folder().await;
    let mut host = folder.serve().await;
    let session = host.open("puppet").await;
    host.say(&session, &slow()).await;
    until_stepped(&host, &session, 1).await;
    for asked_again in 1..5 {
        if asked_again % 2 == 0 {
            // Whoever has no patience says it twice, and stops the host in the middle of its work.
            host.tell_to_stop();
        }
        assert!(host.stop().await.success(), "{}", folder.log());
        host = folder.serve().await;
        until(&host, &session, "operation.attempted.v1", asked_again).await;
    }
    assert_eq!(recoveries(&host, &session).await, Vec::<u64>::new());
    host.kill().await;
    let host = folder.serve().await;
    until(&host, &session, "operation.attempted.v1", 5).await;
    assert_eq!(recoveries(&host, &session).await, [1]);
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_that_wait_are_not_touched_by_a_recovery() {
    let folder = folder().await;
    let mut host = folder.serve().await;
    let asking = host.open("puppet").await;
    let timed = host.open("puppet").await;
    let resting = host.open("puppet").await;
    let timer = json!({ "steps": [{ "start": [{ "key": "t", "timer": 3_600_000 }] }] });
    for (session, script) in [
        (&asking, asks()),
        (&timed, timer.to_string()),
        (
            &resting,
            json!({ "steps": [{ "reply": "done" }] }).to_string(),
        ),
    ] {
        host.say(session, &script).await;
        until_stepped(&host, session, 1).await;
    }
    for _ in 0..4 {
        host.kill().await;
        host = folder.serve().await;
    }
    let call = host.get(&asking).await.body["pending_action"]["tool_call_id"].clone();
    let respond = format!("{}/respond", asking.split("/sessions").next().unwrap());
    host.post(&respond, &json!({ "tool_call_id": call, "response": true }))
        .gives(202)
        .await;
    host.heard(&asking, "q value true").await;
    for session in [&asking, &timed, &resting] {
        assert_eq!(
            recoveries(&host, session).await,
            Vec::<u64>::new(),
            "{session}"
        );
    }
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// Starts a host that dies at a crash point: before it is ready, or after it was told something.
async fn dies(folder: &Folder, point: &str, reported: Option<(&str, &str)>) {
    let Ok(mut host) = folder.start(Some(point)).await else {
        return;
    };
    if let Some((session, words)) = reported {
        let _ = host
            .post(&format!("{session}/messages"), &json!({ "content": words }))
            .await;
    }
    assert!(
        host.died(PATIENCE).await.is_some(),
        "{point} was never passed: {}",
        folder.log()
    );
}

/// An input whose first step ends the process is a dead letter after five ends.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_whose_first_step_ends_the_process_is_dead_after_five_ends() {
    let folder = folder().await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    assert!(host.stop().await.success(), "{}", folder.log());
    let script = json!({ "steps": [{ "reply": "at last" }] }).to_string();
    dies(&folder, "broker.step.before:1", Some((&session, &script))).await;
    for _ in 0..4 {
        dies(&folder, "broker.step.before:1", None).await;
    }
    let host = folder.start(Some("broker.step.before:1")).await.unwrap();
    host.rest(&session).await;
    assert_eq!(recoveries(&host, &session).await, [1, 2, 3, 4]);
    let dead = host.get("/api/dead-letters").await.body["dead_letters"].clone();
    assert!(
        dead[0]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("the host ended 5 times in a row")),
        "{dead}"
    );
    assert_eq!(dead.as_array().map(Vec::len), Some(1), "{dead}");
    assert!(host.stop().await.success(), "{}", folder.log());
    // It can have another chance.
    let host = folder.serve().await;
    let requeue = format!(
        "/api/dead-letters/{}/requeue",
        dead[0]["input_id"].as_str().unwrap()
    );
    host.post(&requeue, &json!({})).gives(202).await;
    host.heard(&session, "at last").await;
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// A host that dies while it records a recovery records it once for each start at most.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_dies_while_it_records_a_recovery_records_it_once_a_start() {
    let folder = folder().await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    host.say(&session, &slow()).await;
    until_stepped(&host, &session, 1).await;
    host.kill().await;
    dies(&folder, "broker.recover.before:1", None).await;
    dies(&folder, "broker.recover.after:1", None).await;
    let host = folder.serve().await;
    until(&host, &session, "operation.attempted.v1", 1).await;
    assert_eq!(recoveries(&host, &session).await, [1, 2]);
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skipped_session_is_left_alone_takes_words_and_goes_on_when_it_is_released() {
    let folder = folder().await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    let other = host.open("puppet").await;
    host.say(&session, &slow()).await;
    until_stepped(&host, &session, 1).await;
    host.kill().await;
    let id = session.rsplit('/').next().unwrap();
    let unknown = folder
        .run(&["serve", "--skip", "00000000-0000-4000-8000-000000000000"])
        .await;
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");

    let host = folder.start_with(&["--skip", id], None).await.unwrap();
    let replies = json!([{ "reply": "served" }]);
    host.play(&other, &replies).await;
    host.heard(&other, "served").await;
    host.say(&session, "and then?").await;
    let seen = host.get(&session).await.body;
    shows(
        &seen,
        &json!({ "quarantined/why": "skipped", "waiting": 1, "run_status": "running" }),
    );
    host.post(&format!("{session}/cancel"), &json!({}))
        .refused(409, "SESSION_QUARANTINED")
        .await;
    host.send(host.bare(reqwest::Method::GET, "/readyz"))
        .gives(200)
        .await;
    let text = readiness(&host).await;
    assert!(
        text.starts_with("ready; 1 session is in quarantine"),
        "{text}"
    );
    assert_eq!(
        (
            recoveries(&host, &session).await,
            host.story(&session, "operation.attempted.v1").await
        ),
        (vec![], vec![])
    );

    let listed = folder.run(&["session", "quarantined"]).await;
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains(id) && listed.contains("skipped") && listed.contains("serve --skip"),
        "{listed}"
    );
    folder.succeeds(&["session", "release", id]).await;
    until(&host, &session, "operation.attempted.v1", 1).await;
    assert_eq!(recoveries(&host, &session).await, [1]);
    assert_eq!(
        host.post(&format!("/api/quarantine/{id}/release"), &json!({}))
            .await
            .text("code"),
        "NOT_QUARANTINED"
    );
    let text = readiness(&host).await;
    assert_eq!(text, "ready");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_cancel_of_a_quarantined_session_takes_back_no_words() {
    let folder = folder().await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    host.say(&session, &slow()).await;
    until_stepped(&host, &session, 1).await;
    host.kill().await;
    let id = session.rsplit('/').next().unwrap();
    let host = folder.start_with(&["--skip", id], None).await.unwrap();
    host.say(&session, "and then?").await;
    host.post(&format!("{session}/cancel"), &json!({ "waiting": true }))
        .refused(409, "SESSION_QUARANTINED")
        .await;
    let seen = host.get(&session).await.body;
    shows(&seen, &json!({ "waiting": 1, "run_status": "running" }));
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// Changes the database of a host that is not running.
fn change(folder: &Folder, text: &str) {
    let changed = Connection::open(folder.data().join("store.db"))
        .unwrap()
        .execute(text, [])
        .unwrap();
    assert_eq!(changed, 1, "{text}");
}

/// A run that cannot be read is in quarantine until it is released and readable again.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_read_is_in_quarantine_until_released_and_readable() {
    let folder = folder().await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    let other = host.open("puppet").await;
    let replies = json!({ "steps": [{ "reply": "the turn before" }] }).to_string();
    host.say(&session, &replies).await;
    host.rest(&session).await;
    host.say(&session, &asks()).await;
    until_stepped(&host, &session, 2).await;
    assert!(host.stop().await.success(), "{}", folder.log());
    // One that reads as if it had been erased.
    let of_run = "kind = 'run.started.v1' \
                  AND run = (SELECT number FROM streams WHERE stream_kind = 'run' AND stream_id = (SELECT open_run \
                  FROM sessions WHERE open_run IS NOT NULL))";
    let database = Connection::open(folder.data().join("store.db")).unwrap();
    let inspection = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let kept: (i64, Vec<u8>, Vec<u8>) = database
        .query_row(
            &format!("SELECT position, payload, salt FROM events WHERE {of_run}"),
            [],
            inspection,
        )
        .unwrap();
    database.close().unwrap();
    let digest = Salt(kept.2.clone().try_into().unwrap()).digest(&kept.1);
    change(
        &folder,
        &format!(
            "UPDATE events SET payload = NULL, salt = NULL, payload_digest = x'{}' WHERE {of_run}",
            digest.hex()
        ),
    );

    let host = folder.serve().await;
    let why = quarantined(&host, &session).await;
    assert_eq!(why["why"], "stuck", "{why}");
    let seen = host.get(&session).gives(200).await;
    assert!(
        seen.body["messages"]
            .to_string()
            .contains("the turn before"),
        "{seen:?}"
    );
    host.say(&session, "are you there?").await;
    host.say(&other, &replies).await;
    host.rest(&other).await;
    let list = host.get("/api/quarantine").await.body["quarantined"].clone();
    assert_eq!(
        (
            list.as_array().map(Vec::len),
            list[0]["session_id"].as_str()
        ),
        (Some(1), session.rsplit('/').next()),
        "{list}"
    );
    // Nobody tries it again by themselves, and it is put back when the operator does in vain.
    let tries = || {
        folder
            .log()
            .matches("a session cannot go on just now")
            .count()
    };
    let before = tries();
    sleep(Duration::from_secs(6)).await;
    assert_eq!(tries(), before, "{}", folder.log());
    let release = format!(
        "/api/quarantine/{}/release",
        session.rsplit('/').next().unwrap()
    );
    host.post(&release, &json!({})).gives(202).await;
    quarantined(&host, &session).await;
    assert_eq!(
        folder
            .log()
            .matches("a session is put into quarantine")
            .count(),
        2,
        "{}",
        folder.log()
    );
    assert!(host.stop().await.success(), "{}", folder.log());

    let database = Connection::open(folder.data().join("store.db")).unwrap();
    database
        .execute(
            "UPDATE events SET payload = ?2, salt = ?3 WHERE position = ?1",
            rusqlite::params![kept.0, kept.1, kept.2],
        )
        .unwrap();
    database.close().unwrap();
    let host = folder.serve().await;
    let seen = host.get(&session).await.body;
    let call = seen["pending_action"]["tool_call_id"].clone();
    let respond = format!("{}/respond", session.split("/sessions").next().unwrap());
    assert_eq!(
        host.post(&respond, &json!({ "tool_call_id": call, "response": true }))
            .await
            .status,
        202,
        "{seen}"
    );
    host.heard(&session, "q value true").await;
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// A turn on whose event a projection panics ends with a reason, and the host lives on.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_over_which_a_projection_panics_ends_with_a_reason_and_the_host_lives_on() {
    let folder = folder().await;
    let mut host = folder
        .start_in(&[], Some((PANICS_ON, "hello from the model")))
        .await
        .unwrap();
    let session = host.open("puppet").await;
    let other = host.open("puppet").await;
    let script = json!([
        { "start": [{ "key": "m", "model": "be brief" }] },
        { "reply": "never" },
    ]);
    host.play(&session, &script).await;
    host.heard(&session, "can never be stored").await;
    let replies = json!({ "steps": [{ "reply": "served" }] }).to_string();
    for session in [&session, &other] {
        host.say(session, &replies).await;
        host.heard(session, "served").await;
    }
    // A request of which nothing can be stored is told that it is no use to repeat it.
    say(&host, &other, "hello from the model")
        .refused(422, "NOT_STORABLE")
        .await;
    assert!(
        host.died(Duration::from_millis(100)).await.is_none(),
        "{}",
        folder.log()
    );
    host.kill().await;
    // Nothing of it is left that a start would repeat.
    let host = folder
        .start_in(&[], Some((PANICS_ON, "hello from the model")))
        .await
        .unwrap();
    host.rest(&session).await;
    assert_eq!(host.story(&session, "run.ended.v1").await.len(), 2);
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_of_which_no_start_can_be_stored_is_a_dead_letter() {
    for variable in [PANICS_ON, CONTRADICTS_ON] {
        let folder = folder().await;
        // Only the start of a run says where in its thread it begins.
        let host = folder
            .start_in(&[], Some((variable, "\"base_message\":")))
            .await
            .unwrap();
        let session = host.open("puppet").await;
        let script = json!({ "steps": [{ "reply": "at last" }] }).to_string();
        let input = say(&host, &session, &script).await.text("input_id");
        host.rest(&session).await;
        let dead = host.get("/api/dead-letters").await.body["dead_letters"].clone();
        assert_eq!(dead[0]["input_id"], input.as_str(), "{variable}: {dead}");
        assert!(
            dead[0]["reason"]
                .as_str()
                .is_some_and(|reason| reason.contains("can never be stored")),
            "{variable}: {dead}"
        );
        assert!(host.stop().await.success(), "{}", folder.log());
        let host = folder.serve().await;
        host.post(&format!("/api/dead-letters/{input}/requeue"), &json!({}))
            .gives(202)
            .await;
        assert!(
            host.rest(&session).await["messages"]
                .to_string()
                .contains("at last"),
            "{variable}"
        );
        assert!(host.stop().await.success(), "{}", folder.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_reading_panics_is_in_quarantine_and_goes_on_when_it_can_be_read() {
    let folder = folder().await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    let other = host.open("puppet").await;
    let asks =
        json!({ "steps": [{ "start": [{ "key": "fragile", "client": "question" }] }] }).to_string();
    host.say(&session, &asks).await;
    until_stepped(&host, &session, 1).await;
    assert!(host.stop().await.success(), "{}", folder.log());
    // In the words of the user, the quotes are escaped.
    let host = folder
        .start_in(&[], Some((READING_PANICS_ON, "\"key\":\"fragile\"")))
        .await
        .unwrap();
    let why = quarantined(&host, &session).await;
    assert_eq!(why["why"], "stuck", "{why}");
    assert!(
        why["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("panicked")),
        "{why}"
    );
    let tries = || {
        folder
            .log()
            .matches("a session cannot go on just now")
            .count()
    };
    let before = tries();
    sleep(Duration::from_secs(6)).await;
    assert_eq!((before, tries()), (5, 5), "{}", folder.log());
    let replies = json!([{ "reply": "served" }]);
    host.play(&other, &replies).await;
    host.heard(&other, "served").await;
    assert!(host.stop().await.success(), "{}", folder.log());
    let host = folder.serve().await;
    let call = host.get(&session).await.body["pending_action"]["tool_call_id"].clone();
    let respond = format!("{}/respond", session.split("/sessions").next().unwrap());
    host.post(&respond, &json!({ "tool_call_id": call, "response": true }))
        .gives(202)
        .await;
    host.heard(&session, "fragile value true").await;
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// Answers the one question of a session, once it is asked.
async fn answer(host: &Host, session: &Session) {
    let call = &host.question(session).await["tool_call_id"];
    host.respond(session.agent(), call, &json!(true))
        .gives(202)
        .await;
}

/// A session whose reading ends three starts, with the sessions that were looked at beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_reading_ends_three_starts_is_left_unread_until_it_is_released() {
    let folder = folder().await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    let others = [
        host.open("puppet").await,
        host.open("puppet").await,
        host.open("puppet").await,
    ];
    let fragile =
        json!({ "steps": [{ "start": [{ "key": "fragile", "client": "question" }] }] }).to_string();
    host.say(&session, &fragile).await;
    until_stepped(&host, &session, 1).await;
    for other in &others {
        host.say(other, &asks()).await;
        until_stepped(&host, other, 1).await;
    }
    assert!(host.stop().await.success(), "{}", folder.log());

    // In the words of the user, the quotes are escaped.
    let deadly = Some((READING_DIES_ON, "\"key\":\"fragile\""));
    for start in 1..=3 {
        if let Ok(mut host) = folder.start_in(&[], deadly).await {
            let died = host.died(PATIENCE).await;
            assert!(died.is_some(), "start {start}: {}", folder.log());
        }
    }
    for _ in 0..2 {
        let host = folder.start_in(&[], deadly).await.unwrap();
        let list = host.get("/api/quarantine").await.body["quarantined"].clone();
        assert_eq!(
            (
                list.as_array().map(Vec::len),
                list[0]["session_id"].as_str(),
                list[0]["why"].as_str(),
            ),
            (Some(1), session.rsplit('/').next(), Some("stuck")),
            "{list}"
        );
        assert!(
            list[0]["reason"]
                .as_str()
                .is_some_and(|reason| reason.contains("ended at 3 starts")),
            "{list}"
        );
        let text = readiness(&host).await;
        assert!(
            text.starts_with("ready; 1 session is in quarantine"),
            "{text}"
        );
        let listed = folder.run(&["session", "quarantined"]).await;
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("ended at 3 starts"), "{listed}");
        // It is shown without its open turn, and its words wait.
        let seen = host.get(&session).await;
        assert_eq!(
            (seen.status, &seen.body["quarantined"]["why"]),
            (200, &json!("stuck")),
            "{seen:?}"
        );
        host.say(&session, "are you there?").await;
        // An end that somebody wanted forgets the note of no session that is left unread.
        assert!(host.stop().await.success(), "{}", folder.log());
    }
    let host = folder.start_in(&[], deadly).await.unwrap();
    for other in &others {
        answer(&host, other).await;
        host.heard(other, "q value true").await;
    }
    assert!(host.stop().await.success(), "{}", folder.log());

    let host = folder.serve().await;
    quarantined(&host, &session).await;
    let id = session.rsplit('/').next().unwrap();
    folder.succeeds(&["session", "release", id]).await;
    answer(&host, &session).await;
    host.heard(&session, "fragile value true").await;
    assert!(host.stop().await.success(), "{}", folder.log());
    let host = folder.serve().await;
    let list = host.get("/api/quarantine").await.body["quarantined"].clone();
    assert_eq!(list, json!([]));
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_end_cannot_be_recorded_is_in_quarantine_and_others_are_served() {
    let replies = json!({ "steps": [{ "reply": "served" }] }).to_string();
    let traps = json!({ "steps": [{ "trap": "on purpose" }] }).to_string();
    // Only an end has a reason; or what ends a turn panics whenever it is tried.
    let cases = [
        (PANICS_ON, "\"reason\":\""),
        (CONTRADICTS_ON, "\"reason\":\""),
        (CRASH_AT, "panic@broker.end.before:1.."),
    ];
    let replies = &replies;
    let traps = &traps;
    stream::iter(cases)
        .for_each_concurrent(3, |variable| async move {
            let folder = folder().await;
            let host = folder.start_in(&[], Some(variable)).await.unwrap();
            let session = host.open("puppet").await;
            let other = host.open("puppet").await;
            host.say(&session, traps).await;
            let why = quarantined(&host, &session).await;
            assert_eq!(why["why"], "stuck", "{variable:?}: {why}");
            host.say(&other, replies).await;
            assert!(
                host.rest(&other).await["messages"]
                    .to_string()
                    .contains("served"),
                "{variable:?}"
            );
            assert!(host.stop().await.success(), "{}", folder.log());
            // A start looks again by itself.
            let host = folder.serve().await;
            host.rest(&session).await;
            let dead = host.get("/api/dead-letters").await.body["dead_letters"].to_string();
            assert!(
                dead.contains("on purpose") || dead.contains("trapped"),
                "{variable:?}: {dead}"
            );
            assert!(host.stop().await.success(), "{}", folder.log());
        })
        .await;
}
