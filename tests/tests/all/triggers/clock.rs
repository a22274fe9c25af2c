//! Schedules: a time that comes, comes again, or was missed reaches the agent's thread as its
//! policy says, and the history tells of it.

use super::scene::{Scene, config, folder, trigger};
use agent_host_tests::process::PATIENCE;
use domain::time::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const MINUTE_MS: u64 = 60_000;
/// The time in which what is not to happen would have happened.
const MEANWHILE: Duration = Duration::from_millis(500);
/// Longer than three intervals of ten minutes, by more than a time may be late.
const DOWN_MS: i64 = 36 * 60_000;

/// Returns a schedule whose message says when it was due.
fn scheduled(schedule: &Value) -> Value {
    let message = "It is {{payload.due}}, says {{trigger.id}}.";
    trigger(&json!({ "schedule": schedule, "message": message }))
}

/// The times at which the trigger events of a history were due, the oldest first.
fn due(runs: &[Value]) -> Vec<String> {
    let due = |run: &Value| run["trigger_event"]["due"].as_str().unwrap().to_owned();
    runs.iter().rev().map(due).collect()
}

fn after(begin: Timestamp, minutes: &[u64]) -> Vec<String> {
    let time = |minutes: &u64| begin.plus_ms(minutes * MINUTE_MS).to_string();
    minutes.iter().map(time).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_comes_is_told_in_the_thread_once_and_is_over() {
    let scene = Scene::new(&json!({})).await;
    let at = scene.now().await.plus_ms(1_500).to_string();
    scene.make("once", &scheduled(&json!({ "at": at }))).await;
    assert_eq!(scene.shown("once").await["next_due_at"], json!(at));
    let runs = scene.done("once", 1).await;
    let trigger_event = json!({ "kind": "clock", "due": at, "missed": 0 });
    assert_eq!(runs[0]["trigger_event"], trigger_event);
    assert_eq!(runs[0]["state"], "done");
    assert_eq!(runs[0]["messages"][0]["outcome"], "accepted");
    let reported = scene.reported("once").await;
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(
        reported[0]["text"],
        json!(format!("It is {at}, says once."))
    );
    assert_eq!(reported[0]["origin"], "trigger:once");
    assert_eq!(reported[0]["role"], "user");
    assert_eq!(reported[0]["untrusted"], false, "the operator's own words");
    let over = scene.shown("once").await;
    assert_eq!(over["state"], "paused");
    assert_eq!(over["pause"]["kind"], "done");
    assert_eq!(over["next_due_at"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_comes_again_and_its_history_says_when_it_is_due_next() {
    let mut scene = Scene::new(&json!({})).await;
    let anchor = scene.now().await.plus_ms(1_000);
    let every = json!({ "every": "1m", "anchor": anchor.to_string() });
    scene.make("tick", &scheduled(&every)).await;
    scene.done("tick", 1).await;
    scene.pass_until_due("tick").await;
    let runs = scene.done("tick", 2).await;
    assert_eq!(due(&runs), after(anchor, &[0, 1]));
    let history = scene.host.get("/api/triggers/tick/history").await;
    let next = after(anchor, &[2]).remove(0);
    assert_eq!(history.body["next_due_at"], json!(next));
    let reported = scene.reported("tick").await;
    let texts: Vec<&str> = reported
        .iter()
        .filter_map(|it| it["text"].as_str())
        .collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0] < texts[1], "in their order: {texts:?}");
    let session = scene.sessions("tick").await;
    assert_eq!(session.len(), 1, "both go to the same chat: {session:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cron_line_comes_at_its_time_of_the_day_in_its_zone() {
    let mut scene = Scene::new(&json!({})).await;
    // This zone is always 5:30 hours ahead of UTC.
    let cron = json!({ "cron": "0 9 * * *", "timeZone": "Asia/Kolkata", "spread": false });
    scene.make("nine", &scheduled(&cron)).await;
    for count in 1..=2 {
        let next = scene.shown("nine").await["next_due_at"].clone();
        let next = next.as_str().unwrap().to_owned();
        assert!(next.ends_with("T03:30:00.000Z"), "{next}");
        scene.pass_until_due("nine").await;
        let runs = scene.done("nine", count).await;
        assert_eq!(due(&runs)[count - 1], next);
        let reported = scene.reported("nine").await;
        assert_eq!(reported.len(), count, "{reported:?}");
        let text = json!(format!("It is {next}, says nine."));
        assert_eq!(reported[count - 1]["text"], text);
    }
}

/// A run by hand counts beside the schedule, which stays as it is, and once under its key.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_by_hand_is_one_trigger_event_and_the_schedule_stays_as_it_is() {
    let scene = Scene::new(&json!({ "daily": scheduled(&json!({ "every": "1d" })) })).await;
    let before = scene.shown("daily").await["next_due_at"].clone();
    let path = "/api/triggers/daily/run";
    let line = scene.host.line();
    let first = line.ask_under("one", Method::POST, path, None).await;
    let again = line.ask_under("one", Method::POST, path, None).await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(again.body, first.body);
    let runs = scene.done("daily", 1).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(runs[0]["trigger_event_id"], first.body["trigger_event_id"]);
    assert_eq!(runs[0]["run_by_user_id"], "local");
    assert_eq!(scene.reported("daily").await.len(), 1);
    assert_eq!(scene.shown("daily").await["next_due_at"], before);
}

#[tokio::test(flavor = "multi_thread")]
async fn times_that_were_missed_while_no_host_ran_are_dealt_with_by_their_policy() {
    let policy = |missed: &str| scheduled(&json!({ "every": "10m", "missed": missed }));
    let scene = Scene::new(&json!({
        "skip": policy("skip"), "once": policy("once"), "all": policy("all"),
    }))
    .await;
    let begin = scene.shown("once").await["defined_at"].clone();
    let begin: Timestamp = begin.as_str().unwrap().parse().unwrap();
    let scene = scene.restarted_after(DOWN_MS).await;
    let skipped = scene.done("skip", 1).await;
    assert_eq!(skipped.len(), 1, "{skipped:?}");
    assert_eq!(skipped[0]["state"], "skipped");
    assert_eq!(skipped[0]["trigger_event"]["count"], 3);
    assert_eq!(skipped[0]["trigger_event"]["reason"], "missed");
    let once = scene.done("once", 1).await;
    assert_eq!(once.len(), 1, "{once:?}");
    assert_eq!(once[0]["trigger_event"]["missed"], 2);
    assert_eq!(due(&once), after(begin, &[30]));
    let all = scene.done("all", 3).await;
    assert_eq!(due(&all), after(begin, &[10, 20, 30]));
    for (name, count) in [("skip", 0), ("once", 1), ("all", 3)] {
        assert_eq!(scene.reported(name).await.len(), count, "{name}");
        let next = scene.shown(name).await["next_due_at"].clone();
        assert_eq!(next, json!(after(begin, &[40])[0]), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_ahead_finds_each_time_between_once() {
    let all = json!({ "every": "10m", "missed": "all" });
    let mut scene = Scene::new(&json!({ "all": scheduled(&all) })).await;
    for passed in 1..=3 {
        scene.pass(20 * MINUTE_MS).await;
        scene.done("all", 2 * passed).await;
    }
    // The longest sleep of the clock is a second.
    sleep(Duration::from_millis(1_500)).await;
    let scene = scene.restarted_after(0).await;
    let mut times = due(&scene.done("all", 6).await);
    assert_eq!(times.len(), 6, "{times:?}");
    times.dedup();
    assert_eq!(times.len(), 6, "{times:?}");
}

/// The watch over turns looks at each start.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_does_not_end_within_the_hour_is_told_to_the_operator_once() {
    let asks = json!({ "steps": [{ "start": [{ "key": "q", "client": "question" }] }] });
    let keys = json!({ "schedule": { "every": "30d" }, "message": asks.to_string() });
    let scene = Scene::new(&json!({ "asks": trigger(&keys) })).await;
    scene.run("asks").await;
    let run = scene.done("asks", 1).await[0].clone();
    assert_eq!(run["stuck"], false, "{run}");
    let hour_ms = i64::try_from(60 * MINUTE_MS).unwrap();
    let scene = scene.restarted_after(hour_ms - 60_000).await;
    sleep(MEANWHILE).await;
    assert_eq!(scene.runs("asks").await[0]["stuck"], false, "59 minutes");
    let mut scene = scene.restarted_after(120_000).await;
    for _ in 0..2 {
        scene
            .until("a stuck turn", async || {
                (scene.runs("asks").await[0]["stuck"] == true).then_some(())
            })
            .await;
        let troubles = scene.events("trigger.troubled.v1").await;
        assert_eq!(troubles.len(), 1, "{troubles:?}");
        let trouble = json!({ "kind": "stuck", "trigger_event_id": run["trigger_event_id"] });
        assert_eq!(troubles[0]["data"]["trouble"], trouble);
        scene = scene.restarted_after(60_000).await;
        sleep(MEANWHILE).await;
    }
    let state = scene.shown("asks").await["state"].clone();
    assert_eq!(state, "active", "it is told, and nothing else");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_by_hand_of_a_paused_trigger_is_done_also_if_the_host_dies_over_it() {
    let daily = scheduled(&json!({ "cron": "0 9 * * *" }));
    for point in ["edge.call.before", "edge.post.before"] {
        let folder = folder(config(&json!({ "daily": daily }))).await;
        let host = folder.start(Some(&format!("{point}:1"))).await.unwrap();
        let mut scene = Scene::around(folder, host);
        let paused = scene.command("daily", "pause").await;
        assert_eq!(paused.body["state"], "paused", "{paused:?}");
        // The connection may end with the host.
        let _ = scene
            .host
            .post("/api/triggers/daily/run", &json!({}))
            .attempt()
            .await;
        let died = scene.host.died(PATIENCE).await;
        assert!(died.is_some(), "{point} was never passed");
        let Scene { folder, .. } = scene;
        let host = folder.serve().await;
        let scene = Scene::around(folder, host);
        let runs = scene.done("daily", 1).await;
        assert_eq!(runs[0]["state"], "done", "{point}: {runs:?}");
        assert_eq!(scene.reported("daily").await.len(), 1, "{point}");
        let shown = scene.shown("daily").await;
        assert_eq!(shown["pause"]["kind"], "user", "{point}: {shown}");
    }
}
