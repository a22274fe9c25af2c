//! Any recorded step, run again, decides the same.

use agent_host_tests::{Setup, World};
use broker::replay::{Verdict, replay};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_step_of_recorded_sessions_decides_the_same_again() {
    let world = World::new(Setup::default()).await;
    std::fs::write(world.dir.path().join("files/notes.txt"), "milk").unwrap();
    let session = world.open("assistant").await;
    for text in ["hello", "read notes.txt", "read missing.txt"] {
        world.say("assistant", session, text).await;
        world.idle(session).await;
    }
    let tutor = world.open_as("tutor", Some("learning")).await;
    let (call, _) = world.question("tutor", tutor).await;
    world.answer("tutor", call, json!({ "index": 0 })).await.unwrap();
    world.until(tutor, |row| row.open_run.is_some()).await;
    world.play(json!([{ "until": "all", "start": [{ "key": "a", "timer": 5 }, { "key": "b", "tool": "look" }] }])).await;
    let mut steps = 0;
    for run in world.runs().await {
        for (step, verdict) in replay(world.store(), &world.runtime, world.broker.catalogue(), run).await.unwrap() {
            assert_eq!(verdict, Verdict::Same, "run {run} step {step}");
            steps += 1;
        }
    }
    assert!(steps >= 12, "{steps} steps");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_run_again_sees_what_was_remembered_when_it_was_taken() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    for level in [1, 2] {
        let effects = json!([{ "prefer": { "topic": level } }, { "prefer_for_user": { "level": level } }]);
        world.say("puppet", session, &json!({ "steps": [{ "show": true, "effects": effects }] }).to_string()).await;
        world.idle(session).await;
    }
    let seen: serde_json::Value = serde_json::from_str(&world.last_reply(session).await).unwrap();
    assert_eq!((&seen["preferences"], &seen["shared"]), (&json!({ "topic": 1, "level": 1 }), &json!({ "topic": 1 })));
    for run in world.runs().await {
        for (step, verdict) in replay(world.store(), &world.runtime, world.broker.catalogue(), run).await.unwrap() {
            assert_eq!(verdict, Verdict::Same, "run {run} step {step}");
        }
    }
}
