//! Any recorded step, run again, decides the same.
//!
//! The agent's view of the host, which is frozen for a turn; its permissions are not.

use agent_host_tests::guests::wasm;
use agent_host_tests::process::{Folder, Host, puppets, shows};
use agent_host_tests::{Setup, World};
use broker::replay::{ReplayVerdict, replay};
use broker::{By, UploadFile};
use domain::digest::Digest;
use domain::event::Event;
use domain::id::{RunId, Stream};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_step_of_recorded_sessions_decides_the_same_again() {
    let world = World::new(Setup::default()).await;
    std::fs::write(world.dir.path().join("files/notes.txt"), "milk").unwrap();
    let session = world.open("assistant").await;
    for text in ["hello", "read notes.txt", "read missing.txt"] {
        world.turn("assistant", session, text).await;
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
        world.turn("puppet", session, &script).await;
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
    assert_eq!(world.turn("puppet", session, &read).await, "no blob");
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
    assert_eq!(world.turn("puppet", session, &read).await, "8 bytes");
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
            .played(session, &json!([{ "show": true, "effects": effects }]))
            .await;
    }
    let seen: Value = serde_json::from_str(&world.last_reply(session).await).unwrap();
    shows(
        &seen,
        &json!({ "preferences": { "topic": 1, "level": 1 }, "shared": { "topic": 1 } }),
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
    world.turn("assistant", session, "hello").await;
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

/// A model that says which of two tools it was given, and in which order.
const SCRIPT: &str = r#"
[[rule]]
when = { tools = ["look", "put"] }
reply = { text = "I have look and put" }

[[rule]]
when = { tools = ["put"] }
reply = { text = "I have put" }
"#;

async fn events(world: &World, run: RunId) -> Vec<Event> {
    let events = world
        .store()
        .stream(Stream::Run(run), 0, 1_000)
        .await
        .unwrap();
    events
        .into_iter()
        .filter_map(|recorded| recorded.event)
        .flat_map(Event::apart)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_keeps_its_tools_over_a_restart_and_a_tool_that_was_taken_away_is_refused() {
    let world = World::new(Setup {
        script: SCRIPT.to_owned(),
        ..Setup::default()
    })
    .await;
    let session = world.open("puppet").await;
    let steps = json!([
        { "start": [{ "key": "q", "client": "question" }] },
        {
            "until": "all",
            "start": [
                { "key": "m", "model": "x" }, { "key": "a", "tool": "look" },
                { "key": "b", "tool": "put" },
            ],
        },
    ]);
    world.play_in(session, &steps).await;
    let (call, _) = world.question("puppet", session).await;
    let world = world
        .restart(|setup| {
            setup.definitions[0]["toolDenylist"] = json!(["look"]);
            setup.definitions[0]["systemPrompt"] = json!("You are somebody else.");
            setup
                .definitions
                .push(json!({ "agentId": "new", "displayName": "New", "component": "puppet" }));
        })
        .await;
    world.answer("puppet", call, json!("go on")).await.unwrap();
    world.idle(session).await;
    let mut reported: Vec<String> = world.report(session).await;
    reported.sort_unstable();
    let expected = [
        "a denied",
        "b parts put done",
        "m message I have look and put",
    ];
    assert_eq!(reported[..3], expected);
    assert_eq!(reported[3], r#"q value "go on""#);
    assert!(
        world.effects().iter().all(|line| line.starts_with("put ")),
        "{:?}",
        world.effects()
    );

    let refused = world
        .ledger()
        .await
        .into_iter()
        .filter(|it| it.tool.as_deref() == Some("look"));
    let rules: Vec<&str> = refused
        .flat_map(|it| it.decisions)
        .map(|it| it.rule.as_str())
        .collect();
    assert_eq!(rules, ["toolDenylist"]);

    let run = world.runs().await[0];
    let all = events(&world, run).await;
    let Event::RunStarted(started) = &all[0] else {
        panic!("{:?}", all[0])
    };
    let frozen = started.resolved_config;
    let bases: Vec<_> = all
        .iter()
        .filter_map(|event| {
            if let Event::RunStepped(it) = event {
                Some(it.basis.documents)
            } else {
                None
            }
        })
        .collect();
    assert!(
        bases.len() >= 3
            && bases.iter().all(|it| (it.settings, it.tools, it.peers)
                == (frozen.settings, frozen.tools, frozen.peers))
    );
    for (step, verdict) in replay(
        world.store(),
        &world.runtime,
        &world.broker.catalogue(),
        run,
    )
    .await
    .unwrap()
    {
        assert_eq!(verdict, ReplayVerdict::Same, "step {step}");
    }

    // The next turn begins with what is configured by now.
    let reported = world
        .play(json!([{ "start": [{ "key": "m", "model": "x" }] }]))
        .await;
    assert_eq!(reported, ["m message I have put"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_shown_the_tools_of_its_turn_also_when_their_component_was_removed() {
    let world = World::new(Setup {
        script: SCRIPT.to_owned(),
        ..Setup::default()
    })
    .await;
    let session = world.open("puppet").await;
    let steps = json!([
        { "start": [{ "key": "t", "timer": 300 }] },
        { "start": [{ "key": "m", "model": "x" }] },
    ]);
    world.play_in(session, &steps).await;
    world.until(session, |row| row.open_run.is_some()).await;
    let world = world
        .restart(|setup| setup.components.retain(|name| *name != "effects"))
        .await;
    world.idle(session).await;
    assert_eq!(
        world.last_reply(session).await,
        "t elapsed\nm message I have look and put"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_first_step_failed_has_its_tools_stored_all_the_same() {
    let world = World::new(Setup::default()).await;
    let session = world.open("puppet").await;
    world
        .turn("puppet", session, r#"{"steps":[{"trap":"on purpose"}]}"#)
        .await;
    let all = events(&world, world.runs().await[0]).await;
    let Event::RunStarted(started) = &all[0] else {
        panic!("{:?}", all[0])
    };
    let frozen = started.resolved_config;
    for digest in [frozen.settings, frozen.tools, frozen.peers] {
        assert!(world.store().blob(digest).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_other_code_began_it_ends_unless_the_new_code_is_pinned() {
    for (is_pinned, expected) in [(false, "t parts asked true"), (true, "t failed not-found")] {
        let world = World::new(Setup::default()).await;
        let session = world.open("puppet").await;
        let steps = json!([{ "start": [{ "key": "t", "tool": "asks" }] }]);
        world.play_in(session, &steps).await;
        let (call, _) = world.question("puppet", session).await;
        let world = world
            .restart(|setup| {
                setup.components.retain(|name| *name != "effects");
                // A section at its end that says nothing: other bytes, the same tools.
                setup
                    .made
                    .push(("effects", [wasm("effects"), vec![0, 2, 1, b'x']].concat()));
                setup.is_pinned = is_pinned;
            })
            .await;
        world.answer("puppet", call, json!(true)).await.unwrap();
        world.idle(session).await;
        let reported = world.last_reply(session).await;
        assert!(reported.starts_with(expected), "{is_pinned}: {reported}");
    }
}

/// A setting that the operator fixes counts over an agent's own, and nobody changes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_the_operator_fixes_overrides_an_agents_own_and_stays() {
    let say = |word: &str| json!({ "steps": [{ "complete": word }] });
    let agent = |more: Value| {
        let mut agent = json!({
            "agentId": "examiner", "displayName": "E", "component": "puppet",
            "settings": { "script": say("the operator's") },
        });
        agent
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        puppets(&json!([agent]))
    };
    let (folder, host) = Folder::serving(agent(json!({})), &["puppet"]).await;
    let path = format!(
        "/api/agents/{}",
        host.post("/api/agents", &json!({ "definition": "examiner" }))
            .await
            .text("id")
    );
    let set = |host: &Host, script: &Value| {
        host.patch(&path, &json!({ "settings": { "script": script } }))
    };
    let summary = async |host: &Host| {
        let session = host
            .post(
                &format!("{path}/sessions"),
                &json!({ "session_type": "lesson" }),
            )
            .await
            .text("session_id");
        loop {
            let seen = host.get(&format!("{path}/sessions/{session}")).await.body;
            if !seen["completed_at"].is_null() {
                return seen["summary"].clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    set(&host, &say("the user's")).gives(200).await;
    assert_eq!(summary(&host).await, "the user's");
    host.kill().await;
    folder.configure(agent(json!({ "fixedSettings": ["script"] })));
    let host = folder.serve().await;
    assert_eq!(summary(&host).await, "the operator's");
    let refused = set(&host, &say("the user's")).await;
    refused.has(
        403,
        &json!({ "code": "SETTING_FIXED", "field": "/settings/script" }),
    );
    // What does not count may be taken away.
    set(&host, &Value::Null).gives(200).await;
}
