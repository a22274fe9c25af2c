//! Death of the host at every crash point of triggers: a trigger event that was accepted is told in
//! the thread exactly once after the restart, and one that was not can be sent again.

use super::scene::{SECRET, Scene, config, folder, trigger, webhook};
use futures::StreamExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Hosts that run side by side.
const SIDE_BY_SIDE: usize = 2;
/// The time within which a host passes the crash point at which it is to die.
const DEATH: Duration = Duration::from_secs(20);
/// Files that are written at most until the host dies over one.
const FILES: u32 = 20;
/// The trigger of each case.
const NAME: &str = "it";

/// Event that brings a trigger to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The host's start defines it, and nothing else.
    Start,
    /// A call of a webhook.
    Call,
    /// A time that comes due.
    Time,
    /// A file in a watched folder.
    File,
    /// A dead letter.
    Event,
    /// A time whose component fails.
    Failure,
}

/// The crash points with what leads to them, and the passage at which the host is to die.
const CASES: [(Cause, &str, u32); 26] = [
    (Cause::Start, "edge.define.before", 1),
    (Cause::Start, "edge.define.after", 1),
    (Cause::Call, "edge.webhook.before", 1),
    (Cause::Call, "edge.webhook.after", 1),
    (Cause::Call, "edge.call.before", 1),
    (Cause::Call, "edge.call.after", 1),
    (Cause::Call, "edge.fire.before", 1),
    (Cause::Call, "edge.fire.after", 1),
    (Cause::Call, "edge.post.before", 1),
    (Cause::Call, "edge.post.between", 1),
    (Cause::Call, "edge.posted.before", 1),
    (Cause::Call, "edge.posted.after", 1),
    (Cause::Call, "broker.accept.before", 1),
    (Cause::Call, "broker.accept.after", 1),
    (Cause::Time, "edge.due.before", 1),
    (Cause::Time, "edge.due.after", 1),
    (Cause::Time, "edge.fire.after", 1),
    (Cause::Time, "edge.post.between", 1),
    // The first inspection of a folder is one of what was there before.
    (Cause::File, "edge.files.before", 2),
    (Cause::File, "edge.files.after", 2),
    (Cause::File, "edge.post.between", 1),
    (Cause::Event, "edge.heard.before", 1),
    (Cause::Event, "edge.heard.after", 1),
    (Cause::Event, "edge.post.between", 1),
    (Cause::Failure, "edge.fail.before", 1),
    (Cause::Failure, "edge.fail.after", 1),
];

impl Cause {
    /// Returns the trigger.
    fn trigger(self) -> Value {
        let every = json!({ "every": "1d" });
        match self {
            Self::Start => trigger(&json!({ "schedule": every, "message": "x" })),
            Self::Call => webhook(&json!({})),
            // It is made over the API: the time has to be near.
            Self::Time | Self::Failure => Value::Null,
            Self::File => trigger(&json!({
                "files": { "folder": "/inbox", "debounce": "200ms" },
            })),
            Self::Event => trigger(&json!({
                "events": { "on": ["input.dead"] }, "target": { "agent": "other" },
            })),
        }
    }

    /// Returns the configuration.
    fn config(self) -> Value {
        match self.trigger() {
            Value::Null => config(&json!({})),
            trigger => config(&json!({ NAME: trigger })),
        }
    }
}

