//! The driver of external agents, with a user in the program's place.

use crate::External;
use agent_host_sdk::harness::{Conversation, Standing};
use serde_json::json;

fn failure(standing: Standing) -> String {
    match standing {
        Standing::Failed(reason) => reason,
        other => panic!("it did not fail: {other:?}"),
    }
}

#[test]
fn what_is_said_is_handed_on_and_the_answer_is_the_reply() {
    let mut talk = Conversation::new(External);
    let standing = talk.say("What is the weather?");
    let asked = standing.question();
    assert_eq!(asked.widget, "external_message");
    assert_eq!(asked.props, json!({ "messages": [1] }));
    assert_eq!(talk.answer(json!("Sunny.")).words(), "Sunny.");
    assert!(talk.requests().is_empty(), "no model was asked");
}

#[test]
fn the_next_turn_hands_on_its_own_message_alone() {
    let mut talk = Conversation::new(External);
    talk.say("One?");
    talk.answer(json!("1"));
    let standing = talk.say("Two?");
    assert_eq!(standing.question().props, json!({ "messages": [3] }));
    assert_eq!(talk.answer(json!("2")).words(), "2");
}

#[test]
fn an_answer_that_does_not_come_in_time_fails_the_turn() {
    let mut talk = Conversation::new(External);
    talk.say("Anybody there?");
    assert_eq!(failure(talk.time_out()), "the agent did not answer in time");
}

#[test]
fn a_delivery_that_is_withdrawn_fails_the_turn() {
    let mut talk = Conversation::new(External);
    talk.say("Never mind");
    assert_eq!(failure(talk.withdraw()), "the call was cancelled");
}

#[test]
fn an_answer_is_said_although_another_message_fails() {
    let unanswered = "One message has no answer: the call was cancelled";
    let mut talk = Conversation::new(External);
    talk.say("One?");
    talk.say("Two?");
    let standing = talk.withdraw();
    assert_eq!(standing.question().props, json!({ "messages": [2] }));
    let standing = talk.answer(json!("2"));
    assert_eq!(standing.words(), format!("2\n{unanswered}"));

    let mut talk = Conversation::new(External);
    talk.say("One?");
    talk.say("Two?");
    let standing = talk.answer(json!("1"));
    assert_eq!(standing.question().props, json!({ "messages": [2] }));
    assert_eq!(talk.withdraw().words(), unanswered);
    let heard = ["user: One?", "user: Two?", "assistant: 1"];
    let said = format!("assistant: {unanswered}");
    assert_eq!(talk.transcript()[..3], heard);
    assert_eq!(talk.transcript()[3..], [said]);
}

#[test]
fn a_turn_fails_when_no_message_of_it_is_answered() {
    let mut talk = Conversation::new(External);
    talk.say("One?");
    talk.say("Two?");
    talk.withdraw();
    let reason = failure(talk.time_out());
    assert_eq!(
        reason,
        "the call was cancelled; the agent did not answer in time"
    );
}
