//! Time that does not pass as a program would like: downtime, waiting for a place, and a wall clock
//! that jumps.

mod deadlines;
mod jumps;

use agent_host_tests::process::{Folder, Host, Session, puppet, puppets, tells};
use agent_host_tests::{Setup, World};
use domain::event::Event;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const HOUR_MS: i64 = 60 * 60_000;
/// More than all active time that a turn may have, in milliseconds.
const LONG_MS: i64 = 11 * 60_000;

/// A model that is slow to answer the message `slow`.
const SLOW: &str = r#"
[[rule]]
when = { user = "slow" }
reply = { text = "at last", firstDelayMs = 1500 }

[[rule]]
reply = { text = "at once" }
"#;

async fn started() -> (Folder, Host) {
    let folder = Folder::with_clock(puppets(&json!([puppet()])));
    std::fs::write(folder.path().join("script.toml"), SLOW).unwrap();
    folder.warm(&["puppet"]).await;
    let host = folder.serve().await;
    (folder, host)
}

/// Begins a chat with the puppet, which plays some steps; the path of its session.
async fn play(host: &Host, steps: &Value) -> Session {
    let session = host.open("puppet").await;
    host.play(&session, steps).await;
    session
}

async fn is_under_way(host: &Host, session: &str) {
    host.until(session, |seen| !seen["run_id"].is_null()).await;
}

/// Waits until a session has nothing to do, and returns what was said in it.
async fn said(host: &Host, session: &str) -> String {
    host.rest(session).await["messages"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn downtime_is_not_charged_to_a_model_call_that_was_open() {
    let (folder, host) = started().await;
    let session = play(
        &host,
        &json!([{ "start": [{ "key": "slow", "model": "x" }] }]),
    )
    .await;
    is_under_way(&host, &session).await;
    host.kill().await;
    folder.clock().shift(LONG_MS);
    let host = folder.serve().await;
    let said = said(&host, &session).await;
    assert!(
        said.contains("at last") && !said.contains("which is its limit"),
        "{said}"
    );
}

/// Has the puppet ask a model behind two slow calls of others, which have the only place for longer
/// than it may work.
async fn reported_behind_slow_calls(mut setup: Setup) -> Vec<String> {
    setup.script = SLOW.to_owned();
    setup.definitions[0]["limits"] = json!({ "activeMsMax": 1_000 });
    let world = World::new(setup).await;
    let slow: Vec<_> = futures::future::join_all((0..2).map(|_| world.open("other"))).await;
    for session in &slow {
        world
            .say(
                "other",
                *session,
                &json!({ "steps": [{ "start": [{ "key": "slow", "model": "x" }] }] }).to_string(),
            )
            .await;
        world.until(*session, |row| row.open_run.is_some()).await;
    }
    world
        .play(json!([{ "start": [{ "key": "m", "model": "x" }] }]))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_models_place_is_no_active_time() {
    let mut setup = Setup::default();
    setup.limits.model_calls_max = 1;
    assert_eq!(
        reported_behind_slow_calls(setup).await,
        ["m message at once"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_place_at_a_provider_is_no_active_time() {
    let setup = Setup {
        concurrent_max: Some(1),
        ..Setup::default()
    };
    assert_eq!(
        reported_behind_slow_calls(setup).await,
        ["m message at once"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn active_time_is_recorded_with_what_the_work_came_to() {
    let world = World::new(Setup::default()).await;
    let call = |key: &str| json!({ "key": key, "tool": "look", "args": { "sleep": 200 } });
    world
        .play(json!([
            { "until": "all", "start": [call("a"), call("b")] },
            { "start": [{ "key": "t", "timer": 50 }] },
        ]))
        .await;
    let events = world.events().await;
    let settled = events.into_iter().filter_map(|event| match event {
        Event::RunStepped(stepped) => Some(stepped.settled),
        Event::RunSettled(settled) => Some(settled.settled),
        _ => None,
    });
    let recorded: Vec<(bool, u64)> = settled
        .flatten()
        .map(|settled| (settled.usage.is_some(), settled.active_ms))
        .collect();
    let of = |tools: bool| {
        recorded
            .iter()
            .filter(|(tool, _)| *tool == tools)
            .map(|(_, ms)| *ms)
            .collect::<Vec<u64>>()
    };
    assert_eq!(of(true).len(), 2, "{recorded:?}");
    assert!(of(true).iter().sum::<u64>() >= 200, "{recorded:?}");
    assert_eq!(of(false), [0], "a timer is nobody's work: {recorded:?}");
}

/// A setup whose agent's turns may come no further for a second.
fn hasty() -> Setup {
    let mut setup = Setup::default();
    setup.definitions[0]["messageTimeout"] = json!(1);
    setup
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_says_nothing_has_its_own_time_whatever_its_turn_may_rest() {
    let world = World::new(hasty()).await;
    let call = json!({ "key": "t", "tool": "look", "args": { "sleep": 2_500 } });
    let reported = world.play(json!([{ "start": [call] }])).await;
    assert_eq!(reported, ["t parts look done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_waits_for_a_persons_answer_for_longer_than_it_may_rest() {
    let mut setup = hasty();
    setup.definitions[0]["confirm"] = json!(["put"]);
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    let call =
        |key: &str, tool: &str| json!({ "key": key, "tool": tool, "args": { "sleep": 300 } });
    // The clock runs first, and stops with the call that needs no answer.
    let start = [call("looked", "look"), call("agreed", "put")];
    let steps = json!([{ "until": "all", "start": start }]);
    world.play_in(session, &steps).await;
    let (question, action) = world.question("puppet", session).await;
    sleep(Duration::from_millis(2_500)).await;
    let answer = json!({ "approve": true, "call": action.props["call"] });
    world.answer("puppet", question, answer).await.unwrap();
    world.idle(session).await;
    let reported = world.last_reply(session).await;
    tells(
        &reported,
        &["looked parts look done", "agreed parts put done"],
    );
}
