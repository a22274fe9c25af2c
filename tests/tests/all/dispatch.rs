//! Work between agents: how deep, how much at once, for how long, how urgent and for whom.

use agent_host_tests::guests::test_program;
use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{Folder, shows, tells};
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::{By, NewSession, PostMessage};
use domain::delegate::Priority;
use domain::id::SessionId;
use domain::message::Part;
use domain::user::UserId;
use serde_json::{Value, json};
use std::time::Duration;

/// Work that takes an hour.
const LONG: &str = r#"{"steps":[{"start":[{"key":"t","timer":3600000}]}]}"#;

fn with(change: impl FnOnce(&mut domain::dispatch::DispatchLimits)) -> Setup {
    let mut setup = Setup::default();
    change(&mut setup.limits.dispatch);
    setup
}

/// Returns so many dispatches of long work, for one step.
fn long(count: usize, detached: bool) -> Vec<Value> {
    (0..count)
        .map(|n| {
            json!({ "key": format!("d{n}"), "agent": "other", "text": LONG, "detached": detached })
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_call_each_other_one_deep_and_no_deeper() {
    let world = World::new(Setup::default()).await;
    let innermost = r#"{"steps":[{"reply":"deep"}]}"#;
    let inner =
        json!({ "steps": [{ "start": [{ "key": "e", "agent": "puppet", "text": innermost }] }] })
            .to_string();
    let reported = world
        .play(json!([{ "start": [{ "key": "d", "agent": "other", "text": inner }] }]))
        .await
        .join("\n");
    assert_eq!(
        reported,
        "d parts e failed limit-reached: agents may call each other 1 deep and no deeper \
         (callDepthMax)"
    );

    let world = World::new(with(|limits| limits.call_depth_max = 2)).await;
    let reported = world
        .play(json!([{ "start": [{ "key": "d", "agent": "other", "text": inner }] }]))
        .await
        .join("\n");
    assert_eq!(reported, "d parts e parts deep");
    let world = World::new(with(|limits| limits.call_depth_max = 0)).await;
    let reported = world
        .play(json!([{ "start": [{ "key": "d", "agent": "other", "text": inner }] }]))
        .await
        .join("\n");
    assert_eq!(
        reported,
        "d failed limit-reached: agents may call each other 0 deep and no deeper (callDepthMax)"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_has_five_dispatches_open_and_the_sixth_is_refused_at_once() {
    let reported = World::new(Setup::default())
        .await
        .play(json!([{ "start": long(6, false) }]))
        .await;
    assert_eq!(
        reported,
        [
            "d5 failed limit-reached: this turn has 5 dispatches open of 5 (childrenMax); wait \
             until one has ended"
        ]
    );

    // Detached ones count as long as they are at work, and no longer.
    let world = World::new(with(|limits| limits.children_max = 1)).await;
    let session = world.open("puppet").await;
    let done = r#"{"steps":[{"reply":"done"}]}"#;
    let dispatch =
        |key: &str| json!({ "key": key, "agent": "other", "text": done, "detached": true });
    let steps = json!([
        { "until": "all", "start": [dispatch("a"), dispatch("b"), { "key": "t", "timer": 1_500 }] },
        { "until": "all", "start": [dispatch("c"), { "key": "u", "timer": 1 }] },
    ]);
    world.play_in(session, &steps).await;
    world.until(session, |row| row.revision >= 1).await;
    let reported: String = world
        .messages(session)
        .await
        .iter()
        .map(|message| message.text() + "\n")
        .collect();
    let outcome = |key: &str| {
        reported
            .lines()
            .find(|line| line.starts_with(&format!("{key} ")))
            .map(str::to_owned)
            .unwrap_or_default()
    };
    assert!(
        outcome("a").starts_with("a parts Started as task"),
        "{reported}"
    );
    assert_eq!(
        outcome("b"),
        "b failed limit-reached: this turn has 1 dispatches open of 1 (childrenMax); wait until \
         one has ended"
    );
    assert!(
        outcome("c").starts_with("c parts Started as task"),
        "{reported}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_delegate_tool_is_bound_by_the_same_limits() {
    let world = World::new(with(|limits| {
        (limits.children_max, limits.delegations_queued_max) = (1, 0);
    }))
    .await;
    let delegate = |key: &str| {
        json!({
            "key": key, "tool": "delegate",
            "args": {
                "target": "worker", "operation": "list_files", "parameters": { "path": "/data" },
            },
        })
    };
    let reported = world
        .play(json!([{ "until": "all", "start": [delegate("a"), delegate("b")] }]))
        .await;
    let refused = reported.iter().find(|line| line.starts_with("b ")).unwrap();
    assert!(
        refused.contains(r#""code":"LIMIT_REACHED""#) && refused.contains("(childrenMax)"),
        "{reported:?}"
    );
    assert!(
        reported
            .iter()
            .any(|line| line.starts_with("a ") && line.contains(r#""success":true"#)),
        "{reported:?}"
    );
}

/// A tree of agents has eight dispatches open, whichever of its turns asks, and after a restart
/// too.
#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_agents_has_eight_dispatches_open_whichever_turn_asks() {
    let world = World::new(Setup::default()).await;
    let first = world.open("puppet").await;
    world
        .play_in(first, &json!([{ "until": "all", "start": long(5, false) }]))
        .await;
    world.until(first, |row| row.open_run.is_some()).await;
    until(async || world.runs().await.len() >= 6).await;
    let world = world.restart(|_| ()).await;
    let reported = world.play(json!([{ "start": long(4, false) }])).await;
    let refused = "d3 failed limit-reached: this agent and those below it have 8 dispatches open \
                   of 8 (treeDispatchesMax); try again later";
    assert_eq!(reported, [refused]);
    // The turn that was refused has ended, and with it what it had handed over; other trees were
    // never concerned.
    let short = json!({ "key": "s", "agent": "other", "text": r#"{"steps":[{"reply":"done"}]}"# });
    let other = world.open("other").await;
    assert_eq!(
        world
            .turn(
                "other",
                other,
                &json!({ "steps": [{ "start": [short] }] }).to_string()
            )
            .await,
        "s parts done"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_turns_that_hand_over_at_the_same_time_share_the_trees_limit() {
    let world = World::new(with(|limits| limits.tree_dispatches_max = 4)).await;
    let steps = json!({ "steps": [{ "start": long(3, false), "until": "all" }] }).to_string();
    let sessions = [world.open("puppet").await, world.open("puppet").await];
    for session in sessions {
        world.say("puppet", session, &steps).await;
    }
    for session in sessions {
        world.until(session, |row| row.open_run.is_some()).await;
    }
    until(async || world.runs().await.len() >= 6).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        world.runs().await.len(),
        6,
        "two turns and four of six dispatches"
    );
}

/// Two agents of which each hands work to the other, detached, at any message; also at one that
/// arrives before its turn has ended.
fn ping_pong(setup: Setup, other: &str) -> Setup {
    let mut setup = setup;
    let hand_over = |to: &str| {
        let once = |time: usize| {
            let start = json!([{
                "key": format!("d{time}"), "agent": to, "text": "go on", "detached": true,
            }]);
            [json!({ "start": start }), json!({ "reply": "and you?" })]
        };
        json!({ "steps": (0..4).flat_map(once).collect::<Vec<_>>() })
    };
    setup.definitions[0]["settings"] = json!({ "script": hand_over("other") });
    setup.definitions[1]["settings"] = json!({ "script": hand_over(other) });
    setup
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_that_answer_each_other_for_ever_come_to_an_end() {
    let world = World::new(ping_pong(
        with(|limits| limits.spawn_depth_max = 1),
        "puppet",
    ))
    .await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    world.quiet().await;
    let starts = world.starts().await;
    let deepest: Vec<(u32, u32)> = starts
        .iter()
        .map(|start| (start.hops, start.spawn_depth))
        .collect();
    assert_eq!(
        deepest.iter().map(|(hops, _)| *hops).max(),
        Some(16),
        "{deepest:?}"
    );
    assert!(
        starts
            .iter()
            .all(|start| (start.session == session) == (start.spawn_depth == 0)),
        "a late reply is as deep as its conversation"
    );
    let dead = world.broker.dead_letters().list(100).await.unwrap();
    let [letter] = dead.as_slice() else {
        panic!("{dead:?}")
    };
    assert_eq!(
        letter.dead.reason,
        "agents have answered each other 16 times in a row and may do so no longer (hopsMax)"
    );
    assert_eq!(
        (letter.accepted.session, letter.accepted.source.hops()),
        (session, 17)
    );
    // The operator may let it pass; its own late reply does not.
    world
        .broker
        .dead_letters()
        .requeue(By::from(&UserId::local()), letter.accepted.input, None)
        .await
        .unwrap();
    world.quiet().await;
    let dead = world.broker.dead_letters().list(100).await.unwrap();
    assert_eq!(
        dead.iter()
            .map(|letter| letter.accepted.source.hops())
            .collect::<Vec<_>>(),
        [18]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_call_each_other_deep_and_answer_late_come_to_an_end_too() {
    let setup = with(|limits| {
        (
            limits.spawn_depth_max,
            limits.hops_max,
            limits.tree_dispatches_max,
        ) = (3, 2, 1_000);
    });
    let world = World::new(ping_pong(setup, "puppet")).await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    world.quiet().await;
    let starts = world.starts().await;
    assert!(
        starts
            .iter()
            .all(|start| start.spawn_depth <= 3 && start.depth == 0 && start.hops <= 2)
    );
    assert!(
        starts.iter().any(|start| start.spawn_depth == 3)
            && starts.iter().any(|start| start.hops == 2)
    );
    assert!(
        !world
            .broker
            .dead_letters()
            .list(100)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_that_never_takes_a_step_counts_as_a_hop_all_the_same() {
    let mut setup = ping_pong(
        with(|limits| (limits.hops_max, limits.spawn_depth_max) = (3, 1)),
        "puppet",
    );
    setup.definitions[1]["settings"] = json!({ "script": { "steps": [{ "trap": "on purpose" }] } });
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    world.say("puppet", session, "begin").await;
    world.quiet().await;
    let letters = world.broker.dead_letters().list(100).await.unwrap();
    assert!(
        letters
            .iter()
            .any(|letter| letter.accepted.session == session
                && letter.dead.reason.contains("(hopsMax)")),
        "{letters:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_is_as_urgent_as_it_says_and_what_it_dispatches_itself_too() {
    let world = World::new(with(|limits| limits.call_depth_max = 2)).await;
    let delegate = |key: &str, priority: Value| {
        json!({
            "key": key, "tool": "delegate",
            "args": {
                "target": "worker", "operation": "list_files", "parameters": { "path": "/data" },
                "priority": priority,
            },
        })
    };
    world
        .play(json!([{
            "until": "all",
            "start": [delegate("a", json!(4)), delegate("b", Value::Null), delegate("c", json!(1))],
        }]))
        .await;
    let mut urgent: Vec<Priority> = world
        .starts()
        .await
        .into_iter()
        .skip(1)
        .map(|start| start.priority)
        .collect();
    urgent.sort_unstable();
    assert_eq!(
        urgent,
        [Priority::Low, Priority::Normal, Priority::Critical]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_told_for_whom_it_works_also_in_work_that_was_handed_over() {
    let world = World::new(Setup::default()).await;
    for user in ["ada", "local"] {
        let new = NewSession::of(target("puppet"), user.parse().unwrap());
        let row = world.broker.sessions().open(new).await.unwrap().row;
        let who = json!({ "steps": [{ "start": [{ "key": "w", "tool": "who" }] }] });
        let steps = json!({
            "steps": [{
                "until": "all",
                "start": [
                    { "key": "own", "tool": "who" },
                    { "key": "d", "agent": "other", "text": who.to_string() },
                ],
            }],
        });
        let content = vec![Part::text(steps.to_string())];
        let said = PostMessage {
            user: user.parse().unwrap(),
            content,
            ..world.message("puppet", row.id, "", None)
        };
        world.broker.messages().post(said).await.unwrap();
        world.idle(row.id).await;
        let reported = sorted(&world, row.id).await;
        assert_eq!(
            reported,
            [
                format!("d parts w parts {user}"),
                format!("own parts {user}")
            ]
        );
    }
}

async fn sorted(world: &World, session: SessionId) -> Vec<String> {
    let mut reported: Vec<String> = world.report(session).await;
    reported.sort_unstable();
    reported
}

/// The limits of the configuration are in effect, and a late reply too many is listed.
#[tokio::test(flavor = "multi_thread")]
async fn configured_limits_are_in_effect_and_a_late_reply_too_many_is_listed() {
    let puppet = test_program("puppet");
    let (folder, host) = Folder::serving(
        json!({
            "agents": [
                { "agentId": "puppet", "displayName": "Puppet", "component": "puppet" },
                { "agentId": "other", "displayName": "Other", "component": "puppet" },
            ],
            "components": { "puppet": { "path": puppet, "models": ["*"], "agents": ["*"] } },
            "limits": { "hopsMax": 0, "childrenMax": 1, "instancesMax": 4 },
        }),
        &["puppet"],
    )
    .await;
    let path = host.open("puppet").await;
    let reply = json!({ "steps": [{ "reply": "too late" }] }).to_string();
    let start =
        |key: &str| json!({ "key": key, "agent": "other", "text": reply, "detached": true });
    let steps = json!({ "steps": [{ "until": "all", "start": [start("a"), start("b")] }] });
    host.say(&path, &steps.to_string()).await;
    let listed = found(async || {
        let output = folder.run(&["dead-letter", "list"]).await;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.contains("(hopsMax)").then_some(text)
    })
    .await;
    tells(&listed, &["too late", "0 times in a row"]);
    let id = listed.split_whitespace().next().unwrap();
    let one = host.get(&format!("/api/dead-letters/{id}")).await.body;
    shows(
        &one,
        &json!({ "input_id": id, "source/kind": "late_reply", "source/from": "other" }),
    );
    let shown = String::from_utf8_lossy(&folder.run(&["dead-letter", "show", id]).await.stdout)
        .into_owned();
    tells(&shown, &["(hopsMax)", "late_reply", "too late"]);
    let messages = host.get(&path).await.body.to_string();
    tells(&messages, &["of 1 (childrenMax)"]);
}
