//! Exams that go wrong: models that fail, answers that do not come, exams that make no sense.

use super::{closed, evaluation, evaluator, exam, judged, prompt, summary};
use crate::Evaluator;
use agent_host_sdk::LimitsLeft;
use agent_host_sdk::harness::{Conversation, ConversationStatus, Reply};
use serde_json::{Value, json};

fn down() -> Reply {
    Reply::failure("model-unavailable", "no answer")
}

fn open_and_closed() -> Value {
    exam(&json!([{ "prompt": "Why?" }, { "prompt": "0?", "options": ["a", "b"], "answer": 0 }]))
}

#[test]
fn an_answer_that_no_model_could_judge_is_left_for_a_person_and_not_wrong() {
    let mut session = evaluator(&open_and_closed())
        .model_replies(down())
        .model_replies(down());
    session.open();
    session.answer(json!({ "text": "Because." }));
    let end = summary(session.answer(json!({ "index": 0 })));
    assert_eq!(
        (&end["score"], &end["max_score"], &end["percent"]),
        (&json!(1.0), &json!(1.0), &json!(100.0))
    );
    assert_eq!(
        (&end["needs_review"], &end["passed"]),
        (&json!([1]), &Value::Null),
        "the review decides"
    );
    assert_eq!(
        end["items"][0],
        json!({
            "number": 1, "criterion": "knowledge", "score": null, "max": 1.0,
            "status": "not_judged",
        })
    );
    let record = evaluation(&session, 0);
    assert_eq!(
        (&record["needs_review"], &record["score"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(record["feedback"], "no answer (model-unavailable)");
    let said = session.transcript().pop().unwrap();
    assert!(
        said.contains(
            "1 of 1 points (100 %): not decided yet.\n\nOne item could not be scored; a person has \
             to look at that."
        ),
        "{said}"
    );
}

#[test]
fn a_judgement_is_tried_twice() {
    let mut session = evaluator(&open_and_closed())
        .model_replies(down())
        .model_says(&judged(1.0));
    session.open();
    session.answer(json!({ "text": "Because." }));
    let end = summary(session.answer(json!({ "index": 0 })));
    assert_eq!(
        (&end["needs_review"], &end["passed"]),
        (&json!([]), &json!(true))
    );
}

#[test]
fn a_review_that_cannot_change_the_result_leaves_it_decided() {
    for (answer, passed) in [
        (json!({ "index": 0 }), true),
        (json!({ "index": 1 }), false),
    ] {
        let mut items = closed(9);
        items
            .as_array_mut()
            .unwrap()
            .push(json!({ "prompt": "Why?" }));
        let mut session = evaluator(&exam(&items))
            .model_replies(down())
            .model_replies(down());
        session.open();
        for _ in 0..9 {
            session.answer(answer.clone());
        }
        assert_eq!(
            summary(session.answer(json!({ "text": "Because." })))["passed"],
            passed
        );
    }
}

#[test]
fn items_that_are_skipped_late_or_withdrawn_earn_nothing_and_say_so() {
    let mut session = evaluator(&exam(&closed(4)));
    session.open();
    session.answer(json!({ "skipped": true }));
    session.time_out();
    assert_eq!(prompt(&session.withdraw()), "3?");
    let end = summary(session.answer(json!({ "index": 0 })));
    assert_eq!(
        (&end["score"], &end["max_score"], &end["needs_review"]),
        (&json!(1.0), &json!(4.0), &json!([]))
    );
    let status: Vec<Value> = (0..4)
        .map(|item| evaluation(&session, item)["status"].clone())
        .collect();
    assert_eq!(status, ["skipped", "timed_out", "cancelled", "answered"]);
}

#[test]
fn words_during_the_exam_wait_for_its_end() {
    let mut session = evaluator(&exam(&closed(1)));
    session.open();
    assert!(matches!(
        session.say("Can you help me?"),
        ConversationStatus::Asking(_)
    ));
    summary(session.answer(json!({ "index": 0 })));
    assert_eq!(
        session.transcript().pop().unwrap(),
        "assistant: The exam is over."
    );
    assert_eq!(
        (session.items().len(), session.notes().len()),
        (1, 1),
        "nothing goes on record twice"
    );
}

#[test]
fn without_an_exam_it_says_what_to_supply() {
    let mut session = Conversation::new(Evaluator).session_type("validation");
    let ConversationStatus::Failed(reason) = session.open() else {
        panic!("it did not fail")
    };
    assert!(
        reason.starts_with(
            "there is no exam: set it in the agent's `settings.exam`, or open the session with one \
             in `exam`."
        ),
        "{reason}"
    );
}

#[test]
fn the_operators_exam_is_taken_when_the_user_has_none() {
    let mut session = Conversation::new(Evaluator)
        .session_type("validation")
        .settings(json!({ "exam": exam(&closed(1)) }));
    assert_eq!(prompt(&session.open()), "0?");
}

#[test]
fn whoever_brings_an_exam_where_there_is_one_is_told() {
    let settings = json!({ "exam": exam(&closed(1)) });
    let mut session = evaluator(&exam(&closed(2))).settings(settings);
    let ConversationStatus::Failed(reason) = session.open() else {
        panic!("it did not fail")
    };
    assert_eq!(
        reason,
        "session_config.exam: this agent has its exam in `settings.exam`; open the session without \
         one"
    );
}

#[test]
fn an_exam_that_makes_no_sense_fails_with_the_field_at_fault() {
    let with = |path: &str, value: Value| {
        let mut written = exam(&closed(2));
        *written.pointer_mut(path).unwrap() = value;
        written
    };
    let mut twice = exam(&closed(1));
    twice["rubric"]["criteria"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "knowledge", "description": "Again." }));
    let mut two = exam(&closed(1));
    two["rubric"]["criteria"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "style", "description": "Writes well." }));
    let mut many = exam(&closed(1));
    many["max_items"] = json!(41);
    for (written, fault) in [
        (
            json!({}),
            "session_config.exam.title: a text of 1 to 200 bytes is needed, this one has 0",
        ),
        (
            with("/title", json!(3)),
            "session_config.exam.title: invalid type: integer `3`",
        ),
        (
            with("/rubric", json!({})),
            "session_config.exam.rubric.criteria: 1 to 20 are needed, these are 0",
        ),
        (
            with("/rubric/pass_score", json!(160)),
            "session_config.exam.rubric.pass_score: a percentage from 0 to 100 is needed",
        ),
        (
            with("/rubric/criteria/0/id", json!("")),
            "session_config.exam.rubric.criteria[0].id: a text of 1 to 40 bytes",
        ),
        (
            twice,
            "session_config.exam.rubric.criteria[1].id: `knowledge` is the id of another criterion \
             too",
        ),
        (
            two,
            "session_config.exam.items[0].criterion: the id of one of the rubric's criteria is \
             needed: knowledge, style",
        ),
        (
            many,
            "session_config.exam.max_items: a number from 1 to 40 is needed",
        ),
        (
            with("/items", json!([])),
            "session_config.exam.items: 1 to 200 are needed, these are 0",
        ),
        (
            with("/items/1/answer", json!(2)),
            "session_config.exam.items[1].answer: an index from 0 to 1 is needed, this is 2",
        ),
        (
            with("/items/0", json!({ "prompt": "?", "hint": "x" })),
            "session_config.exam.items[0].hint: questions of lessons have it",
        ),
        (
            with("/items/0", json!({ "prompt": "?", "points": 0 })),
            "session_config.exam.items[0].points: a number above 0",
        ),
        (
            with("/items/0", json!({ "prompt": "?", "widget": "rating" })),
            "session_config.exam.items[0].answer: the right rating is needed",
        ),
        (
            with("/items/0", json!({ "prompt": "?", "weight": 1 })),
            "session_config.exam.items[0].weight: unknown field `weight`",
        ),
    ] {
        let ConversationStatus::Failed(reason) = evaluator(&written).open() else {
            panic!("it did not fail: {fault}")
        };
        assert!(reason.starts_with(fault), "{reason}");
    }
}

