//! The host's side of a program in a model's place: what it does for its prompt, and what it tells
//! of a turn.

use super::Scene;
use agent_host_tests::process::Frame;
use serde_json::{Value, json};

/// A scene whose agent may use tools that list items.
async fn with_lists() -> Scene {
    let scene = Scene::new(json!({})).await;
    let mut config = scene.config();
    config["agents"][0]["toolAllowlist"] = json!(["todo_*"]);
    config["components"] = json!({ "lists": {
        "keyValue": [{ "bucket": "lists", "scope": "user", "access": "read-write" }],
    } });
    scene.folder.configure(config);
    scene.folder.warm(&["lists"]).await;
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_lists_items_for_a_program_that_is_told_of_none() {
    let scene = with_lists().await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let said = host.turn(&session, "hello").gives(200).await.body;
    assert_eq!(said["reply"]["text"], "fresh: hello", "{said}");
    let (agent, _) = session.split_once("/sessions/").unwrap();
    let prompt = host.get(&format!("{agent}/prompt")).await.body;
    let parts = prompt["parts"].as_array().unwrap().iter();
    assert!(parts.map(|part| &part["name"]).eq(["base"]), "{prompt}");
    let audit = host.get("/api/audit?limit=1000").await.body;
    let lines = audit["lines"].as_array().unwrap();
    let is_listing = |line: &Value| line["tool"] == "todo_items";
    assert!(!lines.iter().any(is_listing), "{audit}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_programs_own_calls_are_shown_while_they_are_made() {
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let stream = session.replacen("/sessions/", "/stream?session=", 1);
    let mut frames = host.follow(&stream, None).await;
    frames.until("connected").await;
    host.turn(&session, "hello").gives(200).await;
    let frames = frames.until("stream_complete").await;
    let own = frames
        .iter()
        .filter(|frame| frame.event == "program_tool_call");
    let own: Vec<&Value> = own.map(|frame| &frame.data).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(own[0]["tool"], "Read", "{own:?}");
    assert!(own[0]["operation_id"].is_string(), "{own:?}");
    let is_the_hosts = |frame: &&Frame| frame.event.starts_with("tool_");
    assert_eq!(frames.iter().filter(is_the_hosts).count(), 0);
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_of_a_program_names_the_limit_or_the_programs_own_words() {
    for (word, limits, expected) in [
        (
            "hang",
            json!({ "turnMsMax": 1_000, "graceMs": 300 }),
            "it took longer than `limits.turnMsMax`",
        ),
        (
            "flood",
            json!({ "outputBytesMax": 100_000, "graceMs": 300 }),
            "it wrote more than `limits.outputBytesMax`",
        ),
        (
            "swarm",
            json!({ "processesMax": 20, "graceMs": 300 }),
            "it had more processes than `limits.processesMax`",
        ),
        (
            "half",
            json!({}),
            "ended before its end was told; at last it said:",
        ),
        (
            "error",
            json!({}),
            "the program reports: \"API Error: 401\"",
        ),
    ] {
        let scene = Scene::new(limits).await;
        let host = scene.start().await;
        let session = host.open("assistant").await;
        let said = host.turn(&session, word).gives(200).await.body;
        assert_eq!(said["outcome"], "failed", "{word}: {said}");
        let ended = host.story(&session, "run.ended.v1").await;
        let reason = ended[0]["reason"].as_str().unwrap();
        assert!(reason.contains(expected), "{word}: {reason}");
        assert!(!reason.contains("status"), "{word}: {reason}");
        // Everybody who may read sees how a model does, and not what was said in somebody's turn.
        let models = host.get("/api/models").await.body;
        let models = models.to_string();
        let reported = expected.split(": \"").next().unwrap().trim_end_matches(':');
        assert!(models.contains(reported), "{word}: {models}");
        if let Some((_, words)) = reason.split_once(": \"") {
            let words = words.split('"').next().unwrap();
            assert!(
                !words.is_empty() && !models.contains(words),
                "{word}: {models}"
            );
        }
        scene.nothing_is_left().await;
        assert!(host.stop().await.success(), "{}", scene.folder.log());
    }
}
