//! Models that fail, answers that do not come, and lessons that make no sense or are too long.

use super::{judged, last, prompt, summary, sums, tides, tutor};
use crate::Tutor;
use agent_host_sdk::harness::{Conversation, ConversationStatus, Reply};
use agent_host_sdk::{CutOff, LimitsLeft};
use serde_json::{Value, json};

fn down() -> Reply {
    Reply::failure("model-unavailable", "no answer in 60 s")
}

fn status(session: &Conversation<Tutor>, item: usize) -> Value {
    session.items()[item].evaluation.as_ref().unwrap()["status"].clone()
}

#[test]
fn a_part_that_cannot_be_explained_is_shown_as_it_is() {
    let mut session = tutor(&tides()).model_replies(down());
    assert_eq!(prompt(&session.open()), "What makes the tides?");
    let expected = "assistant: I cannot explain this just now (no answer in 60 s \
                    (model-unavailable)). Here is the material itself:\n\n\
                    The Moon pulls at the sea.";
    assert_eq!(last(&session), expected);
}

#[test]
fn an_explanation_that_is_not_whole_says_so_and_a_refusal_is_no_explanation() {
    let cut = Reply::new().text("The Moon").cut_off(CutOff::Length);
    let mut session = tutor(&tides()).model_replies(cut);
    assert_eq!(prompt(&session.open()), "What makes the tides?");
    assert_eq!(last(&session), "assistant: [cut off at the length limit]");
    let refused = Reply::new().text("I can't.").cut_off(CutOff::Refusal);
    let mut session = tutor(&tides()).model_replies(refused);
    session.open();
    let expected = "assistant: I cannot explain this just now (the model declined to answer). \
                    Here is the material itself:\n\nThe Moon pulls at the sea.";
    assert_eq!(last(&session), expected);
}

#[test]
fn an_answer_that_cannot_be_judged_goes_on_record_and_does_not_count() {
    let mut session = tutor(&tides()).model_says("…").model_replies(down());
    session.open();
    let end = summary(session.answer(json!({ "text": "The Moon" })));
    assert_eq!((&end["total"], &end["score"]), (&json!(0), &Value::Null));
    assert_eq!(
        (status(&session, 0), &session.items()[0].response),
        (json!("not_judged"), &json!({ "text": "The Moon" }))
    );
    assert!(
        session.transcript()[2].ends_with("It does not count. A good answer: The Moon's pull.")
    );
    assert_eq!(
        session.preferred()["level"],
        "intermediate",
        "nothing was learned of the student"
    );
}

