//! Lessons of before: the level and tone that they leave, and notes for everybody.

use super::{also, last, prompt, sums, tides, tutor};
use agent_host_sdk::PastSession;
use serde_json::{Value, json};

fn past(summary: Value) -> PastSession {
    past_of("", summary)
}

fn past_of(user: &str, summary: Value) -> PastSession {
    PastSession {
        session_id: "00000000-0000-4000-8000-000000000009".to_owned(),
        user_id: user.to_owned(),
        session_type: "learning".to_owned(),
        status: "completed".to_owned(),
        reason: None,
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        completed_at: "2026-01-01T00:10:00Z".to_owned(),
        items: 2,
        summary,
    }
}

#[test]
fn a_lesson_leaves_what_helps_the_next_time() {
    let mut session = tutor(&sums())
        .user("ann")
        .preferences(json!({ "level": "beginner", "weak_objectives": ["dividing"] }));
    session.open();
    session.answer(json!({ "index": 0 }));
    session.answer(json!({ "index": 1 }));
    let kept = session.preferred();
    assert_eq!(
        (&kept["level"], &kept["lessons"], &kept["weak_objectives"]),
        (&json!("intermediate"), &json!(1), &json!(["dividing"]))
    );
    assert_eq!(
        kept["last_lesson"],
        json!({ "title": "Sums", "score": 1.0, "ended_ms": 1_700_000_000_000_u64 })
    );
    assert_eq!(
        session.notes(),
        ["Lesson \"Sums\" of the user ann: 2 of 2 right, 100 %."]
    );
}

#[test]
fn a_hard_lesson_lowers_the_level_and_a_level_in_other_words_stays() {
    for (level, expected) in [
        ("advanced", "intermediate"),
        ("beginner", "beginner"),
        ("for children", "for children"),
    ] {
        let mut session = tutor(&sums()).preferences(json!({ "level": level }));
        session.open();
        session.answer(json!({ "index": 1 }));
        session.answer(json!({ "index": 0 }));
        assert_eq!(session.preferred()["level"], expected);
    }
}

#[test]
fn the_same_lesson_again_begins_with_how_it_went() {
    let summary = json!({ "title": "Tides", "score": 0.4, "weak_objectives": ["causes"] });
    let mut session = tutor(&tides()).past_session(past(summary)).model_says("…");
    session.open();
    assert!(session.transcript()[0].starts_with(
        "assistant: Welcome back. You had 40 % in this lesson last time. We will look closely at \
         causes. Welcome to the lesson"
    ));
    assert!(also(&session.requests()[0]).contains("found difficult before: causes"));
}

#[test]
fn another_lesson_begins_with_the_last_one_and_keeps_level_and_tone() {
    let known = json!({
        "level": "advanced", "tone": "playful", "lessons": 3,
        "last_lesson": { "title": "Sums", "score": 1.0 },
    });
    let mut session = tutor(&tides()).preferences(known).model_says("…");
    session.open();
    assert!(
        session.transcript()[0].starts_with(
            "assistant: Welcome back. Last time it was \"Sums\". Welcome to the lesson"
        )
    );
    let reported = also(&session.requests()[0]);
    assert!(
        reported.contains("level: advanced\nwishes this tone: playful"),
        "{reported}"
    );
}

#[test]
fn what_a_session_is_opened_with_says_level_and_tone_too() {
    let mut session = tutor(&tides())
        .session_config(json!({ "level": "expert", "tone": "dry" }))
        .model_says("…");
    session.open();
    assert!(also(&session.requests()[0]).contains("level: expert\nwishes this tone: dry"));
}

#[test]
fn preferences_that_cannot_be_read_are_left_aside() {
    let mut session = tutor(&sums()).preferences(json!({ "lessons": "many" }));
    assert_eq!(prompt(&session.open()), "1 + 1?");
    assert!(last(&session).starts_with("assistant: Welcome to the lesson"));
}

/// The lessons that were taught and how they went are remembered for everybody. The memory says of
/// nobody who it was.
#[test]
fn the_lessons_taught_are_remembered_for_everybody_without_saying_whose_they_were() {
    let mut session = tutor(&sums())
        .user("alice")
        .shared_preferences(json!({ "taught": [{ "title": "Tides", "times": 3 }], "tone": "dry" }));
    session.open();
    session.answer(json!({ "index": 0 }));
    session.answer(json!({ "index": 1 }));
    let shared = session.preferred_for_all();
    let this = json!({
        "title": "Sums", "times": 1, "score": 1.0, "difficult": [],
        "ended_ms": 1_700_000_000_000_u64,
    });
    assert_eq!(
        (
            &shared["taught"][0],
            &shared["taught"][1]["title"],
            &shared["tone"]
        ),
        (&this, &json!("Tides"), &json!("dry"))
    );
    assert!(!shared.to_string().contains("alice"));
    assert!(
        session.preferred().get("taught").is_none(),
        "and what concerns the student is apart from it: {}",
        session.preferred()
    );
    assert!(shared.get("level").is_none());
}

#[test]
fn what_others_have_learned_helps_to_teach_and_is_not_held_to_be_this_students() {
    let taught = json!({
        "taught": [
            { "title": "Sums", "times": 1 },
            { "title": "Tides", "times": 2, "score": 0.4, "difficult": ["causes"] },
        ],
    });
    let alices = past_of(
        "alice",
        json!({ "title": "Tides", "score": 1.0, "weak_objectives": ["causes"] }),
    );
    let mut session = tutor(&tides())
        .user("bob")
        .shared_preferences(taught)
        .past_session(alices)
        .model_says("…");
    session.open();
    assert!(
        session.transcript()[0].starts_with("assistant: Welcome to the lesson \"Tides\"."),
        "{:?}",
        session.transcript()
    );
    let reported = also(&session.requests()[0]);
    assert!(reported.contains(
        "do not take it that this student had them:\n```\nTides: 2 times, the last time with 40 %; \
         difficult: causes\nSums: once"
    ));
    assert!(!reported.contains("found difficult before"), "{reported}");
}

#[test]
fn what_a_mentee_does_is_theirs_alone() {
    let taught = json!({
        "taught": [{
            "title": "Tides", "times": 2, "score": 0.4, "difficult": ["causes"], "ended_ms": 1,
        }],
    });
    let mut session = tutor(&sums())
        .user("bob")
        .shared_preferences(taught.clone())
        .for_mentee();
    session.open();
    session.answer(json!({ "index": 0 }));
    session.answer(json!({ "index": 1 }));
    assert_eq!(session.preferred_for_all(), &taught);
    assert_eq!(session.preferred()["last_lesson"]["title"], "Sums");
}
