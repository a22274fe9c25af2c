//! The host after a panic. Everything is left: nothing stands still, nothing acknowledged is lost,
//! and nothing that must not happen twice does.
//!
//! Ends of the process again and again: the work that ends it is found, and nothing else is given
//! up with it.

use super::exhaustion::idle_within;
use super::poison::quarantined;
use agent_host_tests::guests::test_program;
use agent_host_tests::process::{
    Folder, Host, PATIENCE, PERFORMING_DIES_ON, effects, puppet, scripted, tells,
};
use agent_host_tests::repeats::is_whole;
use futures::stream;
use futures::stream::StreamExt;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The signal that ends a process that aborts itself.
const ABORTED: i32 = 6;
/// Hosts that run side by side: each waits most of its time, in the pauses that follow a panic.
const SIDE_BY_SIDE: usize = 4;

fn config() -> Value {
    let other = json!({ "agentId": "other", "displayName": "Other", "component": "puppet" });
    scripted(&json!([puppet(), other]), &[("effects", effects())])
}

/// A host in which something panics, in a folder.
async fn host(config: Value, panic: Option<&str>) -> (Folder, Host) {
    let folder = Folder::new(config);
    folder.warm(&["puppet", "effects"]).await;
    let host = folder
        .start(panic.map(|place| format!("panic@{place}")).as_deref())
        .await
        .unwrap();
    (folder, host)
}

/// Returns the text of a session's last message, once it has nothing to do.
async fn last(host: &Host, session: &str) -> String {
    let seen = host.rest(session).await;
    let messages = seen["messages"].as_array();
    let last = messages.and_then(|messages| messages.last()?["text"].as_str());
    last.unwrap_or_default().to_owned()
}

