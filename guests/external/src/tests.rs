//! The driver of external agents, with a user in the program's place.

use crate::External;
use agent_host_sdk::harness::{Conversation, ConversationStatus};
use serde_json::json;

fn failure(status: ConversationStatus) -> String {
    match status {
        ConversationStatus::Failed(reason) => reason,
        other => panic!("it did not fail: {other:?}"),
    }
}

#[test]
fn what_is_said_is_handed_on_and_the_answer_is_the_reply() {
    let mut conversation = Conversation::new(External);
    let status = conversation.say("What is the weather?");
    let asked = status.question();
    assert_eq!(asked.widget, "external_message");
    assert_eq!(asked.props, json!({ "messages": [1] }));
    assert_eq!(conversation.answer(json!("Sunny.")).words(), "Sunny.");
    assert!(conversation.requests().is_empty(), "no model was asked");
}

#[test]
fn the_next_turn_hands_on_its_own_message_alone() {
    let mut conversation = Conversation::new(External);
    conversation.say("One?");
    conversation.answer(json!("1"));
    let status = conversation.say("Two?");
    assert_eq!(status.question().props, json!({ "messages": [3] }));
    assert_eq!(conversation.answer(json!("2")).words(), "2");
}

#[test]
fn an_answer_that_does_not_come_in_time_fails_the_turn() {
    let mut conversation = Conversation::new(External);
    conversation.say("Anybody there?");
    assert_eq!(
        failure(conversation.time_out()),
        "the agent did not answer in time"
    );
}

#[test]
fn an_outbound_message_that_is_withdrawn_fails_the_turn() {
    let mut conversation = Conversation::new(External);
    conversation.say("Never mind");
    assert_eq!(failure(conversation.withdraw()), "the call was cancelled");
}

#[test]
fn an_answer_is_said_although_another_message_fails() {
    let unanswered = "One message has no answer: the call was cancelled";
    let mut conversation = Conversation::new(External);
    conversation.say("One?");
    conversation.say("Two?");
    let status = conversation.withdraw();
    assert_eq!(status.question().props, json!({ "messages": [2] }));
    let status = conversation.answer(json!("2"));
    assert_eq!(status.words(), format!("2\n{unanswered}"));

    let mut conversation = Conversation::new(External);
    conversation.say("One?");
    conversation.say("Two?");
    let status = conversation.answer(json!("1"));
    assert_eq!(status.question().props, json!({ "messages": [2] }));
    assert_eq!(conversation.withdraw().words(), unanswered);
    let heard = ["user: One?", "user: Two?", "assistant: 1"];
    let said = format!("assistant: {unanswered}");
    assert_eq!(conversation.transcript()[..3], heard);
    assert_eq!(conversation.transcript()[3..], [said]);
}

#[test]
fn a_turn_fails_when_no_message_of_it_is_answered() {
    let mut conversation = Conversation::new(External);
    conversation.say("One?");
    conversation.say("Two?");
    conversation.withdraw();
    let reason = failure(conversation.time_out());
    assert_eq!(
        reason,
        "the call was cancelled; the agent did not answer in time"
    );
}
