//! Components that were built against released versions of the interface: every later host serves
//! them as the first one did.

use agent_host_tests::world::target;
use agent_host_tests::{Setup, World, guests};
use domain::grant::{Access, BucketGrant, BucketScope};
use serde_json::{Value, json};

/// The components that are kept with version 0.1.0.
const COMPONENTS: [&str; 4] = ["assistant", "effects", "puppet", "shelf"];

/// A world of nothing else.
async fn world(version: &str) -> World {
    let kept = |name: &'static str| {
        let file = guests::root()
            .join("wit/frozen")
            .join(version)
            .join("components")
            .join(format!("{name}.wasm"));
        (
            name,
            std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())),
        )
    };
    let definition = |id: &str, component: &str| {
        json!({
            "agentId": id, "displayName": id, "component": component,
        })
    };
    let setup = Setup {
        components: Vec::new(),
        made: COMPONENTS.map(kept).to_vec(),
        definitions: vec![
            definition("puppet", "puppet"),
            definition("other", "puppet"),
            definition("assistant", "assistant"),
        ],
        key_value: vec![BucketGrant {
            scope: BucketScope::Component,
            ..BucketGrant::new("notes", Access::ReadWrite)
        }],
        ..Setup::default()
    };
    World::new(setup).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_0_1_0_does_all_that_an_agent_can_do() {
    let world = world("0.1.0").await;
    let session = world.open_as("puppet", Some("lesson")).await;
    let steps = json!([
        { "until": "all", "start": [
            {
                "key": "agent", "agent": "other",
                "text": r#"{"steps":[{"reply":"from the other"}]}"#,
            },
            { "key": "hidden", "model": "be brief", "hidden": true },
            { "key": "model", "model": "be brief" },
            { "key": "nobody", "tool": "no_such_tool" },
            { "key": "recall", "recall": "zebra" },
            { "key": "timer", "timer": 20 },
            { "key": "tool", "tool": "look" },
        ], "effects": [
            { "say": "working on it" }, { "prefer": { "tone": "dry" } },
            { "prefer_for_user": { "level": 2 } }, { "state": { "n": 1 } },
            { "remember": "the zebra is striped" }, { "emit": "noted" }, { "schedule": 3_600_000 },
        ] },
        { "start": [
            { "key": "long", "timer": 3_600_000 }, { "key": "question", "client": "confirmation" },
        ] },
        { "cancel": ["long"], "effects": [
            { "item": { "prompt": "well?", "response": true, "asked": "question" } },
        ] },
        { "reply": "first" },
    ]);
    world.play_in(session, &steps).await;
    let (call, action) = world.question("puppet", session).await;
    assert_eq!(action.widget, "confirmation");
    world
        .answer("puppet", call, json!({ "confirmed": true }))
        .await
        .unwrap();
    // What it left for later waits still.
    world
        .until(session, |row| {
            row.open_run.is_none()
                && row.waiting == 1
                && row.last_snippet.as_deref() == Some("first")
        })
        .await;
    assert_eq!(world.last_reply(session).await, "first");
    let agent = world
        .broker
        .agents()
        .get(&domain::user::UserId::local(), &target("puppet"))
        .await
        .unwrap()
        .row
        .agent;
    assert_eq!(agent.preferences["tone"], "dry");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_0_1_0_is_told_what_it_was_told_then() {
    let world = world("0.1.0").await;
    let mut reported = world
        .play(json!([{ "until": "all", "start": [
            {
                "key": "agent", "agent": "other",
                "text": r#"{"steps":[{"reply":"from the other"}]}"#,
            },
            { "key": "fails", "agent": "other", "text": r#"{"steps":[{"fail":"no"}]}"# },
            { "key": "hidden", "model": "be brief", "hidden": true },
            { "key": "model", "model": "be brief" },
            { "key": "nobody", "tool": "no_such_tool" },
            { "key": "patient", "tool": "patient" },
            { "key": "recall", "recall": "zebra" },
            { "key": "timer", "timer": 20 },
        ] }]))
        .await;
    reported.sort_unstable();
    // Which tools there are is what may become more.
    let reported: Vec<&str> = reported
        .iter()
        .map(|line| {
            line.split_once("; available are")
                .map_or(line.as_str(), |(line, _)| line)
        })
        .collect();
    assert_eq!(
        reported,
        [
            "agent parts from the other",
            "fails failed agent-failed: no",
            "hidden parts hello from the model",
            "model message hello from the model",
            "nobody failed TOOL_NOT_AVAILABLE: there is no tool `no_such_tool`",
            "patient parts waited",
            r#"recall value {"hits":[]}"#,
            "timer elapsed",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_0_1_0_keeps_what_it_is_told_to_keep() {
    let world = world("0.1.0").await;
    let call = |tool: &str, args: Value| {
        json!([{
            "start": [{ "key": "t", "tool": tool, "args": args }],
        }])
    };
    let reported = world
        .play(call(
            "keep",
            json!({ "do": [["set", "a", "1"], ["get", "a"]] }),
        ))
        .await;
    assert_eq!(reported, ["t parts ok | 1"]);
    let reported = world
        .play(call("peek", json!({ "do": [["get", "a"]] })))
        .await;
    assert_eq!(reported, ["t parts 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_calls_a_tool_of_0_1_0_through_an_agent_of_0_1_0() {
    let world = world("0.1.0").await;
    let session = world.open("assistant").await;
    world.say("assistant", session, "call:put").await;
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "It says: put done");
    let effects = world.effects();
    assert!(
        effects.len() == 2
            && effects[0].starts_with("put begin ")
            && effects[1].starts_with("put end "),
        "{effects:?}"
    );
}
