//! Work that agents hand over: to workers of their own and to agents that are there, with budgets
//! and early replies.

use super::{
    call, deep, dispatch, heard, later, message, message_with, other_than, outcome, result, says,
    start,
};
use agent_host_tests::patience::until;
use agent_host_tests::process::script;
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::By;
use domain::event::Event;
use domain::turn::TurnEnd;
use domain::user::UserId;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_to_the_caller_lets_it_go_on_while_the_turn_goes_on() {
    let world = World::new(Setup::default()).await;
    let steps = json!([
        { "start": [call("r", "reply_to_caller", &json!({ "content": "early" }))] },
        { "start": [{ "key": "t", "timer": 900 }] },
        { "start": [call("s", "reply_to_caller", &json!({ "content": "more" }))] },
        { "reply": "the end" },
    ]);
    let session = world.open("puppet").await;
    let handed = json!({ "key": "d", "agent": "other", "text": script(&steps) });
    world.play_in(session, &start(&[handed])).await;
    world.until(session, |row| row.revision >= 1).await;
    assert_eq!(world.last_reply(session).await, "d parts early");
    let child = other_than(&world, session).await;
    assert!(world.row(child).await.open_run.is_some(), "it goes on");
    world.quiet().await;
    let ends: Vec<TurnEnd> = world
        .events_that(|event| match event {
            Event::RunEnded(ended) if ended.session == child => Some(ended.end),
            _ => None,
        })
        .await;
    assert_eq!(ends, [TurnEnd::Replied], "nobody cancelled it");
    let text = heard(&world, session).await;
    assert!(
        text.contains("\nmore\n"),
        "a second reply comes as a message: {text}"
    );
    assert!(
        !text.contains("\nthe end"),
        "and the end of the turn says nothing more: {text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_to_a_worker_of_ones_own_or_to_an_agent_that_is_there() {
    let world = World::new(Setup::default()).await;
    let there = world.open("other").await;
    let lines = world
        .play(start(&[
            dispatch("worker", "other", &says("made")),
            dispatch("path", "/local/agent/other", &says("there")),
            call(
                "later",
                "dispatch_to_agent",
                &json!({ "target": "other", "content": later("much later") }),
            ),
        ]))
        .await;
    assert_eq!(
        (outcome(&lines, "worker"), outcome(&lines, "path")),
        ("parts made", "parts there")
    );
    assert!(
        outcome(&lines, "later").starts_with("parts Started as task"),
        "{lines:?}"
    );
    assert!(
        heard(&world, there).await.ends_with("there\n"),
        "it was done in the latest session of that agent"
    );
    world.quiet().await;
    let starts = world.starts().await;
    let depths: Vec<(u32, u32)> = starts
        .iter()
        .skip(1)
        .map(|start| (start.depth, start.spawn_depth))
        .collect();
    assert_eq!(
        depths.iter().filter(|depth| **depth == (1, 0)).count(),
        2,
        "two calls: {depths:?}"
    );
    assert_eq!(
        depths.iter().filter(|depth| **depth == (0, 1)).count(),
        1,
        "one spawn: {depths:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_turn_cancels_the_work_that_it_waits_for_all_the_way_down() {
    let world = World::new(deep(3)).await;
    let long = script(&json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]));
    let below = |text: &str| {
        script(&start(&[
            json!({ "key": "d", "agent": "other", "text": text }),
        ]))
    };
    let session = world.open("puppet").await;
    world.say("puppet", session, &below(&below(&long))).await;
    until(async || world.starts().await.len() >= 3).await;
    assert!(world.cancel("puppet", session).await);
    world.quiet().await;
    let aborted =
        world.events().await.into_iter().filter(
            |event| matches!(event, Event::RunEnded(ended) if ended.end == TurnEnd::Aborted),
        );
    assert_eq!(aborted.count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_what_is_named_of_what_is_left_and_shrinks_along_the_chain() {
    let world = World::new(deep(3)).await;
    let named = |key: &str, text: &str, budget: Value| {
        call(
            key,
            "dispatch_to_agent",
            &json!({ "target": "other", "content": text, "wait": true, "budget": budget }),
        )
    };
    let inner = script(&start(&[named(
        "i",
        &says("inner"),
        json!({ "tokens": 900_000, "calls": 50, "wall_s": 3_000 }),
    )]));
    let lines = world
        .play(json!([
            {
                "until": "all",
                "start": [
                    named("a", &inner, json!({ "tokens": 400_000, "calls": 7, "wall_s": 60 })),
                    named("b", &says("b"), json!({})),
                ],
            },
            {
                "until": "all",
                "start": [
                    call("c", "dispatch_to_agent", &json!({
                        "target": "other", "content": later("c"), "budget": { "tokens": 1_000 },
                    })),
                ],
            },
            { "until": "all", "start": [named("e", &says("e"), json!({}))] },
        ]))
        .await;
    assert!(outcome(&lines, "a").contains("inner"), "{lines:?}");
    world.quiet().await;
    let starts = world.starts().await;
    let limits: Vec<(u64, u32)> = starts
        .iter()
        .map(|start| (start.limits.tokens_max, start.limits.tool_calls_max))
        .collect();
    assert!(limits.contains(&(400_000, 7)), "as it is named: {limits:?}");
    assert!(
        limits.contains(&(400_000, 6)),
        "never more than the caller's: {limits:?}"
    );
    assert!(
        limits.contains(&(300_000, 45)),
        "half of what is left where nothing is named, and what is set aside is not: {limits:?}"
    );
    assert!(limits.contains(&(1_000, 48)), "{limits:?}");
    // The others have ended and used no tokens; nobody hears what a worker that goes on by itself
    // uses, so it is charged its budget.
    assert!(limits.contains(&(499_500, 23)), "{limits:?}");
    let outer = starts
        .iter()
        .find(|start| start.limits.tool_calls_max == 7)
        .unwrap();
    let inner = starts
        .iter()
        .find(|start| start.limits.tool_calls_max == 6)
        .unwrap();
    assert!(
        inner.deadline.unwrap() <= outer.deadline.unwrap(),
        "neither has it more time"
    );
    assert!(outer.deadline.unwrap() <= outer.time.plus_ms(60_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_handed_over_counts_against_the_turn_that_handed_it_over() {
    let world = World::new(Setup::default()).await;
    let thinks = script(
        &json!([{ "start": [{ "key": "q", "model": "be brief" }] }, { "reply": "thought" }]),
    );
    let wait = |key: &str, text: &str| dispatch(key, "other", text);
    world
        .play(json!([{ "start": [wait("a", &thinks)] }, { "start": [wait("b", &says("b"))] }]))
        .await;
    let starts = world.starts().await;
    let used: u64 = world
        .events()
        .await
        .iter()
        .filter_map(|event| match event {
            Event::TurnCommitted(committed) if committed.session == starts[1].session => {
                Some(committed.turn.usage.total())
            }
            _ => None,
        })
        .sum();
    assert!(used > 0);
    assert_eq!(
        starts[2].limits.tokens_max,
        (1_000_000 - used) / 2,
        "half of what the first has left of all"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_work_that_no_turn_will_begin_with_is_told_at_once() {
    let world = World::new(Setup::default()).await;
    let busy = world.open("other").await;
    let long = json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]);
    world.say("other", busy, &script(&long)).await;
    world.until(busy, |row| row.open_run.is_some()).await;
    let session = world.open("puppet").await;
    let latest = message_with("other", &says("never"), json!({ "session": "latest" }));
    let path = world.agent("other").await.row.agent.path;
    let waits = dispatch("w", path.as_str(), &says("never"));
    world
        .play_in(
            session,
            &json!([{ "until": "all", "start": [latest, waits] }]),
        )
        .await;
    world.until(busy, |row| row.waiting > 1).await;
    world
        .broker
        .agents()
        .archive(
            By::from(&UserId::local()),
            &target("other"),
            "gone".to_owned(),
        )
        .await
        .unwrap();
    world.idle(session).await;
    let reply: Vec<String> = world.report(session).await;
    assert!(
        outcome(&reply, "m").starts_with("failed agent-message-failed: ")
            && outcome(&reply, "m").contains("archived"),
        "{reply:?}"
    );
    assert!(outcome(&reply, "w").contains("archived"), "{reply:?}");
    let dead = world.broker.dead_letters().list(100).await.unwrap();
    assert!(
        dead.iter().any(
            |letter| letter.accepted.session == busy && letter.dead.reason.contains("archived")
        ),
        "{dead:?}"
    );
    // Its caller has the outcome: it is not begun again unnoticed.
    let me = UserId::local();
    let mut refused = Vec::new();
    for letter in dead {
        let again = world
            .broker
            .dead_letters()
            .requeue(By::from(&me), letter.accepted.input, None)
            .await;
        if let Err(broker::Error::Refused(refusal)) = again {
            refused.push(refusal.code.as_str());
        }
    }
    assert!(refused.contains(&"WORK_SETTLED"), "{refused:?}");
}

/// No agent has a tool that the operator switched off, whatever its lists say. A turn that began
/// with the tool is refused its calls.
#[tokio::test(flavor = "multi_thread")]
async fn tools_that_reach_agents_are_switched_off_by_the_configuration() {
    let mut setup = Setup {
        agent_tools_disabled: vec!["agents_*"],
        ..Setup::default()
    };
    setup.definitions[0]["toolAllowlist"] = json!(["*"]);
    let mut world = World::new(setup).await;
    let both = [
        message("m", "other", &says("never")),
        dispatch("d", "other", &says("made")),
    ];
    let lines = world.play(start(&both)).await;
    assert!(
        outcome(&lines, "m").starts_with("failed TOOL_NOT_AVAILABLE"),
        "{lines:?}"
    );
    assert_eq!(outcome(&lines, "d"), "parts made");
    // Switched on, it is there; and off again, in the middle of a turn, it is not.
    world
        .reload(|setup| setup.agent_tools_disabled.clear())
        .await;
    let lines = world
        .play(start(&[message("m", "other", &says("hello"))]))
        .await;
    assert_eq!(result(&lines, "m")["response"], json!("hello"));
    let session = world.open("puppet").await;
    let steps = json!([
        { "start": [{ "key": "t", "timer": 1_000 }] },
        { "start": [message("m", "other", &says("never"))] },
    ]);
    world.play_in(session, &steps).await;
    world.until(session, |row| row.open_run.is_some()).await;
    world
        .reload(|setup| setup.agent_tools_disabled = vec!["agents_message"])
        .await;
    world.idle(session).await;
    let reply = world.last_reply(session).await;
    assert!(reply.ends_with("m denied"), "{reply}");
    assert_eq!(
        world
            .starts()
            .await
            .iter()
            .filter(|start| start.depth == 1)
            .count(),
        2,
        "one worker, and one turn for the message that was let through"
    );
}
