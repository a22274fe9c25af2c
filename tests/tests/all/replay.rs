//! Any recorded step, run again, decides the same.

use agent_host_tests::{Setup, World};
use broker::By;
use broker::UploadFile;
use broker::replay::{ReplayVerdict, replay};
use domain::digest::Digest;
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
    world
        .answer("tutor", call, json!({ "index": 0 }))
        .await
        .unwrap();
    world.until(tutor, |row| row.open_run.is_some()).await;
    world
        .play(json!([{
            "until": "all", "start": [{ "key": "a", "timer": 5 }, { "key": "b", "tool": "look" }],
        }]))
        .await;
    let mut steps = 0;
    for run in world.runs().await {
        for (step, verdict) in replay(
            world.store(),
            &world.runtime,
            &world.broker.catalogue(),
            run,
        )
        .await
        .unwrap()
        {
            assert_eq!(verdict, ReplayVerdict::Same, "run {run} step {step}");
            steps += 1;
        }
    }
    assert!(steps >= 12, "{steps} steps");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_run_again_counts_as_a_call_of_its_own_component() {
    let mut setup = Setup::default();
    // The same code under another name, which may be called once in a minute.
    setup.components.push("twin=puppet");
    setup.change_grant = |name, grant| {
        if name == "twin" {
            grant.limits.calls_per_minute_max = 1;
        }
    };
    let world = World::new(setup).await;
    let session = world.open("puppet").await;
    let script = json!({ "steps": [{ "reply": "hello" }] }).to_string();
    for _ in 0..3 {
        world.say("puppet", session, &script).await;
        world.idle(session).await;
    }
    let mut steps = 0;
    for run in world.runs().await {
        for (step, verdict) in replay(
            world.store(),
            &world.runtime,
            &world.broker.catalogue(),
            run,
        )
        .await
        .unwrap()
        {
            assert_eq!(verdict, ReplayVerdict::Same, "run {run} step {step}");
            steps += 1;
        }
    }
    assert_eq!(steps, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_run_again_reads_the_files_that_were_there_and_no_later_ones() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    let digest = Digest::of(b"an essay");
    let read = json!({ "steps": [{ "read": digest.reference() }] }).to_string();
    world.say("puppet", session, &read).await;
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "no blob");
    let user = domain::user::UserId::local();
    let upload = UploadFile {
        target: world.message("puppet", session, "", None).target,
        session,
        name: "essay.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        content: b"an essay".to_vec(),
        user,
    };
    world.broker.files().upload(upload).await.unwrap();
    world.say("puppet", session, &read).await;
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "8 bytes");
    let mut steps = 0;
    for run in world.runs().await {
        for (step, verdict) in replay(
            world.store(),
            &world.runtime,
            &world.broker.catalogue(),
            run,
        )
        .await
        .unwrap()
        {
            assert_eq!(verdict, ReplayVerdict::Same, "run {run} step {step}");
            steps += 1;
        }
    }
    assert_eq!(steps, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_run_again_sees_what_was_remembered_when_it_was_taken() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    for level in [1, 2] {
        let effects =
            json!([{ "prefer": { "topic": level } }, { "prefer_for_user": { "level": level } }]);
        world
            .play_in(session, &json!([{ "show": true, "effects": effects }]))
            .await;
        world.idle(session).await;
    }
    let seen: serde_json::Value = serde_json::from_str(&world.last_reply(session).await).unwrap();
    assert_eq!(
        (&seen["preferences"], &seen["shared"]),
        (&json!({ "topic": 1, "level": 1 }), &json!({ "topic": 1 }))
    );
    for run in world.runs().await {
        for (step, verdict) in replay(
            world.store(),
            &world.runtime,
            &world.broker.catalogue(),
            run,
        )
        .await
        .unwrap()
        {
            assert_eq!(verdict, ReplayVerdict::Same, "run {run} step {step}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_of_a_compaction_decide_the_same_again() {
    let world = World::new(Setup::default()).await;
    let session = world.open("assistant").await;
    world.say("assistant", session, "hello").await;
    world.idle(session).await;
    let target = world.message("assistant", session, "", None).target;
    let run = world
        .broker
        .runs()
        .compact(By::from(&domain::user::UserId::local()), &target, session)
        .await
        .unwrap();
    world.idle(session).await;
    assert_eq!(world.last_reply(session).await, "hello from the model");
    let verdicts = replay(
        world.store(),
        &world.runtime,
        &world.broker.catalogue(),
        run,
    )
    .await
    .unwrap();
    assert_eq!(
        verdicts,
        [(0, ReplayVerdict::Same), (1, ReplayVerdict::Same)]
    );
}
