//! The assistant in conversation.

use crate::Assistant;
use agent_host_sdk::harness::{Conversation, Reply, Standing};
use agent_host_sdk::{Agent, ToolError, Toolset};
use serde_json::json;

fn task() -> serde_json::Value {
    json!({ "target": "worker", "operation": "read_file", "parameters": { "path": "notes.txt" } })
}

#[test]
fn it_delegates_and_answers_with_what_came_back() {
    let mut talk = Conversation::new(Assistant)
        .prompt("You delegate.")
        .tool("delegate", |task| {
            assert_eq!(task["operation"], "read_file");
            Ok("buy milk".to_owned())
        })
        .model_replies(Reply::new().text("I'll look.").call("delegate", &task()))
        .model_says("The note says: buy milk.");
    assert_eq!(
        talk.say("What does my note say?").words(),
        "The note says: buy milk."
    );
    assert_eq!(
        talk.transcript(),
        [
            "user: What does my note say?",
            "assistant: I'll look.",
            "tool: buy milk",
            "assistant: The note says: buy milk."
        ]
    );
    assert_eq!(talk.requests()[1].system, ["You delegate."]);
    assert_eq!(talk.requests()[1].tools, Toolset::All);
}

#[test]
fn a_delegation_that_fails_is_explained_by_the_model() {
    let mut talk = Conversation::new(Assistant)
        .tool("delegate", |_| {
            Err::<String, _>(ToolError::Failed("the worker is busy".to_owned()))
        })
        .model_calls("delegate", &task())
        .model_says("The worker is busy just now.");
    assert_eq!(
        talk.say("Read my note").words(),
        "The worker is busy just now."
    );
}

#[test]
fn a_model_that_is_down_fails_the_turn() {
    let mut talk = Conversation::new(Assistant)
        .model_replies(Reply::failure("model-unavailable", "no answer in 60 s"));
    assert!(matches!(talk.say("Hi"), Standing::Failed(_)));
}

#[test]
fn it_tells_the_operator_that_it_wants_to_delegate() {
    assert_eq!(Assistant.describe().wants, ["delegate"]);
}
