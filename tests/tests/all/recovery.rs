//! The treatment of open operations at a restart, by effect class. Crashes of the whole process are
//! in the crash matrix.
//!
//! The causes that models and operators hear of a call that must not be repeated: the one that
//! there was, and none that there was not.

use super::exhaustion::config;
use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, PATIENCE};
use agent_host_tests::{Setup, World};
use broker::By;
use domain::event::{Event, OperationStarted};
use domain::id::Stream;
use domain::user::UserId;
use serde_json::{Value, json};
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;
use store::{Commit, Expected};

/// Begins a turn with one long call of a tool, and restarts the host in the middle of it.
async fn interrupted(tool: &str) -> (World, domain::id::SessionId) {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let steps =
        json!({ "steps": [{ "start": [{ "key": "t", "tool": tool, "args": { "sleep": 700 } }] }] });
    world.say("puppet", session, &steps.to_string()).await;
    until(async || !world.effects().is_empty()).await;
    (world.restart(|_| ()).await, session)
}

fn begins(world: &World) -> Vec<String> {
    world
        .effects()
        .iter()
        .filter(|line| line.contains(" begin "))
        .cloned()
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotent_call_is_made_again_under_the_same_key() {
    let (world, session) = interrupted("put").await;
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "t parts put done");
    let begins = begins(&world);
    assert_eq!(begins.len(), 2, "{begins:?}");
    assert_eq!(begins[0], begins[1], "the same key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_non_idempotent_call_that_was_sent_is_unknown_and_not_made_again() {
    let (world, session) = interrupted("send").await;
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "t unknown");
    assert_eq!(begins(&world).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_that_came_due_while_the_host_was_down_fires_at_once() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "t", "timer": 300 }] }]),
        )
        .await;
    world.until(session, |row| row.open_run.is_some()).await;
    let world = world
        .restart(|_| std::thread::sleep(Duration::from_millis(400)))
        .await;
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "t elapsed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_writer_of_a_run_is_fenced_off() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]),
        )
        .await;
    let run = world
        .until(session, |row| row.open_run.is_some())
        .await
        .open_run
        .unwrap();
    let events = world.store().stream(Stream::Run(run), 0, 10).await.unwrap();
    let [start] = &events[..] else {
        panic!("{events:?}")
    };
    let stepped = start.event.as_ref().unwrap().step().unwrap();
    let operation = stepped.started[0].id;
    let started = Event::OperationStarted(OperationStarted {
        run,
        operation,
        segment: 0,
        effect: None,
        time: stepped.time,
    });
    let stale = domain::event::NewEvent {
        id: domain::id::EventId(uuid::Uuid::now_v7()),
        event: started,
        subject: start.subject,
        actor: "host".into(),
        causation: None,
        correlation: None,
        time: stepped.time,
        salt: domain::digest::Salt::default(),
    };
    let late = Commit::new().append(Stream::Run(run), Expected::Version(0), vec![stale]);
    assert!(matches!(
        world.store().commit(late).await,
        Err(store::CommitError::Conflict(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_always_traps_makes_a_dead_letter_and_nobody_else_suffers() {
    let world = World::new(Setup::default()).await;
    let bad = world.open("puppet").await;
    let good = world.open("puppet").await;
    let input = world
        .say("puppet", bad, r#"{"steps":[{"trap":"on purpose"}]}"#)
        .await
        .input;
    assert_eq!(
        world
            .turn("puppet", good, r#"{"steps":[{"reply":"fine"}]}"#)
            .await,
        "fine"
    );
    world.idle(bad).await;
    let dead = world.broker.dead_letters().list(10).await.unwrap();
    assert_eq!(
        dead.iter()
            .map(|letter| letter.accepted.input)
            .collect::<Vec<_>>(),
        [input]
    );
    assert!(
        dead[0].dead.reason.contains("on purpose"),
        "{}",
        dead[0].dead.reason
    );
    // The session goes on, and the letter can have another chance.
    assert_eq!(
        world
            .turn("puppet", bad, r#"{"steps":[{"reply":"still here"}]}"#)
            .await,
        "still here"
    );
    let me = UserId::local();
    let again = world
        .broker
        .dead_letters()
        .requeue(By::from(&me), input, None)
        .await;
    again.unwrap();
    world.idle(bad).await;
    assert_eq!(
        world.broker.dead_letters().list(10).await.unwrap().len(),
        1,
        "it died again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_of_a_session_that_has_ended_stays_one() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let input = world
        .say("puppet", session, r#"{"steps":[{"trap":"on purpose"}]}"#)
        .await
        .input;
    world.idle(session).await;
    let data = world.dir.path().join("data/store.db");
    let close = format!(
        "UPDATE sessions SET status = 'terminated' WHERE id = x'{}'",
        session.0.simple()
    );
    let world = world
        .restart(|_| {
            rusqlite::Connection::open(data)
                .unwrap()
                .execute_batch(&close)
                .unwrap()
        })
        .await;
    let me = UserId::local();
    let again = world
        .broker
        .dead_letters()
        .requeue(By::from(&me), input, None)
        .await;
    let refused = again.unwrap_err();
    assert!(
        matches!(&refused, broker::Error::Refused(refusal) if refusal.code == "SESSION_CLOSED"),
        "{refused:?}"
    );
    assert_eq!(world.broker.dead_letters().list(10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_state_is_gone_fails_its_turn_and_does_not_begin_from_nothing() {
    let world = World::new(Setup::default()).await;
    let session = world.open_as("tutor", Some("learning")).await;
    let (first, _) = world.question("tutor", session).await;
    world
        .answer("tutor", first, json!({ "index": 0 }))
        .await
        .unwrap();
    let second = loop {
        let (call, _) = world.question("tutor", session).await;
        if call != first {
            break call;
        }
    };
    let data = world.dir.path().join("data/store.db");
    let forget = "DELETE FROM blobs WHERE \
                  digest IN (SELECT digest FROM blob_references WHERE shown = 0) \
                  AND bytes LIKE '%\"correct\"%'";
    let world = world
        .restart(|_| {
            assert!(
                rusqlite::Connection::open(data)
                    .unwrap()
                    .execute(forget, [])
                    .unwrap()
                    > 0
            )
        })
        .await;
    world
        .answer("tutor", second, json!({ "index": 0 }))
        .await
        .unwrap();
    world.until(session, |row| row.open_run.is_none()).await;
    let reported = world.last_reply(session).await;
    assert!(
        reported.starts_with("The turn failed: the session's state is missing"),
        "{reported}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_definition_was_removed_ends_and_its_slot_is_free() {
    let world = World::new(Setup::default()).await;
    let session = world.open_as("tutor", Some("learning")).await;
    world.question("tutor", session).await;
    let world = world
        .restart(|setup| {
            setup
                .definitions
                .retain(|definition| definition["agentId"] != "tutor")
        })
        .await;
    let row = world.until(session, |row| row.open_run.is_none()).await;
    assert_eq!(row.status, store::SessionStatus::Terminated);
    assert_eq!(
        world.last_reply(session).await,
        "The turn failed: the definition `tutor` is no longer configured"
    );
    assert_eq!(
        world
            .store()
            .agent(row.agent)
            .await
            .unwrap()
            .unwrap()
            .agent
            .active_session,
        None
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_after_three_calls_repeats_none_of_them() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let start: Vec<_> = (0..3)
        .map(|n| json!({ "key": format!("t{n}"), "tool": "send" }))
        .collect();
    world
        .played(
            session,
            &json!([{ "until": "all", "start": start }, { "trap": "too late" }]),
        )
        .await;
    assert!(
        world
            .last_reply(session)
            .await
            .starts_with("The turn failed: trapped: "),
        "{}",
        world.last_reply(session).await
    );
    assert_eq!(
        begins(&world).len(),
        3,
        "the step was tried again, its operations were not"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_ends_on_the_version_that_wrote_its_memo_and_the_next_one_takes_the_new() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    world
        .play_in(
            session,
            &json!([{ "start": [{ "key": "t", "timer": 300 }] }]),
        )
        .await;
    world.until(session, |row| row.open_run.is_some()).await;
    // The operator replaces the component by one that cannot read the memo, and removes the old one
    // altogether.
    let world = world
        .restart(|setup| {
            setup.components.retain(|name| *name != "puppet");
            setup.definitions.truncate(1);
            setup.definitions[0]["component"] = json!("assistant");
        })
        .await;
    world.idle(session).await;
    assert_eq!(
        world.last_reply(session).await,
        "t elapsed",
        "the old version ended its turn"
    );
    assert_eq!(
        world.turn("puppet", session, "hello").await,
        "hello from the model",
        "the new one took over"
    );
}

/// A turn with one call of the tool that must not run twice. Returns its outcome on record, and the
/// words that a model would read of it.
async fn called(host: &Host, arguments: Value) -> Value {
    let session = host.open("puppet").await;
    let call = json!({ "key": "s", "tool": "send", "args": arguments });
    host.play(&session, &json!([{ "start": [call] }, { "reply": "done" }]))
        .await;
    host.rest(&session).await;
    let events = host.events("").await;
    let mut settled = events
        .iter()
        .filter_map(|event| event["data"]["settled"].as_array()?.first());
    settled.next_back().expect("an outcome").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cut_a_call_off_is_told_and_no_stop_of_the_host_is_made_up() {
    let mut config = config();
    config["components"]["effects"]["limits"] = json!({ "wallMsMax": 300 });
    let (folder, host) = Folder::serving(config, &["puppet", "effects"]).await;

    let slow = called(&host, json!({ "sleep": 5_000 })).await;
    assert_eq!(slow["outcome"], "unknown", "{slow}");
    assert_eq!(slow["cause"]["code"], "timed-out", "{slow}");
    assert!(!slow.to_string().contains("the host"), "{slow}");

    let files = folder.path().join("files");
    std::fs::remove_dir_all(&files).unwrap();
    let gone = called(&host, json!({})).await;
    assert_eq!(gone["outcome"], "failed", "nothing of it ran: {gone}");
    assert_eq!(gone["failure"]["code"], "tool-failed", "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_computes_too_long_or_crashes_is_unknown_with_that_cause() {
    let mut config = config();
    config["components"]["effects"]["limits"] = json!({ "cpuMsMax": 200 });
    let (folder, host) = Folder::serving(config, &["puppet", "effects"]).await;
    for (arguments, cause) in [("spin", "out-of-cpu"), ("panic", "trapped")] {
        let ended = called(&host, json!({ arguments: true })).await;
        assert_eq!(ended["outcome"], "unknown", "{ended}");
        assert_eq!(ended["cause"]["code"], cause, "{ended}");
    }

    // The ledger of those calls, and a new key, are not lost without a word.
    for words in [
        &["audit", "--json"][..],
        &["status"],
        &["key", "create", "--scopes", "read"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = folder.program(words);
        let reported = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let reported = tokio::time::timeout(PATIENCE, reported.wait_with_output()).await;
        let reported = reported.expect("an end in time").unwrap();
        let why = String::from_utf8_lossy(&reported.stderr);
        assert_eq!(reported.status.code(), Some(1), "{words:?}: {why}");
        assert!(why.contains("No space left on device"), "{words:?}: {why}");
    }
    assert!(host.stop().await.success());
}
