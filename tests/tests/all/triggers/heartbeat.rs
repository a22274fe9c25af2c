//! Heartbeats: an agent is told to look at its checklist, unless there is nothing to look for, it
//! is busy, or it is not the time for it.

use super::scene::{Scene, config, trigger, with};
use agent_host_tests::process::tells;
use domain::time::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Returns a heartbeat with these settings.
fn beats(settings: &Value) -> Value {
    trigger(&json!({ "heartbeat": settings }))
}

/// Returns the settings of a heartbeat that looks at the checklist.
fn checking(every: &str) -> Value {
    let file = json!({ "componentDirectory": "/notes", "file": "HEARTBEAT.md" });
    json!({ "every": every, "checklist": file })
}

fn write_checklist(scene: &Scene, text: &str) {
    let file = scene.folder.path().join("notes/HEARTBEAT.md");
    std::fs::write(file, text).unwrap();
}

/// The latest entry of a history that has so many.
async fn latest(scene: &Scene, name: &str, count: usize) -> Value {
    let runs = scene.done(name, count).await;
    assert_eq!(runs.len(), count, "{runs:?}");
    runs[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_shows_the_checklist_and_is_passed_over_while_that_says_nothing() {
    let mut scene = Scene::new(&json!({ "beat": beats(&checking("1m")) })).await;
    write_checklist(&scene, "# Heartbeat\n\n- water the plants\n");
    scene.pass_until_due("beat").await;
    let reported = scene.reported_once("beat").await;
    tells(&reported, &["HEARTBEAT_OK"]);
    assert!(reported.ends_with("- water the plants"), "{reported}");
    let run = latest(&scene, "beat", 1).await;
    assert_eq!(run["trigger_event"]["kind"], "heartbeat");
    for (count, text) in [(2, "# Heartbeat\n\n- [ ]\n<!-- a -->\n"), (3, "")] {
        write_checklist(&scene, text);
        scene.pass_until_due("beat").await;
        let run = latest(&scene, "beat", count).await;
        assert_eq!(run["state"], "skipped", "{run}");
        assert_eq!(run["trigger_event"]["reason"], "empty_checklist");
    }
    std::fs::remove_file(scene.folder.path().join("notes/HEARTBEAT.md")).unwrap();
    scene.pass_until_due("beat").await;
    let run = latest(&scene, "beat", 4).await;
    assert_eq!(run["trigger_event"]["reason"], "empty_checklist");
    let reported = scene.reported("beat").await;
    assert_eq!(reported.len(), 1);
    assert_eq!(reported[0]["untrusted"], true, "a file is anybody's words");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_waits_for_a_busy_session_and_is_tried_again_soon() {
    let mut scene = Scene::new(&json!({ "beat": beats(&json!({ "every": "2h" })) })).await;
    let asks = json!({ "steps": [{ "start": [{ "key": "q", "client": "question" }] }] });
    let chat = scene
        .say(&json!({ "agent": "puppet" }), &asks.to_string())
        .await;
    let call = scene
        .until("a question", async || {
            let seen = scene.host.get(&chat).await.body;
            seen["pending_action"]["tool_call_id"]
                .as_str()
                .map(str::to_owned)
        })
        .await;
    scene.pass_until_due("beat").await;
    let run = latest(&scene, "beat", 1).await;
    assert_eq!(run["trigger_event"]["reason"], "busy", "{run}");
    let next = scene.shown("beat").await["next_due_at"].clone();
    let next: Timestamp = next.as_str().unwrap().parse().unwrap();
    assert!(next.since_ms(scene.now().await) <= 60_000, "{next}");
    let agent = chat.split("/sessions/").next().unwrap();
    let answer = json!({ "tool_call_id": call, "response": "yes" });
    scene
        .host
        .post(&format!("{agent}/respond"), &answer)
        .gives(202)
        .await;
    scene.idle(&chat).await;
    scene.pass_until_due("beat").await;
    let run = latest(&scene, "beat", 2).await;
    assert_eq!(run["state"], "done", "{run}");
    assert_eq!(scene.sessions("beat").await, [chat]);
    let reported = scene.reported("beat").await;
    assert_eq!(
        reported[0]["untrusted"], false,
        "it read no file: {reported:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_rests_for_the_day_when_its_turns_have_used_its_tokens() {
    let mut scene = Scene::new(&json!({})).await;
    // Two beats are to be on one day.
    let is_early = scene.now().await.0 % DAY_MS < 20 * HOUR_MS;
    let zone = if is_early { "UTC" } else { "Etc/GMT+12" };
    let hours = json!({ "start": "00:00", "end": "24:00", "timeZone": zone });
    let settings = json!({ "every": "30m", "activeHours": hours, "tokensPerDay": 1 });
    let asks = json!({ "steps": [{ "start": [{ "key": "q", "model": "be brief" }] }] });
    let asks = json!({ "message": asks.to_string() });
    scene.make("beat", &with(beats(&settings), &asks)).await;
    scene.pass_until_due("beat").await;
    assert_eq!(latest(&scene, "beat", 1).await["state"], "done");
    let chat = scene.sessions("beat").await.remove(0);
    scene.idle(&chat).await;
    scene.pass_until_due("beat").await;
    let run = latest(&scene, "beat", 2).await;
    assert_eq!(run["trigger_event"]["reason"], "budget", "{run}");
    scene.pass(DAY_MS).await;
    let run = latest(&scene, "beat", 3).await;
    assert_eq!(
        run["trigger_event"]["reason"], "missed",
        "it is not made up for"
    );
    scene.pass_until_due("beat").await;
    let run = latest(&scene, "beat", 4).await;
    assert_eq!(run["state"], "done", "another day: {run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_asks_the_model_of_its_role_unless_it_names_another() {
    let asks = json!({ "steps": [{ "start": [{ "key": "q", "model": "be brief" }] }] });
    let asks = json!({ "message": asks.to_string(), "isolated": true });
    let beat = with(beats(&json!({ "every": "1d" })), &asks);
    let every = json!({ "schedule": { "every": "1d" } });
    let mut config = config(&json!({
        "beat": beat,
        "named": with(beat.clone(), &json!({ "model": "large" })),
        "tick": with(trigger(&every), &asks),
    }));
    for model in ["small", "large"] {
        config["models"][model] = json!({ "provider": "scripted", "model": model });
    }
    config["defaultModel"] = json!("m");
    config["roles"] = json!({ "heartbeat": "small" });
    config["agents"][0]["modelAllowlist"] = json!(["large"]);
    let scene = Scene::of(config).await;
    for (name, model) in [("beat", "small"), ("named", "large"), ("tick", "m")] {
        scene.run(name).await;
        scene.done(name, 1).await;
        let session = scene.sessions(name).await.remove(0);
        let seen = scene.idle(&session).await;
        let mut messages = seen["messages"].as_array().unwrap().iter();
        let origin = format!("model:{model}");
        assert!(messages.any(|it| it["origin"] == origin), "{name}: {seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_heartbeat_has_a_session_of_its_own_each_time() {
    let settings = json!({ "every": "1h", "light": true });
    let scene = Scene::new(&json!({ "beat": beats(&settings) })).await;
    let chat = scene.say(&json!({ "agent": "puppet" }), "hello").await;
    scene.run("beat").await;
    scene.run("beat").await;
    scene.done("beat", 2).await;
    let sessions = scene.sessions("beat").await;
    assert_eq!(sessions.len(), 2);
    assert!(!sessions.contains(&chat), "{sessions:?}");
}

/// The outbound messages of the chat of web pages, the newest first.
async fn outbound_messages(scene: &Scene) -> Vec<Value> {
    let path = "/api/connectors/site/outbound-messages";
    let listed = scene.host.get(path).gives(200).await;
    listed.body["outbound_messages"].as_array().unwrap().clone()
}

/// Comes as a visitor, says something, waits for the reply, and returns the visitor's user.
async fn visit(scene: &Scene) -> String {
    let coming = scene.host.bare(Method::POST, "/chat/site/visitors");
    let visitor = scene.host.send(coming.json(&json!({}))).gives(201).await;
    let saying = scene.host.bare(Method::POST, "/chat/site/messages");
    let saying = saying.bearer_auth(visitor.text("token"));
    scene
        .host
        .send(saying.json(&json!({ "text": "hello" })))
        .gives(202)
        .await;
    scene
        .until("a reply", async || {
            (!outbound_messages(scene).await.is_empty()).then_some(())
        })
        .await;
    format!("visitor-{}", visitor.text("visitor_id"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beat_that_found_nothing_bothers_nobody_and_one_that_did_is_delivered() {
    let site = json!({
        "component": "direct", "agent": "puppet",
        "configuration": { "origins": ["https://a.example"] },
    });
    let connectors = json!({ "connectors": { "site": site } });
    let scene = Scene::of(with(config(&json!({})), &connectors)).await;
    let user = visit(&scene).await;
    let long = format!("HEARTBEAT_OK {}", "x".repeat(301));
    for (name, reply, count) in [
        ("quiet", "HEARTBEAT_OK", 1),
        ("short", "**HEARTBEAT_OK** All is well.", 1),
        ("loud", "The plants are dry.", 2),
        ("long", long.as_str(), 3),
    ] {
        let message = json!({ "steps": [{ "reply": reply }] }).to_string();
        let beat = json!({
            "heartbeat": { "every": "1h" }, "message": message, "user": user,
            "target": { "path": format!("/{user}/site") },
        });
        scene.make(name, &beat).await;
        scene.run(name).await;
        scene.done(name, 1).await;
        scene.reported_once(name).await;
        let sent = outbound_messages(&scene).await;
        assert_eq!(sent.len(), count, "{name}: {sent:?}");
    }
    let bytes = |outbound_message: &Value| outbound_message["bytes"].as_u64().unwrap();
    let sent: Vec<u64> = outbound_messages(&scene).await.iter().map(bytes).collect();
    assert_eq!(sent, [301, 19, 5], "without the mark");
}
