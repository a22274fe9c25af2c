//! Triggers from the command line: what an operator sees of them and does with them.

use super::scene::{Scene, trigger};
use serde_json::{Value, json};

/// A host with a trigger that is due in a year.
async fn scene() -> Scene {
    let yearly = json!({ "schedule": { "every": "365d" }, "message": "A year has passed." });
    Scene::new(&json!({ "yearly": trigger(&yearly) })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_is_listed_run_paused_and_looked_back_at_from_the_command_line() {
    let scene = scene().await;
    let folder = &scene.folder;
    let listed = folder
        .prints("trigger list", 0, &["  schedule  active  "])
        .await;
    assert!(listed.starts_with("yearly "), "{listed}");
    let ran = folder.prints("trigger run yearly", 0, &[]).await;
    assert!(
        ran.starts_with("yearly is fired; the trigger event is "),
        "{ran}"
    );
    scene.done("yearly", 1).await;
    let parts = ["  done ", "  run by local  ", "-> session "];
    folder.prints("trigger history yearly", 0, &parts).await;
    folder
        .prints("trigger pause yearly", 0, &[" paused "])
        .await;
    let resumed = folder.prints("trigger resume yearly --json", 0, &[]).await;
    let resumed: Value = serde_json::from_str(&resumed).unwrap();
    assert_eq!(resumed["state"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_on_a_trigger_names_the_command_that_helps() {
    let scene = scene().await;
    for (command, code, told) in [
        ("trigger remove yearly", Some(3), "`trigger pause`"),
        ("trigger show nowhere", Some(3), "`trigger list`"),
        ("trigger run nowhere", Some(3), "`trigger list`"),
        ("trigger history nowhere", Some(3), "`trigger list`"),
        (
            "audit --agent trigger:nowhere",
            None,
            "no trigger `nowhere` now",
        ),
    ] {
        scene.folder.complains(command, code, &[told]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_says_what_fires_next_and_the_explanation_what_it_may() {
    let scene = scene().await;
    let next = "  trigger     yearly (schedule) fires next: 20";
    scene.folder.prints("config check", 0, &[next]).await;
    let parts = [
        "the trigger yearly calls schedule@",
        "the log, a frozen clock and seeded randomness, and nothing else",
        "its messages go to the agent puppet",
    ];
    let explain = "grants explain --trigger yearly";
    scene.folder.prints(explain, 0, &parts).await;
}
