//! The worker and its tasks.

use crate::Worker;
use agent_host_sdk::ToolError;
use agent_host_sdk::harness::{Conversation, Standing};
use serde_json::{Value, json};

fn with_files() -> Conversation<Worker> {
    Conversation::new(Worker).tool("read_file", |parameters: Value| {
        match parameters["path"].as_str() {
            Some("notes.txt") => Ok("buy milk".to_owned()),
            _ => Err(ToolError::NotFound("there is no such file".to_owned())),
        }
    })
}

fn failure(standing: Standing) -> String {
    match standing {
        Standing::Failed(reason) => reason,
        other => panic!("it did not fail: {other:?}"),
    }
}

#[test]
fn an_operation_becomes_a_tool_call_and_its_result_the_reply() {
    let mut talk = with_files();
    assert_eq!(
        talk.say(r#"{"operation": "read_file", "parameters": {"path": "notes.txt"}}"#)
            .words(),
        "buy milk"
    );
    assert_eq!(
        talk.calls(),
        [("read_file".to_owned(), json!({ "path": "notes.txt" }))]
    );
    assert!(talk.requests().is_empty());
    assert_eq!(talk.steps().len(), 2);
}

#[test]
fn a_second_task_in_the_same_session_is_carried_out_too() {
    let mut talk = with_files();
    let task = r#"{"operation": "read_file", "parameters": {"path": "notes.txt"}}"#;
    talk.say(task);
    assert_eq!(talk.say(task).words(), "buy milk");
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
    let mut talk = Conversation::new(Worker).tool("tick", |parameters| {
        assert_eq!(parameters, json!({}));
        Ok("tock".to_owned())
    });
    assert_eq!(talk.say(r#"{"operation": "tick"}"#).words(), "tock");
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
    let mut talk = Conversation::new(Worker).tool("tick", |_| Ok(Vec::new()));
    assert_eq!(talk.say(r#"{"operation": "tick"}"#).words(), "done");
}
