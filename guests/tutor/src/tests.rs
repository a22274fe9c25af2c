//! Lessons from the first question to the last.

use crate::Tutor;
use agent_host_sdk::harness::{Conversation, Standing};
use agent_host_sdk::{Agent, Decision};
use agent_host_sdk::{Effect, Outcome, Settlement};
use agent_host_sdk::{News, harness::Scene};
use serde_json::{Value, json};

fn lesson() -> Value {
    json!({ "lesson": { "title": "Sums", "questions": [
        { "prompt": "1 + 1?", "options": ["2", "3"], "answer": 0, "explanation": "One and one is two." },
        { "prompt": "2 + 2?", "options": ["3", "4"], "answer": 1 },
    ] } })
}

fn tutor() -> Conversation<Tutor> {
    Conversation::new(Tutor).session_type("tutor").settings(lesson())
}

#[test]
fn a_session_greets_asks_evaluates_and_completes() {
    let mut session = tutor();
    let asked = session.open();
    assert_eq!(asked.question().widget, "multiple_choice");
    assert_eq!(asked.question().props, json!({ "prompt": "1 + 1?", "options": ["2", "3"] }));
    assert!(asked.question().lock_input);
    let asked = session.answer(json!({ "index": 0, "selection": "2" }));
    assert_eq!(asked.question().props["prompt"], "2 + 2?");
    let end = session.answer(json!({ "index": 0 }));
    assert_eq!(end, Standing::Completed(json!({ "title": "Sums", "correct": 1, "total": 2 })));
    assert_eq!(
        session.transcript(),
        [
            "assistant: Welcome to the lesson \"Sums\". There are 2 questions.",
            "assistant: Correct. One and one is two.",
            "assistant: Not quite: it is \"4\".",
        ]
    );
    let items = session.items();
    assert_eq!(items.len(), 2);
    assert_eq!(items[0].response, json!({ "index": 0, "selection": "2" }));
    assert_eq!(items[0].evaluation, Some(json!({ "correct": true, "expected": 0, "explanation": "One and one is two." })));
    assert_eq!(items[1].evaluation.as_ref().unwrap()["correct"], false);
}

#[test]
fn the_built_in_lesson_can_be_taught() {
    let mut session = Conversation::new(Tutor).session_type("tutor");
    session.open();
    session.answer(json!({ "index": 1 }));
    session.answer(json!({ "index": 0 }));
    let end = session.answer(json!({ "index": 2 }));
    assert_eq!(end, Standing::Completed(json!({ "title": "The solar system", "correct": 3, "total": 3 })));
}

#[test]
fn progress_is_the_sessions_state_from_the_first_question_on() {
    let mut session = tutor();
    session.open();
    assert_eq!(session.state(), &json!({ "next": 0, "correct": 0 }));
    session.answer(json!({ "index": 0 }));
    assert_eq!(session.state(), &json!({ "next": 1, "correct": 1 }));
}

#[test]
fn words_before_the_first_question_are_answered_with_the_question() {
    let mut session = tutor();
    let asked = session.say("What is this?");
    assert_eq!(asked.question().props["prompt"], "1 + 1?");
    assert_eq!(session.transcript()[1], "assistant: Let us stay with the lesson: please answer the question.");
}

#[test]
fn words_typed_during_the_session_wait_for_its_end_and_are_answered() {
    let mut session = tutor();
    session.open();
    assert!(matches!(session.say("Is there a break?"), Standing::Asking(_)));
    session.answer(json!({ "index": 0 }));
    let end = session.answer(json!({ "index": 1 }));
    assert_eq!(end, Standing::Completed(json!({ "title": "Sums", "correct": 2, "total": 2 })));
    assert_eq!(session.transcript().last().unwrap(), "assistant: The lesson is over.");
}

#[test]
fn a_turn_that_begins_in_the_middle_goes_on_with_the_open_question() {
    let scene = Scene::new().session_type("tutor").settings(lesson()).state(json!({ "next": 1, "correct": 1 }));
    let mut session = Conversation::in_scene(Tutor, scene);
    assert_eq!(session.say("Hello again").question().props["prompt"], "2 + 2?");
}

#[test]
fn an_answer_that_is_not_an_option_asks_again_under_a_new_key() {
    let mut session = tutor();
    session.open();
    let asked = session.answer(json!({ "index": 7 }));
    assert_eq!(asked.question().props["prompt"], "1 + 1?");
    assert!(session.items().is_empty());
}

#[test]
fn a_question_that_was_stopped_fails_the_turn_and_keeps_the_state() {
    let scene = Scene::new().session_type("tutor").settings(lesson()).state(json!({ "next": 1, "correct": 0 }));
    let settled = Settlement { key: "question-1-3".to_owned(), outcome: Outcome::TimedOut };
    let step = Tutor.step(scene.turn(), &[News::Settled(settled)]);
    assert_eq!(step.decision, Decision::Fail("the question could not be asked: took too long and was stopped".to_owned()));
    assert!(!step.effects.iter().any(|effect| matches!(effect, Effect::SessionState(_))));
}

#[test]
fn a_lesson_that_makes_no_sense_fails_with_the_field_at_fault() {
    for (lesson, fault) in [
        (json!({ "lesson": { "title": "x", "questions": [] } }), "settings.lesson.questions is empty"),
        (
            json!({ "lesson": { "title": "x", "questions": [{ "prompt": "?", "options": ["a", "b"], "answer": 2 }] } }),
            "settings.lesson.questions[0].answer is not the index of an option",
        ),
        (
            json!({ "lesson": { "title": "x", "questions": [{ "prompt": "?", "options": ["a"], "answer": 0 }] } }),
            "settings.lesson.questions[0].options needs two options at least",
        ),
        (json!({ "leson": {} }), "the settings cannot be read: unknown field `leson`, expected `lesson`"),
    ] {
        let end = Conversation::new(Tutor).session_type("tutor").settings(lesson).open();
        let Standing::Failed(reason) = end else { panic!("it did not fail: {end:?}") };
        assert!(reason.starts_with(fault), "{reason}");
    }
}
