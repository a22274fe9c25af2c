//! Storms of calls and of messages: what is too much is refused, and everybody else is served.

use super::scene::{Scene, trigger, webhook};
use futures::StreamExt;
use serde_json::{Value, json};

/// Trigger events of one trigger that wait.
const PENDING_MAX: usize = 1_000;
/// Calls beyond them.
const MORE: usize = 100;
/// Calls that are under way at a time.
const AT_ONCE: usize = 32;
/// Messages of others meanwhile.
const OTHERS: usize = 20;

/// Calls a webhook so often, and returns the statuses with the seconds to wait.
async fn flood(scene: &Scene, name: &str, count: usize) -> Vec<(u16, Option<u64>)> {
    let calls = futures::stream::iter(0..count).map(async |number| {
        let answer = scene.call(name, &number.to_string(), &json!({})).await;
        (answer.status, answer.retry_after_s)
    });
    calls.buffer_unordered(AT_ONCE).collect().await
}

/// Says something again and again, and returns the statuses.
async fn others(scene: &Scene) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..OTHERS {
        let words = json!({ "to": { "agent": "other" }, "content": "hello" });
        let said = scene.host.post("/api/messages", &words).await;
        statuses.push(said.status);
    }
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_calls_is_refused_beyond_its_limit_and_others_are_served() {
    let stuck = webhook(&json!({ "component": "rogue-trigger", "message": "later" }));
    let scene = Scene::new(&json!({ "stuck": stuck, "calls": webhook(&json!({})) })).await;
    let flooding = flood(&scene, "stuck", PENDING_MAX + MORE);
    let (flooded, statuses) = tokio::join!(flooding, others(&scene));
    assert_eq!(statuses, [202; OTHERS], "messages are taken meanwhile");
    let taken = flooded.iter().filter(|(status, _)| *status == 202).count();
    assert_eq!(taken, PENDING_MAX, "as many as may wait");
    let refused: Vec<_> = flooded
        .iter()
        .filter(|(status, _)| *status != 202)
        .collect();
    assert!(
        refused
            .iter()
            .all(|(status, wait)| *status == 429 && wait.is_some_and(|seconds| seconds > 0)),
        "{refused:?}"
    );
    assert_eq!(scene.shown("stuck").await["waiting"], PENDING_MAX);
    assert_eq!(scene.call("calls", "1", &json!({})).await.status, 202);
    scene.reported_once("calls").await;
}

/// A trigger that says a hundred things each time fills one queue, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_messages_each_time_fill_the_queue_of_their_session_alone() {
    let every = json!({ "every": "1d" });
    let storm = json!({ "schedule": every, "component": "rogue-trigger", "message": "storm" });
    let calm = json!({ "schedule": every, "message": "calm", "target": { "agent": "other" } });
    let scene = Scene::new(&json!({ "storm": trigger(&storm), "calm": trigger(&calm) })).await;
    for _ in 0..12 {
        scene.run("storm").await;
    }
    scene.run("calm").await;
    assert_eq!(scene.reported_once("calm").await, "calm");
    assert_eq!(others(&scene).await, [202; OTHERS]);
    let runs = scene
        .until("the first storm", async || {
            let runs = scene.runs("storm").await;
            let is_over = runs.last().is_some_and(|run| run["state"] == "done");
            is_over.then_some(runs)
        })
        .await;
    let messages = runs.last().unwrap()["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 100);
    let outcomes: Vec<&Value> = messages.iter().map(|it| &it["outcome"]).collect();
    assert!(outcomes.iter().all(|it| **it == "accepted"), "{outcomes:?}");
}
