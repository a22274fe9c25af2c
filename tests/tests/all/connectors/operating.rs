//! Connectors from the command line: what an operator sees of them, and the test of one.

use super::scene::{ADA, Scene};
use reqwest::Method;
use serde_json::{Value, json};

/// Tests the connector.
const TEST: &str = "connector test telegram --user ada Hello.";

/// Returns the lines of the ledger that a filter leaves.
async fn ledger(scene: &Scene, filter: &str) -> Vec<Value> {
    let audit = format!("audit --json {filter}");
    let lines = scene.folder.prints(&audit, 0, &[]).await;
    let lines = lines.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_from_the_command_line_fails_with_what_holds_the_message_up() {
    let scene = Scene::new().await;
    scene.folder.prints(TEST, 0, &["  delivered  "]).await;
    assert_eq!(scene.telegram.messages(1).await.remove(0).text, "Hello.");
    scene.telegram.revoke();
    scene.until_state("unauthorised").await;
    let stalled = ["the message is not sent", "Unauthorized"];
    scene.folder.complains(TEST, 1, &stalled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_names_the_connector_and_no_run_where_there_is_none() {
    let scene = Scene::new().await;
    scene.folder.prints(TEST, 0, &[]).await;
    let lines = ledger(&scene, "--agent connector:telegram").await;
    let is_sent = |line: &Value| line["tool"] == "connector.send";
    assert!(lines.iter().any(is_sent), "{lines:?}");
    let has_run = |line: &Value| line.get("run_id").is_some();
    assert!(!lines.iter().any(has_run), "{lines:?}");
    let explain = "grants explain --connector telegram";
    let secret = "secret telegram for 127.0.0.1";
    scene.folder.prints(explain, 0, &[secret]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_of_a_run_has_what_was_sent_for_it() {
    let scene = Scene::new().await;
    scene.telegram.say(ADA, "hello");
    let delivered = scene.until_outbound_message("delivered").await;
    let run = delivered["cause"]["run_id"].as_str().unwrap();
    let lines = ledger(&scene, &format!("--run {run}")).await;
    assert!(lines.iter().all(|line| line["run_id"] == run), "{lines:?}");
    let is_sent = |line: &&Value| line["tool"] == "connector.send";
    let sent: Vec<&Value> = lines.iter().filter(is_sent).collect();
    let is_of_connector = |line: &&Value| line["definition"] == "connector:telegram";
    assert!(
        !sent.is_empty() && sent.iter().all(is_of_connector),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_connector_has_is_refused_with_those_that_there_are() {
    let scene = Scene::new().await;
    let names = ["`nope`", "`telegram`"];
    scene
        .folder
        .complains("connector bind alice nope:5", 3, &names)
        .await;
    let path = "/api/users/alice/connectors/nope:5";
    let line = scene.host.line();
    let put = line.ask(Method::PUT, path, None).await;
    put.has(
        404,
        &json!({ "code": "CONNECTOR_NOT_FOUND", "field": "path:key" }),
    );
    for (command, code, told) in [
        (
            "connector outbound-messages nope",
            Some(3),
            "`connector list`",
        ),
        (
            "connector pairings --connector nope",
            Some(3),
            "`connector list`",
        ),
        (
            "connector test nope --user ada",
            Some(3),
            "`connector list`",
        ),
        (
            "audit --agent connector:nope",
            None,
            "no connector `nope` now",
        ),
    ] {
        scene.folder.complains(command, code, &[told]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_on_a_connector_names_what_there_is() {
    let scene = Scene::new().await;
    for (command, reported) in [
        (
            "connector outbound-messages telegram --state sent",
            "queued, started, failed, delivered, unknown, dead",
        ),
        (
            "connector requeue telegram first",
            "`connector outbound-messages telegram`",
        ),
        (
            "connector test telegram --user bob",
            "`connector bind bob telegram:ID`",
        ),
        ("connector unbind ada telegram:8", "`connector list ada`"),
        ("connector unpair ABCD2345", "`connector pairings`"),
        ("audit --agent connector:", "connector:<name>"),
    ] {
        scene.folder.complains(command, 3, &[reported]).await;
    }
    // Not by spaces: the name of the user has one.
    let output = scene.folder.run(&["audit", "--user", "a b"]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("is no user id"), "{said}");
}
