//! Connectors from the command line: what an operator sees of them, and the test of one.

use super::scene::{ADA, Scene};
use reqwest::Method;
use serde_json::{Value, json};
use std::process::Output;

async fn tested(scene: &Scene) -> Output {
    let command = ["connector", "test", "telegram", "--user", "ada", "Hello."];
    scene.folder.run(&command).await
}

/// Returns the lines of the ledger that a filter leaves.
async fn ledger(scene: &Scene, filter: [&str; 2]) -> Vec<Value> {
    let [option, value] = filter;
    let ledger = scene
        .folder
        .succeeds(&["audit", "--json", option, value])
        .await;
    let lines = String::from_utf8(ledger.stdout).unwrap();
    let lines = lines.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Runs a command that is to be refused, and returns what it said about that.
async fn refused(scene: &Scene, command: &[&str]) -> String {
    let output = scene.folder.run(command).await;
    assert_eq!(output.status.code(), Some(3), "{command:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
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
    let stalled = tested(&scene).await;
    assert_eq!(stalled.status.code(), Some(1), "{stalled:?}");
    let said = String::from_utf8(stalled.stderr).unwrap();
    assert!(
        said.contains("the message is not sent") && said.contains("Unauthorized"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_names_the_connector_and_no_run_where_there_is_none() {
    let scene = Scene::new().await;
    assert!(tested(&scene).await.status.success());
    let lines = ledger(&scene, ["--agent", "connector:telegram"]).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_of_a_run_has_what_was_sent_for_it() {
    let scene = Scene::new().await;
    scene.telegram.say(ADA, "hello");
    let delivered = scene.until_outbound_message("delivered").await;
    let run = delivered["cause"]["run_id"].as_str().unwrap();
    let lines = ledger(&scene, ["--run", run]).await;
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
    let said = refused(&scene, &["connector", "bind", "alice", "nope:5"]).await;
    assert!(
        said.contains("`nope`") && said.contains("`telegram`"),
        "{said}"
    );
    let path = "/api/users/alice/connectors/nope:5";
    let line = scene.host.line();
    let put = line.ask(Method::PUT, path, None).await;
    put.has(
        404,
        &json!({ "code": "CONNECTOR_NOT_FOUND", "field": "path:key" }),
    );
    for command in [
        &["connector", "outbound-messages", "nope"][..],
        &["connector", "pairings", "--connector", "nope"],
        &["connector", "test", "nope", "--user", "ada"],
    ] {
        let said = refused(&scene, command).await;
        assert!(said.contains("`connector list`"), "{command:?}: {said}");
    }
    let audit = ["audit", "--agent", "connector:nope"];
    let output = scene.folder.run(&audit).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no connector `nope` now"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_on_a_connector_names_what_there_is() {
    let scene = Scene::new().await;
    for (command, reported) in [
        (
            &[
                "connector",
                "outbound-messages",
                "telegram",
                "--state",
                "sent",
            ][..],
            "queued, started, failed, delivered, unknown, dead",
        ),
        (
            &["connector", "requeue", "telegram", "first"],
            "`connector outbound-messages telegram`",
        ),
        (
            &["connector", "test", "telegram", "--user", "bob"],
            "`connector bind bob telegram:ID`",
        ),
        (
            &["connector", "unbind", "ada", "telegram:8"],
            "`connector list ada`",
        ),
        (&["connector", "unpair", "ABCD2345"], "`connector pairings`"),
        (&["audit", "--agent", "connector:"], "connector:<name>"),
        (&["audit", "--user", "a b"], "is no user id"),
    ] {
        let said = refused(&scene, command).await;
        assert!(said.contains(reported), "{command:?}: {said}");
    }
}