#[test]
fn an_exam_that_takes_more_steps_than_a_turn_has_does_not_begin() {
    let few = LimitsLeft {
        steps: 10,
        tool_calls: 0,
        tokens: 1_000_000,
    };
    let ConversationStatus::Failed(reason) = evaluator(&exam(&closed(9))).limits(few).open() else {
        panic!("it did not fail")
    };
    assert!(
        reason.starts_with(
            "the exam asks 9 items, which takes 12 more steps, and the turn has 9 left"
        ),
        "{reason}"
    );
}

#[test]
fn the_largest_exam_stays_within_the_limits_of_a_step_a_turn_and_the_state() {
    let long = "ä".repeat(90);
    let criteria: Vec<Value> = (0..20)
        .map(|at| json!({ "id": format!("c{at}-{}", "x".repeat(36)), "description": long }))
        .collect();
    let item = |at: usize| {
        json!({
            "prompt": long, "max_length": 16_000,
            "criterion": format!("c{}-{}", at % 20, "x".repeat(36)),
        })
    };
    let written = json!({
        "title": "T".repeat(200), "max_items": 40,
        "rubric": { "pass_score": 50, "criteria": criteria },
        "items": (0..40).map(item).collect::<Vec<_>>(),
    });
    let mut session = evaluator(&written);
    for _ in 0..80 {
        session = session.model_replies(
            Reply::new()
                .text(&json!({ "score": 0.333, "feedback": "ä".repeat(1_000) }).to_string()),
        );
    }
    let mut status = session.open();
    while matches!(status, ConversationStatus::Asking(_)) {
        status = session.answer(json!({ "text": "\u{1}".repeat(16_000) }));
    }
    let end = summary(status);
    assert_eq!(end["items"].as_array().unwrap().len(), 40);
    assert!(
        end.to_string().len() <= 8 << 10,
        "the history keeps it: {}",
        end.to_string().len()
    );
}

#[test]
fn a_model_that_fails_all_along_leaves_every_answer_for_a_person() {
    let items: Vec<Value> = (0..40).map(|_| json!({ "prompt": "Why?" })).collect();
    let mut written = exam(&json!(items));
    written["max_items"] = json!(40);
    let mut session = evaluator(&written);
    for _ in 0..80 {
        session = session.model_replies(down());
    }
    let mut status = session.open();
    while matches!(status, ConversationStatus::Asking(_)) {
        status = session.answer(json!({ "text": "x" }));
    }
    let end = summary(status);
    assert_eq!(
        (
            end["needs_review"].as_array().unwrap().len(),
            &end["percent"],
            &end["passed"]
        ),
        (40, &Value::Null, &Value::Null)
    );
}
