//! The targets of the messages of triggers: a session, a turn, an agent, a path, a persona or a
//! topic, and nowhere else where that is not there.

use super::scene::{Scene, config, trigger, with};
use agent_host_tests::process::tells;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A place that nobody has.
const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

/// Returns a trigger that is run by hand, with another target.
fn to(target: &Value) -> Value {
    let every = json!({ "every": "30d" });
    trigger(&json!({ "schedule": every, "message": "Hello.", "target": target }))
}

/// A host with a persona.
async fn scene() -> Scene {
    let personas = json!({ "personas": [{
        "id": "home", "displayName": "Home", "agent": "other", "users": ["local"],
    }] });
    let mut config = with(config(&json!({})), &personas);
    config["models"]["large"] = json!({ "provider": "scripted", "model": "large" });
    config["defaultModel"] = json!("m");
    Scene::of(config).await
}

/// Has a trigger with a target speak, and returns its run.
async fn spoken(scene: &Scene, name: &str, target: &Value) -> Value {
    scene.make(name, &to(target)).await;
    scene.run(name).await;
    scene.done(name, 1).await.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_to_the_session_turn_path_persona_or_topic_that_is_named() {
    let scene = scene().await;
    let words = "We talked of zebras, and of zebras again.";
    let chat = scene.say(&json!({ "agent": "puppet" }), words).await;
    let seen = scene.idle(&chat).await;
    let agent = seen["agent_id"].as_str().unwrap();
    let about = scene.host.get(&format!("/api/agents/{agent}")).await;
    let path = about.text("path");
    for (name, target) in [
        ("to-session", json!({ "session": seen["session_id"] })),
        ("to-agent", json!({ "agent": agent })),
        ("to-path", json!({ "path": path })),
        (
            "to-topic",
            json!({ "smart": { "about": "zebras", "agent": "puppet" } }),
        ),
        // It is not the last one any more, and goes on in a thread of its own.
        ("to-turn", json!({ "turn": seen["turn_id"] })),
    ] {
        let run = spoken(&scene, name, &target).await;
        assert_eq!(run["messages"][0]["outcome"], "accepted", "{name}: {run}");
        assert_eq!(scene.reported_once(name).await, "Hello.");
        let is_chat = scene.sessions(name).await == [chat.clone()];
        assert_eq!(is_chat, name != "to-turn", "{name}");
    }
    let run = spoken(&scene, "to-persona", &json!({ "persona": "home" })).await;
    assert_eq!(run["messages"][0]["outcome"], "accepted", "{run}");
    let session = scene.sessions("to-persona").await.remove(0);
    assert_ne!(session, chat, "it is the persona's main session");
    let again = scene.say(&json!({ "persona": "home" }), "hello").await;
    assert_eq!(again, session);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_to_a_cron_path_where_nobody_is_makes_its_agent_when_it_runs() {
    let mut config = config(&json!({}));
    let mut usual = config["agents"][0].clone();
    usual["agentId"] = json!("assistant");
    config["agents"].as_array_mut().unwrap().push(usual);
    let scene = Scene::of(config).await;
    let path = "/local/cron/daily";
    let there = async || {
        let listed = scene.host.get("/api/agents").await;
        let agents = listed.body["agents"].as_array().unwrap().clone();
        let found = agents.into_iter().find(|agent| agent["path"] == path);
        found.map(|agent| agent["id"].clone())
    };
    scene.make("daily", &to(&json!({ "path": path }))).await;
    assert_eq!(there().await, None);
    scene.run("daily").await;
    let run = scene.done("daily", 1).await.remove(0);
    let message = &run["messages"][0];
    assert_eq!(message["outcome"], "accepted", "{run}");
    assert_eq!(there().await.as_ref(), Some(&message["agent_id"]), "{run}");
}

/// Targets of the configuration that only the store knows are not looked up at a start.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_is_not_there_is_refused_and_taken_for_no_other() {
    let targets = [
        ("no-session", json!({ "session": NOBODY })),
        ("no-turn", json!({ "turn": "e2".repeat(32) })),
        ("no-agent", json!({ "agent": NOBODY })),
        ("no-path", json!({ "path": "/local/agent/nobody" })),
    ];
    let triggers = targets.iter().map(|(name, target)| (*name, to(target)));
    let triggers: BTreeMap<&str, Value> = triggers.collect();
    let scene = Scene::new(&json!(triggers)).await;
    scene.say(&json!({ "agent": "puppet" }), "hello").await;
    for (name, _) in &targets {
        refused_when_fired(&scene, name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_went_away_is_refused_when_its_trigger_is_fired() {
    let scene = scene().await;
    scene
        .make("to-persona", &to(&json!({ "persona": "home" })))
        .await;
    scene.folder.configure(config(&json!({})));
    scene.folder.succeeds(&["reload"]).await;
    refused_when_fired(&scene, "to-persona").await;
}

/// Runs a trigger whose message finds nobody.
async fn refused_when_fired(scene: &Scene, name: &str) {
    scene.run(name).await;
    let run = scene.done(name, 1).await.remove(0);
    let message = &run["messages"][0];
    assert_eq!(message["outcome"], "refused", "{name}: {run}");
    assert!(!message["reason"].to_string().is_empty(), "{name}: {run}");
    assert_eq!(scene.shown(name).await["failures"], 1, "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_over_the_api_is_refused_if_its_target_is_not_there() {
    let scene = scene().await;
    scene.say(&json!({ "agent": "puppet" }), "hello").await;
    // Nobody has an agent of this definition yet, and no thread is about that.
    scene.make("first", &to(&json!({ "agent": "other" }))).await;
    let smart = json!({ "smart": { "about": "zebras", "agent": "puppet", "persona": "home" } });
    scene.make("topic", &to(&smart)).await;
    for (target, field) in [
        (json!({ "agent": "nobody" }), "agent"),
        (json!({ "agent": NOBODY }), "agent"),
        (json!({ "agent": "/local/agent/nobody" }), "agent"),
        (json!({ "session": NOBODY }), "session"),
        (json!({ "turn": "e2".repeat(32) }), "turn"),
        (json!({ "path": "/local/agent/nobody" }), "path"),
        (json!({ "persona": "work" }), "persona"),
        (json!({ "smart": { "agent": "nobody" } }), "smart/agent"),
        (json!({ "smart": { "agent": "other" } }), "smart/agent"),
        (json!({ "smart": { "persona": "work" } }), "smart/persona"),
    ] {
        let field = format!("/spec/target/{field}");
        let made = scene.asked_to_make("lost", &to(&target)).await;
        made.has(422, &json!({ "field": field }));
    }
    let nobody = to(&json!({ "agent": "nobody" }));
    let change = json!({ "spec": nobody });
    let path = "/api/triggers/first";
    let line = scene.host.line();
    let changed = line.put(path, &change).await;
    assert_eq!(changed.text("field"), "/spec/target/agent", "{changed:?}");
    let detail = changed.text("detail");
    tells(&detail, &["`nobody`", "puppet"]);
    let further = json!({ "targets": { "b": { "persona": "work" } } });
    let made = scene
        .asked_to_make("lost", &with(to(&smart), &further))
        .await;
    assert_eq!(made.text("field"), "/spec/targets/b/persona", "{made:?}");
    // A model that there is not, and one that its agent may not have.
    for model in ["nowhere", "large"] {
        let model = json!({ "model": model });
        let made = scene.asked_to_make("lost", &with(to(&smart), &model)).await;
        assert_eq!(made.text("field"), "/spec/model", "{made:?}");
        let detail = made.text("detail");
        assert!(detail.ends_with("there are: m"), "{detail}");
    }
}
