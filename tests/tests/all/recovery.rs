//! The treatment of open operations at a restart, by effect class. Crashes of the whole process are
//! in the crash matrix.

use agent_host_tests::patience::until;
use agent_host_tests::{Setup, World};
use broker::By;
use domain::event::{Event, OperationStarted};
use domain::id::Stream;
use domain::user::UserId;
use serde_json::json;
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
    let Some(Event::RunStepped(stepped)) = &events[1].event else {
        panic!("{:?}", events[1])
    };
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
        subject: events[1].subject,
        actor: "host".into(),
        causation: None,
        correlation: None,
        time: stepped.time,
        salt: domain::digest::Salt::default(),
    };
    let late = Commit::new().append(Stream::Run(run), Expected::Version(1), vec![stale]);
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
    world
        .say("puppet", good, r#"{"steps":[{"reply":"fine"}]}"#)
        .await;
    world.idle(good).await;
    assert_eq!(world.last_reply(good).await, "fine");
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
    world
        .say("puppet", bad, r#"{"steps":[{"reply":"still here"}]}"#)
        .await;
    world.idle(bad).await;
    assert_eq!(world.last_reply(bad).await, "still here");
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
async fn a_dead_letter_is_requeued_once_however_often_it_is_asked_for() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let input = world
        .say("puppet", session, r#"{"steps":[{"trap":"on purpose"}]}"#)
        .await
        .input;
    world.idle(session).await;
    let me = UserId::local();
    let letters = world.broker.dead_letters();
    let asked = [(); 3].map(|()| letters.requeue(By::from(&me), input, None));
    let done = futures::future::join_all(asked).await;
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1);
    assert!(
        done.iter()
            .flat_map(|done| done.as_ref().err())
            .all(|error| matches!(error, broker::Error::Refused(_)))
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
        .play_in(
            session,
            &json!([{ "until": "all", "start": start }, { "trap": "too late" }]),
        )
        .await;
    world.idle(session).await;
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
    world.say("puppet", session, "hello").await;
    world.idle(session).await;
    assert_eq!(
        world.last_reply(session).await,
        "hello from the model",
        "the new one took over"
    );
}
