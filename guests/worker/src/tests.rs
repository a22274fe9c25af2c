//! The worker and its tasks.

use crate::Worker;
use agent_host_sdk::harness::{Conversation, ConversationStatus, Scene};
use agent_host_sdk::{Agent as _, Decision, Outcome, Settlement, ToolError};
use serde_json::{Value, json};

fn with_files() -> Conversation<Worker> {
    Conversation::new(Worker).tool("read_file", |parameters: Value| {
        match parameters["path"].as_str() {
            Some("notes.txt") => Ok("buy milk".to_owned()),
            _ => Err(ToolError::NotFound("there is no such file".to_owned())),
        }
    })
}

fn failure(status: ConversationStatus) -> String {
    match status {
        ConversationStatus::Failed(reason) => reason,
        other => panic!("it did not fail: {other:?}"),
    }
}

#[test]
fn an_operation_becomes_a_tool_call_and_its_result_the_reply() {
    let mut conversation = with_files();
    assert_eq!(
        conversation
            .say(r#"{"operation": "read_file", "parameters": {"path": "notes.txt"}}"#)
            .words(),
        "buy milk"
    );
    assert_eq!(
        conversation.calls(),
        [("read_file".to_owned(), json!({ "path": "notes.txt" }))]
    );
    assert!(conversation.requests().is_empty());
    assert_eq!(conversation.steps().len(), 2);
}

#[test]
fn a_second_task_in_the_same_session_is_carried_out_too() {
    let mut conversation = with_files();
    let task = r#"{"operation": "read_file", "parameters": {"path": "notes.txt"}}"#;
    conversation.say(task);
    assert_eq!(conversation.say(task).words(), "buy milk");
}

#[test]
fn a_tools_failure_is_the_tasks_failure() {
    let task = r#"{"operation": "read_file", "parameters": {"path": "ghost.txt"}}"#;
    assert_eq!(
        failure(with_files().say(task)),
        "there is no such file (not-found)"
    );
}

#[test]
fn parameters_may_be_left_out() {
    let mut conversation = Conversation::new(Worker).tool("tick", |parameters| {
        assert_eq!(parameters, json!({}));
        Ok("tock".to_owned())
    });
    assert_eq!(conversation.say(r#"{"operation": "tick"}"#).words(), "tock");
}

#[test]
fn words_that_are_not_a_task_fail_with_what_a_task_is() {
    for words in [
        "Read my notes, please",
        "[]",
        "{}",
        r#"{"operation": "read_file", "parameters": []}"#,
    ] {
        let reason = failure(with_files().say(words));
        assert!(
            reason.starts_with("this is not a task, which is {\"operation\""),
            "{reason}"
        );
    }
}

#[test]
fn an_operation_without_a_tool_fails_with_the_supported_ones() {
    let reason = failure(with_files().say(r#"{"operation": "launch", "parameters": {}}"#));
    assert_eq!(
        reason,
        "operation `launch` is not supported by this worker, which has: read_file"
    );
}

#[test]
fn a_result_without_content_is_still_a_reply() {
    let mut conversation = Conversation::new(Worker).tool("tick", |_| Ok(Vec::new()));
    assert_eq!(conversation.say(r#"{"operation": "tick"}"#).words(), "done");
}

#[test]
fn a_request_that_may_change_something_is_a_call_of_the_tool_that_runs_once() {
    let with_web = || {
        Conversation::new(Worker)
            .tool("web_fetch", |_| Ok("read".to_owned()))
            .tool("web_send", |_| Ok("sent".to_owned()))
    };
    let url = "https://example.com/";
    for (parameters, tool, arguments) in [
        (json!({ "url": url }), "web_fetch", json!({ "url": url })),
        (
            json!({ "url": url, "method": "HEAD", "body": "" }),
            "web_fetch",
            json!({ "url": url, "method": "HEAD" }),
        ),
        (
            json!({ "url": url, "method": null, "body": null }),
            "web_fetch",
            json!({ "url": url, "method": null }),
        ),
        (
            json!({ "url": url, "method": "POST", "body": "a", "headers": { "x": "1" } }),
            "web_send",
            json!({ "url": url, "method": "POST", "body": "a", "headers": { "x": "1" } }),
        ),
        (
            json!({ "url": url, "method": "delete" }),
            "web_send",
            json!({ "url": url, "method": "delete" }),
        ),
    ] {
        let mut conversation = with_web();
        conversation
            .say(&json!({ "operation": "web_fetch", "parameters": parameters }).to_string());
        assert_eq!(conversation.calls(), [(tool.to_owned(), arguments)]);
    }
}

#[test]
fn a_body_that_goes_with_no_method_and_a_tool_that_is_missing_are_told() {
    let with_fetch = || Conversation::new(Worker).tool("web_fetch", |_| Ok("read".to_owned()));
    let task = |parameters: Value| {
        json!({ "operation": "web_fetch", "parameters": parameters }).to_string()
    };
    let url = "https://example.com/";
    assert_eq!(
        failure(with_fetch().say(&task(json!({ "url": url, "body": "a" })))),
        "a request with GET has no body: leave `body` out, or set `method` to one of POST, PUT, \
         PATCH, DELETE"
    );
    assert_eq!(
        failure(with_fetch().say(&task(json!({ "url": url, "method": "BREW" })))),
        "`method` must be one of GET, HEAD, POST, PUT, PATCH, DELETE"
    );
    assert_eq!(
        failure(with_fetch().say(&task(json!({ "url": url, "method": "PUT" })))),
        "operation `web_fetch` with this method needs the tool `web_send`, which this worker does \
         not have; it has: web_fetch"
    );
}

#[test]
fn what_comes_of_a_task_without_a_tools_words_is_told_with_what_it_was_about() {
    for (operation, parameters, outcome, expected) in [
        (
            "web_fetch",
            json!({ "url": "https://u:p@example.com:8443/a?b=c", "method": "delete" }),
            Outcome::Denied,
            "`web_fetch` with DELETE to `example.com:8443`: the call is not allowed",
        ),
        (
            "web_fetch",
            json!({ "url": "https://example.com" }),
            Outcome::TimedOut,
            "`web_fetch` with GET to `example.com`: the call took too long and was stopped",
        ),
        (
            "read_file",
            json!({ "path": "/data/out/passwd" }),
            Outcome::Denied,
            "`read_file` of `/data/out/passwd`: the call is not allowed",
        ),
        (
            "web_search",
            json!({ "query": "tides" }),
            Outcome::Unknown,
            "`web_search`: the call was cut off, and nobody can tell what it did",
        ),
    ] {
        let task = json!({ "operation": operation, "parameters": parameters });
        let scene = Scene::new().said(&task.to_string());
        let id = scene.turn().head().unwrap();
        let settlement = Settlement {
            key: format!("task-{id}"),
            outcome,
        };
        let step = Worker.on_settled(scene.turn(), &[settlement]);
        assert_eq!(step.decision, Decision::Fail(expected.to_owned()));
    }
}
