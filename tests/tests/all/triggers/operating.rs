//! Triggers from the command line: what an operator sees of them and does with them.

use super::scene::{Scene, trigger};
use serde_json::{Value, json};

/// A host with a trigger that is due in a year.
async fn scene() -> Scene {
    let yearly = json!({ "schedule": { "every": "365d" }, "message": "A year has passed." });
    Scene::new(&json!({ "yearly": trigger(&yearly) })).await
}

/// Runs a command that is to succeed, and returns what it printed.
async fn said(scene: &Scene, command: &[&str]) -> String {
    let output = scene.folder.run(command).await;
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_is_listed_run_paused_and_looked_back_at_from_the_command_line() {
    let scene = scene().await;
    let listed = said(&scene, &["trigger", "list"]).await;
    assert!(listed.starts_with("yearly "), "{listed}");
    assert!(listed.contains("  schedule  active  "), "{listed}");
    let ran = said(&scene, &["trigger", "run", "yearly"]).await;
    assert!(
        ran.starts_with("yearly is fired; the trigger event is "),
        "{ran}"
    );
    scene.done("yearly", 1).await;
    let history = said(&scene, &["trigger", "history", "yearly"]).await;
    for part in ["  done ", "  run by local  ", "-> session "] {
        assert!(history.contains(part), "{part} is in {history}");
    }
    let paused = said(&scene, &["trigger", "pause", "yearly"]).await;
    assert!(paused.contains(" paused "), "{paused}");
    let resumed = said(&scene, &["trigger", "resume", "yearly", "--json"]).await;
    let resumed: Value = serde_json::from_str(&resumed).unwrap();
    assert_eq!(resumed["state"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_on_a_trigger_names_the_command_that_helps() {
    let scene = scene().await;
    for (command, helps) in [
        (["trigger", "remove", "yearly"], "`trigger pause`"),
        (["trigger", "show", "nowhere"], "`trigger list`"),
        (["trigger", "run", "nowhere"], "`trigger list`"),
        (["trigger", "history", "nowhere"], "`trigger list`"),
    ] {
        let output = scene.folder.run(&command).await;
        assert_eq!(output.status.code(), Some(3), "{command:?}: {output:?}");
        let reported = String::from_utf8(output.stderr).unwrap();
        assert!(reported.contains(helps), "{command:?}: {reported}");
    }
    let audit = ["audit", "--agent", "trigger:nowhere"];
    let output = scene.folder.run(&audit).await;
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(reported.contains("no trigger `nowhere` now"), "{reported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_says_what_fires_next_and_the_explanation_what_it_may() {
    let scene = scene().await;
    let checked = said(&scene, &["config", "check"]).await;
    assert!(
        checked.contains("  trigger     yearly (schedule) fires next: 20"),
        "{checked}"
    );
    let explained = said(&scene, &["grants", "explain", "--trigger", "yearly"]).await;
    for part in [
        "the trigger yearly calls schedule@",
        "the log, a frozen clock and seeded randomness, and nothing else",
        "its messages go to the agent puppet",
    ] {
        assert!(explained.contains(part), "{part} is in {explained}");
    }
}
