//! Connectors from the command line: what an operator sees of them, and the test of one.

use super::scene::Scene;
use serde_json::Value;
use std::process::Output;

async fn tested(scene: &Scene) -> Output {
    let command = ["connector", "test", "telegram", "--user", "ada", "Hello."];
    scene.folder.run(&command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_from_the_command_line_fails_with_what_holds_the_message_up() {
    let scene = Scene::new().await;
    let arrived = tested(&scene).await;
    assert!(arrived.status.success(), "{arrived:?}");
    let printed = String::from_utf8(arrived.stdout).unwrap();
    assert!(printed.contains("  delivered  "), "{printed}");
    assert_eq!(scene.telegram.messages(1).await.remove(0).text, "Hello.");
    scene.telegram.revoke();
    scene.until_state("unauthorised").await;
    let held_up = tested(&scene).await;
    assert_eq!(held_up.status.code(), Some(1), "{held_up:?}");
    let said = String::from_utf8(held_up.stderr).unwrap();
    assert!(
        said.contains("the message is not sent") && said.contains("Unauthorized"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_names_the_connector_and_no_run_where_there_is_none() {
    let scene = Scene::new().await;
    assert!(tested(&scene).await.status.success());
    let command = ["audit", "--json", "--agent", "connector:telegram"];
    let ledger = scene.folder.run(&command).await;
    assert!(ledger.status.success(), "{ledger:?}");
    let lines = String::from_utf8(ledger.stdout).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let is_sent = |line: &Value| line["tool"] == "connector.send";
    assert!(lines.iter().any(is_sent), "{lines:?}");
    let has_run = |line: &Value| line.get("run_id").is_some();
    assert!(!lines.iter().any(has_run), "{lines:?}");
    let explain = ["grants", "explain", "--connector", "telegram"];
    let explained = scene.folder.run(&explain).await;
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(
        explained.contains("secret telegram for 127.0.0.1"),
        "{explained}"
    );
}
