//! The host after a panic. Everything is left: nothing stands still, nothing acknowledged is lost,
//! and nothing that must not happen twice does.
use agent_host_tests::process::{Folder, Host, PATIENCE, effects, puppet, scripted};
use futures::stream::{self, StreamExt};
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
