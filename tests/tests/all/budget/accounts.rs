//! The account of a message. Everything that the message began draws on it, however late it comes,
//! and begins so many turns and no more.

use super::{dispatch, limited, tokens_of};
use agent_host_tests::patience::found;
use agent_host_tests::process::tells;
use agent_host_tests::{Setup, World};
use domain::event::{Event, Source};
use domain::id::SessionId;
use domain::operation::Performer;
use serde_json::{Value, json};

/// A puppet that plays this at any message, under these limits. The limit on hops is out of the
/// way.
fn playing(steps: &Value, limits: Value) -> Setup {
    let mut setup = Setup::default();
    setup.limits.dispatch.hops_max = 1_000;
    setup.definitions[0]["settings"] = json!({ "script": { "steps": steps } });
    setup.definitions[0]["limits"] = limits;
    setup
}

/// Two workers that go on by themselves, and reply what is no script.
fn two_workers() -> Value {
    let said = json!({ "steps": [{ "reply": "done" }] }).to_string();
    let worker =
        |key: &str| json!({ "key": key, "agent": "other", "text": said, "detached": true });
    json!([{ "until": "all", "start": [worker("a"), worker("b")] }])
}

/// Counts the calls that were made in a session.
async fn calls_in(world: &World, session: SessionId) -> usize {
    let runs: Vec<_> = world
        .starts()
        .await
        .into_iter()
        .filter(|start| start.session == session)
        .map(|start| start.run)
        .collect();
    let started = world
        .events()
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::RunStepped(stepped) if runs.contains(&stepped.run) => Some(stepped.started),
            _ => None,
        });
    started
        .flatten()
        .filter(|operation| matches!(operation.performer, Performer::Detached { .. }))
        .count()
}

async fn heard(world: &World, session: SessionId) -> String {
    world
        .messages(session)
        .await
        .iter()
        .map(|message| message.text() + "\n")
        .collect()
}

/// Late replies draw on the account of the message that began it all, also after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn late_replies_draw_on_the_first_messages_account_also_after_a_restart() {
    let mut world = World::new(playing(&two_workers(), json!({ "toolCallsMax": 7 }))).await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    world.until(session, |row| row.revision >= 1).await;
    world = world.restart(|_| ()).await;
    world.quiet().await;
    assert_eq!(calls_in(&world, session).await, 7, "of all turns together");
    let text = heard(&world, session).await;
    tells(
        &text,
        &[
            "failed limit-reached: no calls are left of",
            "(toolCallsMax)",
        ],
    );
    assert!(
        limited(&world)
            .await
            .iter()
            .all(|limit| limit == "agents.call toolCallsMax"),
        "{:?}",
        limited(&world).await
    );
    let late = world
        .starts()
        .await
        .into_iter()
        .filter(|start| start.session == session && !start.accounts.is_empty());
    let left: Vec<u32> = late.map(|start| start.limits.tool_calls_max).collect();
    assert!(
        !left.is_empty() && left.is_sorted_by(|before, after| before >= after),
        "what is left only shrinks: {left:?}"
    );
    // A user's message begins anew.
    assert_eq!(
        world
            .turn(
                "puppet",
                session,
                r#"{"steps":[{"start":[{"key":"w","tool":"who"}]}]}"#
            )
            .await,
        "w parts local"
    );
}

