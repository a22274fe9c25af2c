//! Events of the host as trigger events, for those whom the operator lets hear them.

use super::scene::{Scene, config, trigger, with};
use agent_host_tests::process::tells;
use serde_json::{Value, json};
use std::time::Duration;

/// Returns a trigger that hears a kind of events and tells the other agent.
fn hears(kind: &str, keys: &Value) -> Value {
    let heard = json!({ "events": { "on": [kind] }, "target": { "agent": "other" } });
    with(trigger(&heard), keys)
}

/// Words over which the puppet fails for good.
fn deadly() -> String {
    json!({ "steps": [{ "trap": "it gives up" }] }).to_string()
}

/// Returns a configuration in which `leads` leads lessons that complete at once.
fn with_lessons(triggers: &Value) -> Value {
    let mut config = config(triggers);
    let script = json!({ "steps": [{ "complete": { "score": 1 } }] });
    config["agents"].as_array_mut().unwrap().push(json!({
        "agentId": "leads", "displayName": "Leads", "component": "puppet",
        "settings": { "script": script }, "sessions": { "lesson": { "timeLimitS": 3600 } },
    }));
    config
}

async fn lesson(scene: &Scene) {
    let lesson = json!({ "session_type": "lesson" });
    scene
        .host
        .post("/api/agents/leads/sessions", &lesson)
        .gives(201)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_reaches_those_who_may_hear_it_and_nobody_else() {
    let agents = json!({ "events": { "on": ["input.dead"], "agents": ["lea*"] } });
    let scene = Scene::new(&json!({
        "hears": hears("input.dead", &json!({})),
        "other-agents": hears("input.dead", &agents),
        "other-kind": hears("session.completed", &json!({})),
    }))
    .await;
    scene.say(&json!({ "agent": "puppet" }), &deadly()).await;
    let reported = scene.reported_once("hears").await;
    tells(&reported, &["input.dead"]);
    let dead = scene.events("session.input.dead.v1").await;
    assert_eq!(dead.len(), 1, "{dead:?}");
    let input = dead[0]["data"]["input_id"].as_str().unwrap();
    tells(&reported, &[input]);
    assert_eq!(scene.reported("hears").await[0]["untrusted"], true);
    let run = scene.runs("hears").await[0].clone();
    assert_eq!(run["trigger_event"]["name"], "input.dead");
    let scene = scene.restarted_after(0).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(scene.done("hears", 1).await.len(), 1, "heard once");
    for name in ["other-agents", "other-kind"] {
        assert_eq!(scene.runs(name).await, [] as [Value; 0], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completed_session_is_told_with_what_came_of_it() {
    let message = "A {{payload.data.session_type}} of {{payload.data.user_id}} is over: \
                   {{payload.data.summary.score}}.";
    let over = hears("session.completed", &json!({ "message": message }));
    let scene = Scene::of(with_lessons(&json!({ "over": over }))).await;
    lesson(&scene).await;
    assert_eq!(
        scene.reported_once("over").await,
        "A lesson of local is over: 1."
    );
    lesson(&scene).await;
    scene.done("over", 2).await;
    assert_eq!(scene.reported("over").await.len(), 2);
}

/// Returns a host whose trigger `echoes` hears of a dead letter and says this, after that has died
/// too. Another trigger hears of both.
async fn echoed(message: String) -> Scene {
    let keys = json!({ "message": message, "target": { "agent": "puppet" } });
    let scene = Scene::new(&json!({
        "echoes": hears("input.dead", &keys),
        "counts": hears("input.dead", &json!({})),
    }))
    .await;
    scene.say(&json!({ "agent": "puppet" }), &deadly()).await;
    let counted = scene.done("counts", 2).await;
    assert_eq!(counted.len(), 2, "the first, and that of the echo");
    tokio::time::sleep(Duration::from_millis(500)).await;
    scene
}

/// A trigger does not hear of what it brings about itself: it would never come to rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_does_not_hear_the_dead_letter_that_it_brings_about() {
    let scene = echoed(deadly()).await;
    assert_eq!(scene.runs("echoes").await.len(), 1);
    assert_eq!(scene.events("session.input.dead.v1").await.len(), 2);
}

/// Nor where an agent that it speaks to hands the work over that fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_does_not_hear_the_dead_letter_of_work_handed_over_for_it() {
    let hands_over = json!({ "steps": [
        { "start": [{ "key": "d", "agent": "other", "text": deadly() }] },
        { "reply": "handed over" },
    ] });
    let scene = echoed(hands_over.to_string()).await;
    assert_eq!(scene.runs("echoes").await.len(), 1);
}

/// Two triggers that hear what the other one brings about come to rest.
#[tokio::test(flavor = "multi_thread")]
async fn triggers_that_wake_each_other_come_to_rest() {
    let wakes = |hears: &str, tells: &str| {
        with(
            trigger(&json!({ "events": { "on": ["input.dead"], "agents": [hears] } })),
            &json!({ "message": deadly(), "target": { "agent": tells } }),
        )
    };
    let triggers = json!({
        "pings": wakes("puppet", "other"),
        "pongs": wakes("other", "puppet"),
    });
    let scene = Scene::new(&triggers).await;
    scene.say(&json!({ "agent": "puppet" }), &deadly()).await;
    let passed_over = scene
        .until("the end of the chain", async || {
            let runs = scene.runs("pings").await;
            runs.into_iter()
                .find(|run| run["trigger_event"]["kind"] == "skipped")
        })
        .await;
    assert_eq!(
        passed_over["trigger_event"]["reason"], "chain",
        "{passed_over}"
    );
    let scene = scene.restarted_after(0).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let chains = async |name| {
        let runs = scene.runs(name).await;
        let chain = |run: &Value| run["trigger_event"]["chain"].as_u64().unwrap_or(0);
        let fired = runs.iter().filter(|run| run["state"] == "done");
        let mut chains: Vec<u64> = fired.map(chain).collect();
        chains.sort_unstable();
        chains
    };
    assert_eq!(chains("pings").await, [0, 2]);
    assert_eq!(chains("pongs").await, [1, 3]);
    assert_eq!(scene.events("session.input.dead.v1").await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_heard_from_the_definition_of_a_trigger_on() {
    let scene = Scene::of(with_lessons(&json!({}))).await;
    lesson(&scene).await;
    scene
        .until("the end of the lesson", async || {
            let over = scene.events("agent.session.completed.v1").await;
            (!over.is_empty()).then_some(())
        })
        .await;
    scene
        .make("over", &hears("session.completed", &json!({})))
        .await;
    lesson(&scene).await;
    assert_eq!(scene.done("over", 1).await.len(), 1);
}

/// Words with which the puppet asks the other agent so often, one time after the other.
fn asking(times: usize) -> String {
    let asks = (0..times).map(|number| {
        let key = format!("d{number}");
        json!({ "start": [{ "key": key, "agent": "other", "text": "hello" }] })
    });
    let steps: Vec<Value> = asks.chain([json!({ "reply": "done" })]).collect();
    json!({ "steps": steps }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_told_of_once_when_four_fifths_of_it_are_used_up() {
    let message = "{{payload.data.calls.left}} of {{payload.data.calls.limit}} calls are left to \
                   {{payload.data.user_id}}.";
    let spent = hears("budget.80", &json!({ "message": message }));
    let mut config = config(&json!({ "spent": spent }));
    config["agents"][0]["limits"] = json!({ "toolCallsMax": 5 });
    let scene = Scene::of(config).await;
    for times in [3, 4] {
        let chat = scene
            .say(&json!({ "agent": "puppet" }), &asking(times))
            .await;
        scene.idle(&chat).await;
    }
    let reported = scene.reported_once("spent").await;
    assert_eq!(reported, "1 of 5 calls are left to local.");
    let scene = scene.restarted_after(0).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(scene.done("spent", 1).await.len(), 1, "told once");
}
