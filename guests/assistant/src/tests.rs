//! The assistant in conversation.

use crate::Assistant;
use agent_host_sdk::harness::{Conversation, ConversationStatus, Reply};
use agent_host_sdk::{Agent, CutOff, ToolError, Toolset};
use serde_json::json;

fn task() -> serde_json::Value {
    json!({ "target": "worker", "operation": "read_file", "parameters": { "path": "notes.txt" } })
}

#[test]
fn it_delegates_and_answers_with_what_came_back() {
    let mut conversation = Conversation::new(Assistant)
        .prompt("You delegate.")
        .tool("delegate", |task| {
            assert_eq!(task["operation"], "read_file");
            Ok("buy milk".to_owned())
        })
        .model_replies(Reply::new().text("I'll look.").call("delegate", &task()))
        .model_says("The note says: buy milk.");
    assert_eq!(
        conversation.say("What does my note say?").words(),
        "The note says: buy milk."
    );
    assert_eq!(
        conversation.transcript(),
        [
            "user: What does my note say?",
            "assistant: I'll look.",
            "tool: buy milk",
            "assistant: The note says: buy milk."
        ]
    );
    assert_eq!(conversation.requests()[1].system, ["You delegate."]);
    assert_eq!(conversation.requests()[1].tools, Toolset::All);
}

#[test]
fn a_delegation_that_fails_is_explained_by_the_model() {
    let mut conversation = Conversation::new(Assistant)
        .tool("delegate", |_| {
            Err::<String, _>(ToolError::Failed("the worker is busy".to_owned()))
        })
        .model_calls("delegate", &task())
        .model_says("The worker is busy just now.");
    assert_eq!(
        conversation.say("Read my note").words(),
        "The worker is busy just now."
    );
}

#[test]
fn an_answer_that_is_not_whole_says_so() {
    for (cut_off, expected) in [
        (CutOff::Length, "[cut off at the length limit]"),
        (
            CutOff::ContentFilter,
            "[cut off by the provider's content filter]",
        ),
        (CutOff::Refusal, "[the model declined to answer]"),
    ] {
        let reply = Reply::new().text("Once upon").cut_off(cut_off);
        let mut conversation = Conversation::new(Assistant).model_replies(reply);
        assert_eq!(conversation.say("Tell me a story").words(), expected);
        assert_eq!(conversation.transcript()[1], "assistant: Once upon");
    }
}

/// A call whose arguments were cut off is carried out as far as it is one, and the model sees what
/// came of it.
#[test]
fn calls_of_a_reply_that_was_cut_off_are_carried_out() {
    let reply = Reply::new()
        .raw_call("delegate", "{\"target\": \"wor")
        .cut_off(CutOff::Length);
    let mut conversation = Conversation::new(Assistant)
        .tool("delegate", |_| Ok("never".to_owned()))
        .model_replies(reply)
        .model_says("That did not work.");
    assert_eq!(conversation.say("Go").words(), "That did not work.");
    assert!(
        conversation.transcript()[2].starts_with("tool: "),
        "{:?}",
        conversation.transcript()
    );
}

#[test]
fn a_model_that_is_down_fails_the_turn() {
    let mut conversation = Conversation::new(Assistant)
        .model_replies(Reply::failure("model-unavailable", "no answer in 60 s"));
    assert!(matches!(
        conversation.say("Hi"),
        ConversationStatus::Failed(_)
    ));
}

#[test]
fn it_tells_the_operator_that_it_wants_to_delegate() {
    assert_eq!(Assistant.describe().wants, ["delegate"]);
}