/// Reminders draw on the account of the message that began it all, and it begins only so many
/// turns.
#[tokio::test(flavor = "multi_thread")]
async fn reminders_draw_on_the_first_messages_account_which_begins_so_many_turns() {
    let again = json!([
        { "start": [{ "key": "q", "model": "be brief" }] },
        { "effects": [{ "schedule": 1 }], "reply": "again" },
    ]);
    let mut setup = playing(&again, json!({ "tokensMax": 9_000 }));
    setup.limits.dispatch.runs_per_message_max = 9;
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    // Every turn is shown all that was said before: before long its prompt is more than what the
    // turns before it have left.
    world.say("puppet", session, &"begin ".repeat(400)).await;
    world.quiet().await;
    assert_eq!(world.starts().await.len(), 9);
    let used = tokens_of(&world, session).await;
    assert!(used > 0 && used <= 9_000, "{used} of all turns together");
    let limits: Vec<u64> = world
        .starts()
        .await
        .iter()
        .map(|start| start.limits.tokens_max)
        .collect();
    assert!(
        limits.is_sorted_by(|before, after| before >= after) && limits[8] < 9_000,
        "what is left only shrinks: {limits:?}"
    );
    let dead = world.broker.dead_letters().list(10).await.unwrap();
    let [letter] = dead.as_slice() else {
        panic!("{dead:?}")
    };
    assert_eq!(
        letter.dead.reason,
        "one message began 9 turns with all that came of it, and may begin no more \
         (runsPerMessageMax)"
    );
    assert!(matches!(letter.accepted.source, Source::Reminder { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fan_out_that_reacts_to_every_late_reply_begins_so_many_turns_in_all() {
    let mut setup = playing(&two_workers(), json!({}));
    setup.limits.dispatch.runs_per_message_max = 8;
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    world.quiet().await;
    let begun = world.starts().await.len();
    assert_eq!(begun, 8);
    let refused = limited(&world)
        .await
        .iter()
        .any(|limit| limit.contains("runsPerMessageMax"));
    let letters = world.broker.dead_letters().list(100).await.unwrap();
    let buried = letters
        .iter()
        .any(|letter| letter.dead.reason.contains("(runsPerMessageMax)"));
    assert!(refused || buried, "somebody is told: {letters:?}");
    // Another message begins as many.
    world.say("puppet", session, "begin").await;
    world.quiet().await;
    assert_eq!(world.starts().await.len(), 16);
}

/// A named budget holds for all that comes of the work and not only for its first turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_named_budget_holds_for_all_that_comes_of_the_work_after_its_first_turn_too() {
    let mut setup = playing(&json!([{ "reply": "unused" }]), json!({}));
    setup.limits.dispatch.call_depth_max = 2;
    setup.definitions[1]["settings"] = json!({ "script": { "steps": two_workers() } });
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    let nothing = json!("begin");
    let steps = json!([
        { "start": [dispatch("d", &nothing, &json!({ "calls": 5 }))] }, { "reply": "over" },
    ]);
    world.play_in(session, &steps).await;
    world.quiet().await;
    let starts = world.starts().await;
    let worker = starts
        .iter()
        .find(|start| start.limits.tool_calls_max == 5)
        .unwrap();
    assert_eq!(
        calls_in(&world, worker.session).await,
        5,
        "of its turns together"
    );
    let later = starts
        .iter()
        .filter(|start| start.session == worker.session && start.run != worker.run);
    let kept: Vec<bool> = later
        .map(|start| start.limits.tool_calls_max <= 3 && start.deadline == worker.deadline)
        .collect();
    assert!(
        !kept.is_empty() && kept.iter().all(|kept| *kept),
        "neither calls nor time come back: {starts:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_that_draw_on_an_account_at_the_same_time_come_to_no_more_than_it_has() {
    // Each worker may call as often as it has a share, and all of them together as often as is
    // left.
    let calls: Vec<Value> = (0..9)
        .map(|n| json!({ "key": format!("w{n}"), "tool": "who" }))
        .collect();
    let busy = json!({ "steps": [{ "until": "all", "start": calls }] });
    let workers: Vec<Value> = (0..5)
        .map(|n| dispatch(&format!("d{n}"), &busy, &json!({ "calls": 4 })))
        .collect();
    let mut setup = playing(&json!([]), json!({ "toolCallsMax": 17 }));
    setup.definitions[1]["limits"] = json!({ "toolCallsMax": 100 });
    let world = World::new(setup).await;
    world
        .play(json!([{ "until": "all", "start": workers }]))
        .await;
    world.quiet().await;
    let made = world
        .steps()
        .await
        .into_iter()
        .map(|stepped| stepped.started);
    let made = made
        .flatten()
        .filter(|operation| domain::account::is_call(&operation.performer))
        .count();
    assert!((10..=17).contains(&made), "{made} calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_reply_to_a_session_in_which_too_many_wait_is_a_dead_letter_that_says_so() {
    let (world, session) = World::with_puppet().await;
    let slow =
        json!({ "steps": [{ "start": [{ "key": "t", "timer": 9_000 }] }, { "reply": "late" }] });
    let detached =
        json!({ "key": "d", "agent": "other", "text": slow.to_string(), "detached": true });
    let steps = json!({
        "steps": [{ "until": "all", "start": [detached, { "key": "t", "timer": 3_600_000 }] }],
    });
    world.say("puppet", session, &steps.to_string()).await;
    world.until(session, |row| row.open_run.is_some()).await;
    let words = (0..500).map(|_| world.say("puppet", session, r#"{"steps":[{"reply":"heard"}]}"#));
    futures::future::join_all(words).await;
    let letter = found(async || world.broker.dead_letters().list(10).await.unwrap().pop()).await;
    assert!(
        matches!(letter.accepted.source, Source::LateReply { .. })
            && letter.accepted.session == session
    );
    assert_eq!(
        letter.dead.reason,
        "500 inputs wait in the session, and with 500 it takes no late reply"
    );
}
