//! Lessons of closed questions, which need no model.

use super::{last, prompt, summary, sums, tutor};
use crate::Tutor;
use agent_host_sdk::harness::{Conversation, ConversationStatus, Scene};
use serde_json::json;

#[test]
fn a_session_greets_asks_evaluates_and_completes_without_a_model() {
    let mut session = tutor(&sums());
    let asked = session.open();
    assert_eq!(asked.question().widget, "multiple_choice");
    assert_eq!(
        asked.question().props,
        json!({ "prompt": "1 + 1?", "options": ["2", "3"], "skippable": true })
    );
    assert!(asked.question().lock_input);
    assert_eq!(
        prompt(&session.answer(json!({ "index": 0, "selection": "2" }))),
        "2 + 2?"
    );
    let end = summary(session.answer(json!({ "index": 0 })));
    assert_eq!(
        (&end["title"], &end["correct"], &end["total"], &end["score"]),
        (&json!("Sums"), &json!(1), &json!(2), &json!(0.5))
    );
    assert_eq!(
        session.transcript(),
        [
            "assistant: Welcome to the lesson \"Sums\". There are 2 questions.",
            "assistant: Correct. One and one is two.",
            "assistant: Not quite: it is \"4\".",
            "assistant: That was the lesson \"Sums\": 1 of 2 right, 50 %.",
        ]
    );
    assert!(session.requests().is_empty());
}

#[test]
fn every_answer_goes_on_record_with_the_operation_that_asked_and_an_evaluation() {
    let mut session = tutor(&sums());
    session.open();
    session.answer(json!({ "index": 0, "selection": "2" }));
    session.answer(json!({ "index": 0 }));
    let items = session.items();
    assert_eq!(items.len(), 2);
    assert_eq!(items[0].asked.as_deref(), Some("question-1"));
    assert_eq!(
        items[0].prompt,
        json!({ "widget": "multiple_choice", "prompt": "1 + 1?", "options": ["2", "3"] })
    );
    assert_eq!(items[0].response, json!({ "index": 0, "selection": "2" }));
    let expected = json!({
        "correct": true, "score": 1.0, "feedback": "Correct.", "attempt": 1, "expected": 0,
        "explanation": "One and one is two.",
    });
    assert_eq!(items[0].evaluation, Some(expected));
    assert_eq!(items[1].evaluation.as_ref().unwrap()["correct"], false);
}

#[test]
fn the_built_in_lesson_has_three_questions() {
    let mut session = Conversation::new(Tutor).session_type("learning");
    session.open();
    session.answer(json!({ "index": 1 }));
    session.answer(json!({ "index": 0 }));
    let end = summary(session.answer(json!({ "index": 2 })));
    assert_eq!(
        (&end["title"], &end["correct"], &end["total"]),
        (&json!("The solar system"), &json!(3), &json!(3))
    );
}

#[test]
fn all_closed_widgets_can_be_asked_and_a_rating_without_an_answer_does_not_count() {
    let lesson = json!({
        "title": "All",
        "questions": [
            {
                "widget": "multi_select", "prompt": "Even?", "options": ["1", "2", "4"],
                "answer": [1, 2],
            },
            { "prompt": "The capital of France?", "answer": "Paris" },
            { "widget": "rating", "prompt": "How sure are you?" },
        ],
    });
    let mut session = tutor(&lesson);
    assert_eq!(session.open().question().widget, "multi_select");
    assert_eq!(
        session.answer(json!({ "indices": [1] })).question().widget,
        "free_text"
    );
    assert_eq!(last(&session), "assistant: Right in part: it is \"2, 4\".");
    assert_eq!(
        session.answer(json!({ "text": "paris" })).question().widget,
        "rating_scale"
    );
    let end = summary(session.answer(json!({ "rating": 4 })));
    assert_eq!(
        (&end["total"], &end["correct"], &end["score"]),
        (&json!(2), &json!(1), &json!(0.75))
    );
    assert!(session.requests().is_empty());
}