/// Questions that cannot be written are tried once more, and then the lesson ends without them.
#[test]
fn questions_that_cannot_be_written_are_tried_twice_and_then_left_out() {
    let lesson = json!({ "title": "Tides", "text": "The Moon pulls at the sea." });
    let mut session = tutor(&lesson)
        .model_replies(down())
        .model_says("The sea follows the Moon.")
        .model_says(r#"{"questions": []}"#);
    let end = summary(session.open());
    assert_eq!((&end["total"], &end["score"]), (&json!(0), &Value::Null));
    let said = session.transcript().join("\n");
    assert!(
        said.contains(
            "I could not prepare questions (no answer in 60 s (model-unavailable)). I will try \
             again."
        ),
        "{said}"
    );
    assert!(
        said.contains(
            "I could not prepare questions (none of them can be asked). We do without them."
        ),
        "{said}"
    );
}

#[test]
fn a_question_of_the_students_that_cannot_be_answered_leaves_the_lesson_as_it_is() {
    let mut session = tutor(&tides())
        .model_says("…")
        .model_replies(down())
        .model_says(&judged(1.0, "Yes."));
    session.open();
    assert_eq!(prompt(&session.say("How often?")), "What makes the tides?");
    assert!(last(&session).starts_with("assistant: I cannot answer that just now (no answer"));
    assert_eq!(
        summary(session.answer(json!({ "text": "The Moon" })))["correct"],
        1
    );
}

#[test]
fn an_answer_that_does_not_come_in_time_goes_on_record_and_the_lesson_goes_on() {
    let mut session = tutor(&sums());
    session.open();
    assert_eq!(prompt(&session.time_out()), "2 + 2?");
    assert_eq!(
        last(&session),
        "assistant: The time for this question is up. It is \"2\". One and one is two."
    );
    let end = summary(session.withdraw());
    assert_eq!((&end["correct"], &end["total"]), (&json!(0), &json!(2)));
    assert_eq!(
        (status(&session, 0), status(&session, 1)),
        (json!("timed_out"), json!("cancelled"))
    );
}

#[test]
fn a_question_can_be_skipped() {
    let mut session = tutor(&tides()).model_says("…");
    session.open();
    let again = session.answer(json!({ "skipped": true }));
    assert_eq!(
        prompt(&again),
        "What makes the tides?",
        "its objective is weak, so it comes again"
    );
    let end = summary(session.answer(json!({ "skipped": true })));
    assert_eq!(
        (&end["total"], &end["correct"], &end["weak_objectives"]),
        (&json!(1), &json!(0), &json!(["causes"]))
    );
    assert_eq!(status(&session, 0), "skipped");
}

#[test]
fn a_lesson_that_makes_no_sense_fails_with_the_field_at_fault() {
    let question = |fields: Value| json!({ "title": "x", "questions": [fields] });
    for (lesson, fault) in [
        (
            json!({}),
            "session_config.lesson.title: a text of 1 to 200 bytes is needed",
        ),
        (
            json!({ "title": "x" }),
            "session_config.lesson: there is nothing to teach; give it a `text`, `objectives` or \
             `questions`",
        ),
        (
            json!({ "title": "x", "txt": "y" }),
            "session_config.lesson.txt: unknown field `txt`",
        ),
        (
            json!({ "title": "x", "text": "y".repeat(102_401) }),
            "session_config.lesson.text: at most 102400 bytes can be taught",
        ),
        (
            json!({ "title": "x", "text": "y", "objectives": [""] }),
            "session_config.lesson.objectives[0]: a text of 1 to 160 bytes",
        ),
        (
            question(json!({ "prompt": "?", "options": ["a", "b"], "answer": 2 })),
            "session_config.lesson.questions[0].answer: an index from 0 to 1 is needed, this is 2",
        ),
        (
            question(json!({ "prompt": "?", "points": 2 })),
            "session_config.lesson.questions[0].points: questions of exams have it",
        ),
        (
            question(json!({ "prompt": ["?"] })),
            "session_config.lesson.questions[0].prompt: invalid type: sequence",
        ),
    ] {
        let mut session = Conversation::new(Tutor)
            .session_type("learning")
            .session_config(json!({ "lesson": lesson }));
        let ConversationStatus::Failed(reason) = session.open() else {
            panic!("it did not fail")
        };
        assert!(reason.starts_with(fault), "{reason}");
    }
    let mut session = tutor(&json!({ "title": 3 }));
    let ConversationStatus::Failed(reason) = session.open() else {
        panic!("it did not fail")
    };
    assert!(
        reason.starts_with("settings.lesson.title: invalid type"),
        "{reason}"
    );
}

#[test]
fn a_lesson_whose_turn_is_nearly_used_up_answers_and_asks_in_the_next_turn() {
    let few = LimitsLeft {
        steps: 10,
        tool_calls: 0,
        tokens: 1_000_000,
    };
    let mut session = tutor(&tides())
        .limits(few)
        .model_says("…")
        .model_says("Twice a day.")
        .model_says(&judged(1.0, "Yes."));
    session.open();
    assert!(matches!(
        session.say("How often?"),
        ConversationStatus::Replied(_)
    ));
    assert_eq!(prompt(&session.remind()), "What makes the tides?");
    assert_eq!(last(&session), "assistant: Twice a day.");
    assert_eq!(
        summary(session.answer(json!({ "text": "The Moon" })))["correct"],
        1
    );
}

#[test]
fn the_longest_lesson_stays_within_the_limits_of_steps_and_state() {
    let long = "ä".repeat(250);
    let question = |at: usize| {
        json!({
            "part": at % 8 + 1, "widget": "free_text", "prompt": long, "expects": long,
            "explanation": long, "hint": long,
            "objective": format!("{at} {}", "ä".repeat(70)),
        })
    };
    let questions = json!({ "questions": (0..16).map(question).collect::<Vec<_>>() });
    let lesson = json!({ "title": "Long", "text": "Das Meer steigt und fällt. ".repeat(3_600) });
    let mut session = tutor(&lesson).model_says(&questions.to_string());
    // What is taught reads like a judgement too; each answer is wrong, each objective weak, and so
    // some questions come again.
    for _ in 0..60 {
        session = session.model_says(&judged(0.1, "no"));
    }
    let mut status = session.open();
    let end = loop {
        status = match status {
            ConversationStatus::Asking(_) => session.answer(json!({ "text": "𝄞".repeat(16_000) })),
            ConversationStatus::Replied(_) => session.remind(),
            end => break summary(end),
        }
    };
    assert_eq!(end["total"], 16);
    assert!(
        end.to_string().len() <= 8 << 10,
        "the history keeps it: {}",
        end.to_string().len()
    );
}
