//! Lessons from the first word to the last, with a scripted model and without one.

mod closed;
mod memory;
mod taught;
mod trouble;

use crate::Tutor;
use agent_host_sdk::harness::{Conversation, ConversationStatus};
use agent_host_sdk::{ModelRequest, text_of};
use serde_json::{Value, json};

/// A tutor with a lesson of the operator's.
fn tutor(lesson: &Value) -> Conversation<Tutor> {
    Conversation::new(Tutor)
        .session_type("learning")
        .settings(json!({ "lesson": lesson }))
}

/// Two closed questions and nothing else.
fn sums() -> Value {
    json!({ "title": "Sums", "questions": [
        { "prompt": "1 + 1?", "options": ["2", "3"], "answer": 0, "explanation": "One and one is \
            two." },
        { "prompt": "2 + 2?", "options": ["3", "4"], "answer": 1 },
    ] })
}

/// A text, and one question that a model judges.
fn tides() -> Value {
    json!({ "title": "Tides", "text": "The Moon pulls at the sea.", "questions": [
        { "prompt": "What makes the tides?", "expects": "The Moon's pull.", "hint": "Look up at \
            night.", "objective": "causes" },
    ] })
}

fn judged(score: f64, feedback: &str) -> String {
    json!({ "score": score, "feedback": feedback }).to_string()
}

fn summary(status: ConversationStatus) -> Value {
    match status {
        ConversationStatus::Completed(summary) => summary,
        other => panic!("the lesson is not over: {other:?}"),
    }
}

fn prompt(status: &ConversationStatus) -> &str {
    status.question().props["prompt"].as_str().unwrap()
}

/// Returns the request's content beside the system prompt and the thread.
fn also(request: &ModelRequest) -> String {
    text_of(&request.also)
}

/// The last line of the transcript.
fn last(session: &Conversation<Tutor>) -> String {
    session.transcript().pop().unwrap()
}

#[test]
fn the_example_of_a_lesson_can_be_taught() {
    let config: Value = serde_json::from_str(include_str!("../examples/learning.json")).unwrap();
    let mut session = Conversation::new(Tutor)
        .session_type("learning")
        .session_config(config);
    assert_eq!(
        prompt(&session.open()),
        "How long does the Moon take from full to full?"
    );
}
