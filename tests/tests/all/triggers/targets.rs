//! The targets of the messages of triggers: a session, a turn, an agent, a path, a persona or a
//! topic, and nowhere else where that is not there.

use super::scene::{Scene, config, trigger, with};
use serde_json::{Value, json};

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
    Scene::of(with(config(&json!({})), &personas)).await
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
    let path = about.unwrap().text("path");
    for (name, target) in [
        ("to-session", json!({ "session": seen["id"] })),
        ("to-agent", json!({ "agent": agent })),
        ("to-path", json!({ "path": path })),
        (
            "to-topic",
            json!({ "smart": { "about": "zebras", "agent": "puppet" } }),
        ),
    ] {
        let run = spoken(&scene, name, &target).await;
        assert_eq!(run["messages"][0]["outcome"], "accepted", "{name}: {run}");
        assert_eq!(scene.told_once(name).await, "Hello.");
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
async fn a_target_that_is_not_there_is_refused_and_taken_for_no_other() {
    let scene = scene().await;
    scene.say(&json!({ "agent": "puppet" }), "hello").await;
    for (name, target) in [
        ("no-session", json!({ "session": NOBODY })),
        ("no-turn", json!({ "turn": "e2".repeat(32) })),
        ("no-agent", json!({ "agent": "nobody" })),
        ("no-path", json!({ "path": "/local/agent/nobody" })),
        ("no-persona", json!({ "persona": "work" })),
    ] {
        let run = spoken(&scene, name, &target).await;
        let message = &run["messages"][0];
        assert_eq!(message["outcome"], "refused", "{name}: {run}");
        assert!(!message["reason"].to_string().is_empty(), "{name}: {run}");
        assert_eq!(scene.shown(name).await["failures"], 1, "{name}");
    }
}