/// Runs one script in a host that panics somewhere, and checks that the same process goes on.
/// Returns the result and the effects of the tools.
async fn play(panic: &str, script: &Value) -> (String, Vec<String>) {
    let (folder, host) = host(config(), Some(panic)).await;
    let session = host.open("puppet").await;
    host.say(&session, &script.to_string()).await;
    let reply = last(&host, &session).await;
    assert!(
        folder.log().contains("a test wants a panic at"),
        "{panic}: nothing panicked"
    );
    assert!(
        folder.log().contains("panic.place"),
        "{panic}: where it panicked is not said: {}",
        folder.log()
    );
    let other = host.open("puppet").await;
    host.play(&other, &json!([{ "reply": "still here" }])).await;
    assert_eq!(last(&host, &other).await, "still here", "{panic}");
    folder.over(host).await;
    let effects = folder.effects();
    (reply, effects)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_did_whose_work_or_whose_driver_panics_is_in_the_ledger() {
    // The outcome of the call is recorded by itself.
    let both = json!([{ "key": "put", "tool": "put" }, { "key": "slow", "timer": 500 }]);
    let script = json!({
        "steps": [{ "until": "all", "start": both }, { "start": [{ "key": "timer", "timer": 5 }] }],
    });
    let cases = [
        "broker.perform.after:1",
        "broker.settle.before:1",
        "broker.settle.after:1",
        "broker.step.before:2",
        "broker.commit.after:2",
    ];
    let script = &script;
    stream::iter(cases)
        .for_each_concurrent(SIDE_BY_SIDE, |panic| async move {
            let (folder, host) = host(config(), Some(panic)).await;
            let session = host.open("puppet").await;
            host.say(&session, &script.to_string()).await;
            last(&host, &session).await;
            assert!(
                folder.log().contains("a test wants a panic at"),
                "{panic}: nothing panicked"
            );
            let audit = host
                .get("/api/audit?tool=put&capability=files.write&verdict=granted")
                .await
                .body;
            let writes = audit["lines"].as_array().unwrap().len();
            // Once for each time that it was really called.
            assert_eq!(
                writes,
                count(&folder.effects(), "put begin"),
                "{panic}: {audit}"
            );
            assert!(host.stop().await.success(), "{panic}: {}", folder.log());
        })
        .await;
}

fn count(effects: &[String], what: &str) -> usize {
    effects.iter().filter(|line| line.starts_with(what)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_driver_panics_goes_on_from_what_is_stored_and_repeats_nothing() {
    let script = json!({ "steps": [
        { "until": "all", "start": [
            { "key": "model", "model": "be brief" }, { "key": "put", "tool": "put" },
        ] },
        { "start": [{ "key": "send", "tool": "send", "args": { "sleep": 50 } }] },
        { "start": [{ "key": "timer", "timer": 5 }] },
    ] });
    let whole = "model message hello from the model\nput parts put done\nsend parts send done\n\
                 timer elapsed";
    let lost =
        "model message hello from the model\nput parts put done\nsend unknown\ntimer elapsed";
    let cases = [
        ("broker.step.before:1", whole, 1),
        ("broker.step.after:1..2", whole, 1),
        // The result of the call was not recorded yet.
        ("broker.step.before:3", lost, 1),
        ("broker.commit.before:2", whole, 1),
        ("broker.commit.after:1", whole, 1),
        // As often as it likes, as long as something was recorded in between.
        ("broker.commit.after:1..", whole, 1),
        // The first of two outcomes is recorded by itself, then that the call is about to be made.
        ("broker.settle.before:1", whole, 1),
        ("broker.settle.after:1", whole, 1),
        ("broker.settle.before:2", whole, 1),
        ("broker.settle.after:2", lost, 0),
        ("broker.started.after:1", lost, 0),
    ];
    let script = &script;
    stream::iter(cases)
        .for_each_concurrent(SIDE_BY_SIDE, |(panic, reply, sends)| async move {
            let (received, effects) = play(panic, script).await;
            let mut reported: Vec<&str> = received.lines().collect();
            // Which of the first two is done first is left open.
            if reported.len() > 1 {
                reported[..2].sort_unstable();
            }
            assert_eq!(reported.join("\n"), reply, "{panic}");
            assert_eq!(count(&effects, "send begin"), sends, "{panic}: {effects:?}");
            assert!(
                effects
                    .iter()
                    .filter(|line| line.starts_with("put"))
                    .all(|line| line.ends_with(effects[0].rsplit(' ').next().unwrap()))
            );
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_under_way_when_its_driver_panicked_is_unknown_and_not_made_again() {
    let script = json!({
        "steps": [{
            "until": "all",
            "start": [
                { "key": "send", "tool": "send", "args": { "sleep": 600 } },
                { "key": "look", "tool": "look" },
            ],
        }],
    });
    // What comes of `look` is recorded while `send` is still under way.
    let (reply, effects) = play("broker.settle.after:2", &script).await;
    assert_eq!(reply, "look parts look done\nsend unknown");
    assert_eq!(count(&effects, "send begin"), 1, "{effects:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_driver_keeps_panicking_is_given_up_and_nobody_else_suffers() {
    // Only a call that must not be made twice is recorded by itself here.
    let script = json!({ "steps": [{ "start": [{ "key": "send", "tool": "send" }] }] });
    let (reply, effects) = play("broker.settle.before:1..", &script).await;
    assert_eq!(
        reply,
        "The turn failed: the host failed 3 times in a row while it worked on this; whoever runs \
         it finds the reason in its log"
    );
    assert!(effects.is_empty(), "{effects:?}");
}

/// An input over which the driver keeps panicking is a dead letter that can be requeued.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_over_which_the_driver_keeps_panicking_is_a_requeueable_dead_letter() {
    let (folder, host) = host(config(), Some("broker.step.before:1..3")).await;
    let session = host.open("puppet").await;
    let input = host
        .play(&session, &json!([{ "reply": "at last" }]))
        .await
        .text("input_id");
    assert_eq!(
        last(&host, &session).await,
        "",
        "a turn without a step leaves nothing"
    );
    let dead = host.get("/api/dead-letters").await.body;
    assert_eq!(
        dead["dead_letters"][0]["input_id"],
        input.as_str(),
        "{dead}"
    );
    let seen = host.get(&format!("{session}/inputs/{input}")).await.body;
    assert_eq!(
        (&seen["state"], &seen["run_id"]),
        (&json!("dead"), &dead["dead_letters"][0]["run_id"]),
        "{seen}"
    );
    assert!(
        dead.to_string()
            .contains("the host failed 3 times in a row"),
        "{dead}"
    );
    assert!(folder.log().contains("keeps panicking"), "{}", folder.log());
    host.post(&format!("/api/dead-letters/{input}/requeue"), &json!({}))
        .gives(202)
        .await;
    assert_eq!(last(&host, &session).await, "at last");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_panics_has_failed_unless_it_may_have_taken_effect() {
    let failed = "t failed host-failed: the host failed while it worked on this, and has no \
                  result; whoever runs it finds the reason in its log";
    let model = json!({ "key": "t", "model": "be brief" });
    let recall = json!({ "key": "t", "recall": "zebra" });
    let tool = |name: &str| json!({ "key": "t", "tool": name });
    let cases = [
        ("broker.perform.before:1", &model, failed, 0),
        ("broker.perform.after:1", &recall, failed, 0),
        ("broker.perform.before:1", &tool("look"), failed, 0),
        ("broker.perform.after:1", &tool("put"), failed, 1),
        ("broker.perform.before:1", &tool("send"), "t unknown", 0),
        ("broker.perform.after:1", &tool("send"), "t unknown", 1),
    ];
    stream::iter(cases)
        .for_each_concurrent(
            SIDE_BY_SIDE,
            |(panic, operation, reply, begun)| async move {
                let (received, effects) =
                    play(panic, &json!({ "steps": [{ "start": [operation] }] })).await;
                assert_eq!(received, reply, "{panic}, {operation}");
                assert_eq!(
                    effects
                        .iter()
                        .filter(|line| line.contains(" begin "))
                        .count(),
                    begun,
                    "{panic}, {operation}: {effects:?}"
                );
            },
        )
        .await;
}

/// An answer over which the driver panics is not acknowledged and can be given again.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_which_the_driver_panics_is_unacknowledged_and_can_be_repeated() {
    let (folder, host) = host(config(), Some("broker.settle.before:1")).await;
    let session = host.open("puppet").await;
    host.play(
        &session,
        &json!([{ "start": [{ "key": "q", "client": "question" }] }]),
    )
    .await;
    let call = host.question(&session).await["tool_call_id"].take();
    let respond = format!("{}/respond", session.agent());
    let body = json!({ "tool_call_id": call, "response": true });
    host.post(&respond, &body).refused(429, "BUSY").await;
    host.post(&respond, &body).gives(202).await;
    assert_eq!(last(&host, &session).await, "q value true");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_driver_that_panics_after_its_commit_is_woken_all_the_same() {
    let reply = json!({ "steps": [{ "reply": "done by the other" }] }).to_string();
    let script =
        json!({ "steps": [{ "start": [{ "key": "t", "agent": "other", "text": reply }] }] });
    // Work that is handed over, and its result.
    for panic in ["broker.commit.after:1", "broker.commit.after:2"] {
        assert_eq!(
            play(panic, &script).await.0,
            "t parts done by the other",
            "{panic}"
        );
    }
}

/// Words that are stored are dealt with, also when the request that brought them panicked.
#[tokio::test(flavor = "multi_thread")]
async fn stored_words_are_dealt_with_also_when_the_request_that_brought_them_panicked() {
    let (folder, host) = host(config(), Some("broker.accept.after:1")).await;
    let session = host.open("puppet").await;
    let content = json!({ "steps": [{ "reply": "heard" }] }).to_string();
    assert!(
        host.post(
            &format!("{session}/messages"),
            &json!({ "content": content })
        )
        .attempt()
        .await
        .is_err(),
        "nothing was acknowledged"
    );
    host.until(&session, |seen| {
        seen["last_message"] == 2 && seen["run_id"].is_null()
    })
    .await;
    assert_eq!(last(&host, &session).await, "heard");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_that_panic_are_watched_again_and_a_host_that_cannot_watch_them_ends() {
    // Long enough that the turn waits for it also on a busy machine: a driver that is late finds it
    // due by itself.
    let script = json!({ "steps": [{ "start": [{ "key": "t", "timer": 1_000 }] }] });
    let (reply, _) = play("broker.timer.due:1..2", &script).await;
    assert_eq!(reply, "t elapsed");

    let (folder, mut ends) = host(config(), Some("broker.timer.due:1..")).await;
    let session = ends.open("puppet").await;
    ends.say(&session, &script.to_string()).await;
    let status = ends.died(PATIENCE).await.expect("an end");
    assert_eq!(status.signal(), Some(ABORTED), "{status}");
    assert!(
        folder
            .log()
            .contains("the watch over timers panicked: the process ends"),
        "{}",
        folder.log()
    );
    let again = folder.serve().await;
    assert_eq!(
        last(&again, &session).await,
        "t elapsed",
        "what its supervisor starts goes on"
    );
    assert!(again.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_host_that_passes_fails_no_turn() {
    let mut config = config();
    // The least that may be configured: some sixty guests.
    config["limits"] = json!({ "instancesMemoryBytesMax": 64 << 20, "instancesMax": 200 });
    config["agents"][0]["maxConcurrentMessages"] = json!(200);
    config["components"]["effects"]["limits"] = json!({ "concurrencyMax": 200 });
    let (folder, host) = host(config, None).await;
    let inspections: Vec<Value> = (0..8)
        .map(
            |place| json!({ "key": place.to_string(), "tool": "look", "args": { "sleep": 4_000 } }),
        )
        .collect();
    let mut crowd = Vec::new();
    for _ in 0..8 {
        let session = host.open("puppet").await;
        host.play(
            &session,
            &json!([{ "until": "all", "start": inspections }, { "reply": "done" }]),
        )
        .await;
        crowd.push(session);
    }
    let faulted = || {
        folder
            .log()
            .contains("the memory for all guests together is used up")
    };
    let mut words = Vec::new();
    let patience = Instant::now() + Duration::from_millis(3_500);
    while !faulted() && Instant::now() < patience {
        let session = host.open("puppet").await;
        host.play(&session, &json!([{ "reply": "still here" }]))
            .await;
        words.push(session);
        sleep(Duration::from_millis(50)).await;
    }
    assert!(
        faulted(),
        "the memory was never used up, so this was never tried: {}",
        folder.log()
    );
    for session in &words {
        assert_eq!(last(&host, session).await, "still here");
    }
    for session in &crowd {
        assert_eq!(last(&host, session).await, "done");
    }
    let dead = host.get("/api/dead-letters").await.body;
    assert_eq!(dead["dead_letters"], json!([]));
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// A model that takes longer than a process lives.
const SCRIPT: &str = r#"
[[rule]]
reply = { text = "hello from the model", firstDelayMs = 4000 }
"#;
/// The time for all chats of a test, which compute one after the other.
const ALL_ANSWERED: Duration = Duration::from_secs(4 * PATIENCE.as_secs());
/// Calls of a chat that computes.
const CALLS: usize = 5;
/// The time after which a host that has not ended does not end over its work: suspects are resumed
/// a second after the start, and the groups of a few follow within seconds.
const LIVES: Duration = Duration::from_secs(6);

async fn folder() -> Folder {
    let toil = json!({ "path": test_program("toil"), "limits": { "cpuMsMax": 100 } });
    let mut config = scripted(&json!([puppet()]), &[("toil", toil)]);
    config["providers"]["scripted"]["concurrentMax"] = json!(64);
    let folder = Folder::new(config);
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    folder.warm(&["puppet", "toil"]).await;
    folder
}

/// A chat whose turn asks the slow model, or calls a tool.
fn script(operation: &Value) -> String {
    json!({ "steps": [{ "start": [operation] }] }).to_string()
}

/// A chat whose turn computes for a while, call by call.
fn computes() -> String {
    let call = |call| {
        let call = json!({ "key": format!("t{call}"), "tool": "spin" });
        json!({ "start": [call] })
    };
    json!({ "steps": (0..CALLS).map(call).collect::<Vec<_>>() }).to_string()
}

fn waits() -> String {
    script(&json!({ "key": "m", "model": "be brief" }))
}

fn calls(tool: &str, arguments: &Value) -> String {
    script(&json!({ "key": "t", "tool": tool, "args": arguments }))
}

/// Opens a chat and says something in it. A host that dies over that has taken it.
async fn chat(host: &Host, words: &str) -> String {
    let opened = host.post("/api/agents/puppet/sessions", &json!({})).await;
    let agent = opened.text("agent_id");
    let session = format!("/api/agents/{agent}/sessions/{}", opened.text("session_id"));
    let path = format!("{session}/messages");
    let _ = host
        .post(&path, &json!({ "content": words }))
        .attempt()
        .await;
    session
}

/// The last words of a chat, once it is at rest.
async fn answered(host: &Host, session: &str) -> String {
    let patience = Instant::now() + ALL_ANSWERED;
    loop {
        let seen = host.get(session).await.body;
        if seen["quarantined"].is_null() {
            return idle_within(host, session, ALL_ANSWERED).await["messages"].to_string();
        }
        assert!(Instant::now() < patience, "it still waits: {seen}");
        sleep(Duration::from_millis(50)).await;
    }
}

async fn dead_letters(host: &Host) -> Value {
    host.get("/api/dead-letters").await.body["dead_letters"].clone()
}

/// Kills from outside blame no turn that waits for its model, however many there are in a row.
#[tokio::test(flavor = "multi_thread")]
async fn chats_with_slow_models_are_all_answered_however_often_the_host_is_killed() {
    let (chats, kills) = if is_whole() { (50, 10) } else { (20, 4) };
    let folder = folder().await;
    let mut host = folder.serve().await;
    let mut sessions = Vec::new();
    for _ in 0..chats {
        sessions.push(chat(&host, &waits()).await);
    }
    for _ in 0..kills {
        sleep(Duration::from_millis(fastrand::u64(1_000..3_500))).await;
        host.kill().await;
        host = folder.serve().await;
    }
    for session in &sessions {
        let seen = answered(&host, session).await;
        tells(&seen, &["hello from the model"]);
    }
    assert_eq!(dead_letters(&host).await, json!([]));
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// One chat whose call ends the process each time it is made, beside chats that wait and chats that
/// compute.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_turn_that_ends_the_process_each_time_is_given_up() {
    let (waiting, computing) = if is_whole() { (25, 25) } else { (6, 6) };
    let folder = folder().await;
    let deadly = Some((PERFORMING_DIES_ON, "deadly"));
    let mut host = folder.start_in(&[], deadly).await.unwrap();
    let mut others = Vec::new();
    for _ in 0..waiting {
        others.push(chat(&host, &waits()).await);
    }
    for _ in 0..computing {
        others.push(chat(&host, &computes()).await);
    }
    let guilty = chat(&host, &calls("idle", &json!({ "deadly": true }))).await;
    // The first call is behind those of the others, however long they take.
    let mut patience = ALL_ANSWERED;
    let mut ends = 0;
    loop {
        if host.died(patience).await.is_none() {
            break;
        }
        patience = LIVES;
        ends += 1;
        host = loop {
            match folder.start_in(&[], deadly).await {
                Ok(host) => break host,
                Err(_) => ends += 1,
            }
        };
        assert!(ends < 20, "it is not found: {}", folder.log());
    }
    // Five for the one that is suspected alone, and one for each halving of those that computed.
    let halvings = u32::BITS - u32::leading_zeros(computing);
    assert!((5..=5 + halvings).contains(&ends), "{ends} ends");
    for session in &others {
        let seen = answered(&host, session).await;
        let is_answered = seen.contains("hello from the model") || seen.contains("t4 failed");
        assert!(is_answered, "{seen}");
    }
    let ended = host.story(&guilty, "run.ended.v1").await;
    assert_eq!(ended[0]["code"], "host-failed", "{ended:?}");
    let dead = dead_letters(&host).await;
    assert_eq!(dead.as_array().map(Vec::len), Some(1), "{dead}");
    folder.over(host).await;
}

/// A suspect waits where its user and the operator see it, and goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_suspect_waits_in_quarantine_and_goes_on_by_itself_while_others_are_served() {
    let folder = folder().await;
    let deadly = Some((PERFORMING_DIES_ON, "deadly"));
    let mut host = folder.start_in(&[], deadly).await.unwrap();
    let session = chat(&host, &calls("idle", &json!({ "deadly": true }))).await;
    host.died(PATIENCE).await.expect("an end over its call");
    host = folder.start_in(&[], deadly).await.unwrap();
    host.died(PATIENCE).await.expect("another end");
    host = folder.serve().await;
    let why = quarantined(&host, &session).await;
    assert_eq!(why["why"], "suspected", "{why}");
    let said = why["reason"].as_str().unwrap();
    tells(&said, &["goes on by itself"]);
    let other = chat(&host, &calls("idle", &json!({}))).await;
    assert!(answered(&host, &other).await.contains("t parts"));
    assert!(answered(&host, &session).await.contains("t parts"));
    let list = host.get("/api/quarantine").await.body["quarantined"].clone();
    assert_eq!(list, json!([]));
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// The sessions that the last process computed for are known to the next until it has noted them.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_killed_before_it_notes_whom_it_suspects_forgets_no_suspicion() {
    let folder = folder().await;
    let deadly = Some((PERFORMING_DIES_ON, "deadly"));
    let mut host = folder.start_in(&[], deadly).await.unwrap();
    let session = chat(&host, &calls("idle", &json!({ "deadly": true }))).await;
    host.died(PATIENCE).await.expect("an end over its call");
    host = folder.start_in(&[], deadly).await.unwrap();
    host.died(PATIENCE).await.expect("another end");
    let killed = folder.start(Some("broker.suspicions.before:1")).await;
    assert!(killed.is_err(), "it dies as it starts");
    host = folder.serve().await;
    let why = quarantined(&host, &session).await;
    assert_eq!(why["why"], "suspected", "{why}");
    assert!(answered(&host, &session).await.contains("t parts"));
    assert!(host.stop().await.success(), "{}", folder.log());
}
