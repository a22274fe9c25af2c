//! Exams from the first item to the result, with a scripted model and without one.

mod scores;
mod trouble;

use crate::Evaluator;
use agent_host_sdk::harness::{Conversation, ConversationStatus};
use serde_json::{Value, json};

/// An evaluator with an exam of the user's.
fn evaluator(exam: &Value) -> Conversation<Evaluator> {
    Conversation::new(Evaluator)
        .session_type("validation")
        .session_config(json!({ "exam": exam }))
}

/// An exam of some items on one criterion, passed with 60 %.
fn exam(items: &Value) -> Value {
    json!({
        "title": "Rust",
        "rubric": { "criteria": [{ "id": "knowledge", "description": "Knows the \
            language." }], "pass_score": 60 },
        "items": items,
    })
}

/// Closed items, in which the first option is right.
fn closed(count: usize) -> Value {
    json!(
        (0..count)
            .map(|at| json!({ "prompt": format!("{at}?"), "options": ["a", "b"], "answer": 0 }))
            .collect::<Vec<_>>()
    )
}

fn judged(score: f64) -> String {
    json!({ "score": score, "feedback": "So it is." }).to_string()
}

fn summary(status: ConversationStatus) -> Value {
    match status {
        ConversationStatus::Completed(summary) => summary,
        other => panic!("the exam is not over: {other:?}"),
    }
}

fn prompt(status: &ConversationStatus) -> &str {
    status.question().props["prompt"].as_str().unwrap()
}

fn evaluation(session: &Conversation<Evaluator>, item: usize) -> Value {
    session.items()[item].evaluation.clone().unwrap()
}

/// Answers every item with the first option.
fn answer_all(session: &mut Conversation<Evaluator>, first: ConversationStatus) -> Value {
    let mut status = first;
    while matches!(status, ConversationStatus::Asking(_)) {
        status = session.answer(json!({ "index": 0 }));
    }
    summary(status)
}

#[test]
fn the_example_of_an_exam_can_be_asked() {
    let config: Value = serde_json::from_str(include_str!("../examples/validation.json")).unwrap();
    let mut session = Conversation::new(Evaluator)
        .session_type("validation")
        .session_config(config);
    assert_eq!(prompt(&session.open()), "Who owns a value?");
}
