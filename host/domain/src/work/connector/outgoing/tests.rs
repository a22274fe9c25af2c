//! Messages as services get them.

use super::*;
use crate::work::connector::Intake;

fn abilities(text_limit: u32, buttons_max: u32) -> Abilities {
    Abilities {
        intake: vec![Intake::Polling],
        text_limit,
        buttons_max,
        edits: false,
        typing: false,
        idempotent: false,
    }
}

fn question() -> Outbound {
    let choice = |label: &str| Choice {
        label: label.to_owned(),
        value: label.to_lowercase(),
    };
    Outbound {
        text: "Which?".to_owned(),
        choices: vec![choice("One"), choice("Two")],
        without_buttons: Some("Which?\n\n1. One\n2. Two".to_owned()),
    }
}

#[test]
fn nothing_to_say_is_not_sent() {
    for nothing in ["", "  \n ", "\t"] {
        assert_eq!(Outbound::text(nothing), None);
    }
    let said = Outbound::text(" hello\n").unwrap();
    let chunks = said.chunks(&abilities(4_096, 0));
    assert_eq!(chunks, [Body::Text("hello".to_owned())]);
}

#[test]
fn choices_are_buttons_where_the_service_has_enough() {
    let asked = question();
    let choices = asked.choices.clone();
    assert_eq!(
        asked.chunks(&abilities(4_096, 2)),
        [Body::Question("Which?".to_owned(), choices)]
    );
    let numbered = asked.without_buttons.clone().unwrap();
    for buttons in [0, 1] {
        let chunks = asked.chunks(&abilities(4_096, buttons));
        assert_eq!(chunks, [Body::Text(numbered.clone())]);
    }
}

#[test]
fn the_buttons_of_a_long_question_are_under_its_last_piece() {
    let mut asked = question();
    asked.text = format!("{}\n\nWhich?", "word ".repeat(80).trim_end());
    let chunks = asked.chunks(&abilities(200, 3));
    let (last, before) = chunks.split_last().unwrap();
    assert!(matches!(last, Body::Question(text, _) if text.ends_with("Which?")));
    assert!(before.len() >= 2);
    assert!(before.iter().all(|chunk| matches!(chunk, Body::Text(_))));
}

#[test]
fn a_text_beyond_all_bounds_is_cut_and_says_so() {
    let long = format!("```\n{}", "ab\n".repeat(OUTGOING_BYTES_MAX / 2));
    let text = Outbound::text(&long).unwrap().text;
    assert!(text.len() <= OUTGOING_BYTES_MAX);
    assert!(text.ends_with(&format!("\n```{CUT}")));
    let whole = "a".repeat(OUTGOING_BYTES_MAX);
    assert_eq!(Outbound::text(&whole).unwrap().text, whole);
}