/// Brings about what a case waits for, in a host that may die over it.
async fn bring_about(cause: Cause, scene: &Scene) {
    match cause {
        Cause::Start => {}
        Cause::Call => {
            let request = scene.bare(NAME, r#"{"n":1}"#).bearer_auth(SECRET);
            // The connection may end with the host.
            let _ = scene
                .host
                .send(request.header("webhook-id", "1"))
                .attempt()
                .await;
        }
        Cause::Time | Cause::Failure => {
            let at = scene.now().await.plus_ms(1_000);
            let schedule = json!({ "at": at.to_string() });
            let mut spec = trigger(&json!({ "schedule": schedule, "message": "It is time." }));
            if cause == Cause::Failure {
                spec["component"] = json!("rogue-trigger");
                spec["message"] = json!("trap");
            }
            scene.make(NAME, &spec).await;
        }
        Cause::File => {
            // The first inspection may come after the first file, which then tells nothing.
            for number in 0..FILES {
                let file = scene.folder.path().join(format!("inbox/{number}"));
                std::fs::write(file, "x").unwrap();
                tokio::time::sleep(Duration::from_millis(500)).await;
                if scene.host.get("/healthz").attempt().await.is_err() {
                    return;
                }
            }
        }
        Cause::Event => {
            let dead = json!({ "steps": [{ "trap": "it gives up" }] }).to_string();
            let words = json!({ "to": { "agent": "puppet" }, "content": dead });
            let _ = scene.host.post("/api/messages", &words).attempt().await;
        }
    }
}

/// Has a host die at a crash point, and looks at what came of its trigger after the restart.
async fn dies_at(cause: Cause, point: &str, passage: u32) {
    let case = format!("{cause:?} {point}:{passage}");
    let mut folder = folder(cause.config()).await;
    // One that dies while it starts brings nothing about.
    if let Ok(host) = folder.start(Some(&format!("{point}:{passage}"))).await {
        let mut scene = Scene::around(folder, host);
        bring_about(cause, &scene).await;
        let died = scene.host.died(DEATH).await;
        assert!(died.is_some(), "{case}: it was never passed");
        folder = scene.folder;
    }
    let host = folder.serve().await;
    let scene = Scene::around(folder, host);
    if cause == Cause::Call {
        // The sender got no answer, and sends it again.
        let answer = scene.call(NAME, "1", &json!({ "n": 1 })).await;
        assert!(matches!(answer.status, 200 | 202), "{case}: {answer:?}");
    }
    is_reported_once(cause, &scene, &case).await;
    let host = scene.host;
    assert!(host.stop().await.success(), "{case}");
    scene.folder.verified().await;
}

async fn is_reported_once(cause: Cause, scene: &Scene, case: &str) {
    match cause {
        Cause::Start => {
            let origin = scene.shown(NAME).await["origin"].clone();
            assert_eq!(origin, "configuration", "{case}");
            assert_eq!(scene.runs(NAME).await, [] as [Value; 0], "{case}");
        }
        Cause::Failure => {
            let run = scene
                .until("another attempt", async || {
                    let runs = scene.runs(NAME).await;
                    assert!(runs.len() <= 1, "{case}: {runs:?}");
                    let run = runs.first()?;
                    (run["attempts"].as_u64() >= Some(2)).then(|| run.clone())
                })
                .await;
            assert_eq!(run["state"], "waiting", "{case}: {run}");
        }
        Cause::File => files_are_reported_once(scene, case).await,
        Cause::Call | Cause::Time | Cause::Event => {
            let runs = scene.done(NAME, 1).await;
            assert_eq!(runs.len(), 1, "{case}: {runs:?}");
            let reported = scene.reported(NAME).await;
            assert_eq!(reported.len(), 1, "{case}: {reported:?}");
        }
    }
}

/// The number of files that a scan sees depends on time. Each file is reported once, the last too.
async fn files_are_reported_once(scene: &Scene, case: &str) {
    let is_there = |number: &u32| {
        let file = format!("inbox/{number}");
        scene.folder.path().join(file).exists()
    };
    let last = (0..FILES).rev().find(is_there).unwrap();
    let reported = scene
        .until(case, async || {
            let reported = scene.reported(NAME).await;
            let texts = reported.iter().filter_map(|it| it["text"].as_str());
            let reported = texts.collect::<Vec<&str>>().join("\n");
            reported
                .contains(&format!("created `{last}`"))
                .then_some(reported)
        })
        .await;
    let listed = reported.split("created `").skip(1);
    let names: Vec<&str> = listed.filter_map(|it| it.split('`').next()).collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), distinct.len(), "{case}: {reported}");
}

/// Tries the cases of some causes.
async fn try_all(causes: &[Cause]) {
    let cases = CASES.iter().filter(|(cause, _, _)| causes.contains(cause));
    let dying = cases.map(|(cause, point, passage)| Box::pin(dies_at(*cause, point, *passage)));
    let dying = futures::stream::iter(dying).buffer_unordered(SIDE_BY_SIDE);
    dying.collect::<Vec<()>>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_told_once_wherever_the_host_dies_over_it() {
    try_all(&[Cause::Call]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_is_told_once_wherever_the_host_dies_over_it() {
    try_all(&[Cause::Start, Cause::Time, Cause::Failure]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_events_are_told_once_wherever_the_host_dies_over_them() {
    try_all(&[Cause::File, Cause::Event]).await;
}

#[test]
fn every_crash_point_of_triggers_is_tried() {
    let [triggers, _] = edge::CRASH_POINTS;
    let tried: BTreeSet<&str> = CASES.iter().map(|(_, point, _)| *point).collect();
    let all: BTreeSet<&str> = triggers.iter().copied().collect();
    let left: Vec<&&str> = all.difference(&tried).collect();
    assert!(left.is_empty(), "{left:?}");
}