#[test]
fn a_wrong_answer_to_a_question_with_a_hint_gets_the_hint_and_one_more_try() {
    let lesson = json!({ "title": "Sums", "questions": [
        { "prompt": "1 + 1?", "options": ["2", "3"], "answer": 0, "hint": "Count your thumbs." },
        { "prompt": "2 + 2?", "options": ["3", "4"], "answer": 1, "hint": "Count your legs and \
            arms." },
    ] });
    let mut session = tutor(&lesson);
    session.open();
    assert_eq!(prompt(&session.answer(json!({ "index": 1 }))), "1 + 1?");
    assert_eq!(
        last(&session),
        "assistant: Not quite. A hint: Count your thumbs. Try once more."
    );
    assert_eq!(prompt(&session.answer(json!({ "index": 0 }))), "2 + 2?");
    session.answer(json!({ "index": 0 }));
    let end = summary(session.answer(json!({ "index": 0 })));
    assert_eq!(
        (&end["correct"], &end["total"], &end["score"]),
        (&json!(1), &json!(2), &json!(0.25)),
        "a second try counts half"
    );
    let attempts: Vec<_> = session
        .items()
        .iter()
        .map(|item| item.evaluation.as_ref().unwrap()["attempt"].clone())
        .collect();
    assert_eq!(attempts, [1, 2, 1, 2]);
}

#[test]
fn a_weak_objective_comes_again_at_the_end() {
    let lesson = json!({ "title": "Sums", "questions": [
        { "prompt": "1 + 1?", "options": ["2", "3"], "answer": 0, "objective": "adding" },
        { "prompt": "3 - 1?", "options": ["1", "2"], "answer": 1, "objective": "subtracting" },
    ] });
    let mut session = tutor(&lesson);
    session.open();
    session.answer(json!({ "index": 1 }));
    let again = session.answer(json!({ "index": 1 }));
    assert_eq!(prompt(&again), "1 + 1?");
    assert_eq!(
        last(&session),
        "assistant: Let us come back to what was difficult."
    );
    let end = summary(session.answer(json!({ "index": 0 })));
    assert_eq!((&end["correct"], &end["total"]), (&json!(2), &json!(2)));
    assert_eq!(
        end["by_objective"]["adding"],
        json!({ "score": 0.5, "questions": 1 })
    );
    assert_eq!(
        end["weak_objectives"],
        json!([]),
        "it was learned in the end"
    );
}

#[test]
fn words_wait_for_the_end_of_the_lesson_and_are_answered() {
    let mut session = tutor(&sums());
    session.open();
    assert!(matches!(
        session.say("Is there a break?"),
        ConversationStatus::Asking(_)
    ));
    session.answer(json!({ "index": 0 }));
    let end = summary(session.answer(json!({ "index": 1 })));
    assert_eq!((&end["correct"], &end["total"]), (&json!(2), &json!(2)));
    assert_eq!(last(&session), "assistant: The lesson is over.");
    assert_eq!(
        session.notes().len(),
        1,
        "what is remembered is remembered once"
    );
}

#[test]
fn a_turn_that_begins_in_the_middle_goes_on_with_the_open_question() {
    let state = json!({ "next": 1, "correct": 1, "marks": [{ "credit": 1.0, "correct": true }] });
    let scene = Scene::new()
        .session_type("learning")
        .settings(json!({ "lesson": sums() }))
        .state(state);
    let mut session = Conversation::in_scene(Tutor, scene);
    assert_eq!(prompt(&session.say("Hello again")), "2 + 2?");
    assert_eq!(
        last(&session),
        "assistant: Let us stay with the lesson: please answer the question."
    );
    assert_eq!(summary(session.answer(json!({ "index": 1 })))["score"], 1.0);
}

#[test]
fn a_lesson_with_more_questions_than_a_turn_has_steps_goes_on_in_another_turn() {
    let question = json!({ "prompt": "?", "options": ["a", "b"], "answer": 0 });
    let mut session = tutor(&json!({ "title": "Long", "questions": vec![question; 60] }));
    let mut status = session.open();
    let mut turns = 1;
    let end = loop {
        status = match status {
            ConversationStatus::Asking(_) => session.answer(json!({ "index": 0 })),
            ConversationStatus::Replied(_) => {
                turns += 1;
                session.remind()
            }
            end => break summary(end),
        }
    };
    assert_eq!(
        (turns, &end["total"], &end["correct"]),
        (2, &json!(60), &json!(60))
    );
}
