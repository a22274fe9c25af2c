//! Questions in a chat, and what is read as their answers.

use super::*;
use crate::access::tool::ClientAction;
use crate::values::digest::Digest;
use crate::values::id::{OperationId, RunId};
use crate::values::time::Timestamp;
use crate::work::approval::{Approval, Exact};
use crate::work::connector::outgoing::Outbound;
use crate::work::connector::{
    APPROVAL_BYTES_MAX, BUTTON_BYTES_MAX, BUTTON_LABEL_UNITS_MAX, Choice, Said, units,
};
use crate::work::widget;
use serde_json::{Value, json};
use uuid::Uuid;

fn question() -> OperationId {
    OperationId::mint(RunId(Uuid::from_u128(1)), 0, "ask")
}

fn action(widget: &str, props: Value) -> ClientAction {
    ClientAction::of(widget, props)
}

fn asked(action: &ClientAction) -> Outbound {
    let outbound = ask(question(), action);
    for choice in &outbound.choices {
        assert!(choice.value.len() <= BUTTON_BYTES_MAX, "{}", choice.value);
        assert!(units(&choice.label) <= BUTTON_LABEL_UNITS_MAX);
    }
    assert_eq!(
        outbound.choices.is_empty(),
        outbound.without_buttons.is_none()
    );
    outbound
}

fn labels(choices: &[Choice]) -> Vec<&str> {
    choices.iter().map(|choice| choice.label.as_str()).collect()
}

/// The answer that words are read as, which the widget's own check takes.
fn said(action: &ClientAction, text: &str) -> Result<Value, NotAnAnswer> {
    let said = Said::Text {
        text: text.to_owned(),
    };
    let answer = read(question(), action, &said, false)?;
    assert_eq!(widget::contradiction(action, &answer), None);
    assert!(widget::check(action).unwrap().is_some());
    Ok(answer)
}

fn pressed(action: &ClientAction, index: usize) -> Result<Value, NotAnAnswer> {
    let value = asked(action).choices[index].value.clone();
    read(question(), action, &Said::Button { value }, false)
}

fn colours() -> ClientAction {
    action(
        "multiple_choice",
        json!({ "prompt": "Which?", "options": ["Red", "Dark  blue"] }),
    )
}

#[test]
fn a_choice_is_made_by_button_number_or_label() {
    let colours = colours();
    let outbound = asked(&colours);
    assert_eq!(outbound.text, "Which?");
    assert_eq!(labels(&outbound.choices), ["Red", "Dark blue"]);
    let numbered = "Which?\n\n1. Red\n2. Dark blue\n\nReply with a number.";
    assert_eq!(outbound.without_buttons.as_deref(), Some(numbered));
    let blue = json!({ "index": 1, "selection": "Dark  blue" });
    assert_eq!(pressed(&colours, 1), Ok(blue.clone()));
    for text in ["2", " 2. ", "#2", "2)", "dark blue", "DARK  BLUE"] {
        assert_eq!(said(&colours, text), Ok(blue.clone()), "{text}");
    }
    for text in ["0", "3", "-1", "", "green", "yes", "skip", "2 please"] {
        let nothing = said(&colours, text);
        assert_eq!(nothing, Err(NotAnAnswer::NoChoice), "{text}");
    }
}

#[test]
fn long_labels_are_listed_and_the_buttons_numbered() {
    let long = "the quite long description of an option";
    let options = action(
        "multiple_choice",
        json!({ "prompt": "Which?", "options": [long, "short"] }),
    );
    let outbound = asked(&options);
    assert_eq!(labels(&outbound.choices), ["1", "2"]);
    assert!(outbound.text.contains(&format!("1. {long}\n2. short")));
    assert_eq!(
        said(&options, "short"),
        Ok(json!({ "index": 1, "selection": "short" }))
    );
}

#[test]
fn a_label_that_two_options_have_chooses_neither() {
    let same = action(
        "multiple_choice",
        json!({ "prompt": "Which?", "options": ["Red", "red", "Blue"] }),
    );
    assert_eq!(said(&same, "red"), Err(NotAnAnswer::NoChoice));
    assert_eq!(
        said(&same, "2"),
        Ok(json!({ "index": 1, "selection": "red" }))
    );
}

#[test]
fn an_option_that_is_a_number_is_chosen_by_what_it_says() {
    let numbers = action(
        "multiple_choice",
        json!({ "prompt": "How many?", "options": ["2", "1"] }),
    );
    assert_eq!(
        said(&numbers, "1"),
        Ok(json!({ "index": 1, "selection": "1" }))
    );
}

#[test]
fn several_options_are_chosen_by_their_numbers() {
    let several = action(
        "multi_select",
        json!({ "prompt": "Which?", "options": ["a", "b", "c"], "max": 2 }),
    );
    let outbound = asked(&several);
    assert!(outbound.text.contains("2. b") && outbound.text.contains("`none`"));
    for text in ["1, 3", "3 1", "1 and 3", "1,3,3", "#1; 3."] {
        let chosen = said(&several, text);
        assert_eq!(chosen, Ok(json!({ "indices": [0, 2] })), "{text}");
    }
    assert_eq!(said(&several, "none"), Ok(json!({ "indices": [] })));
    assert!(matches!(
        said(&several, "1 2 3"),
        Err(NotAnAnswer::Count {
            max: 2,
            chosen: 3,
            ..
        })
    ));
    assert_eq!(said(&several, "1, 4"), Err(NotAnAnswer::NoChoice));
    assert_eq!(said(&several, "a, b"), Err(NotAnAnswer::NoChoice));
}

#[test]
fn yes_and_no_are_understood() {
    let sure = action(
        "confirmation",
        json!({ "prompt": "Sure?", "confirm_label": "Do it" }),
    );
    assert_eq!(labels(&asked(&sure).choices), ["Do it", "No"]);
    for text in ["1", "do it", "yes", "OK"] {
        assert_eq!(
            said(&sure, text),
            Ok(json!({ "confirmed": true })),
            "{text}"
        );
    }
    for text in ["2", "No", "n"] {
        assert_eq!(
            said(&sure, text),
            Ok(json!({ "confirmed": false })),
            "{text}"
        );
    }
    assert_eq!(said(&sure, "maybe"), Err(NotAnAnswer::NoChoice));
    assert_eq!(pressed(&sure, 0), Ok(json!({ "confirmed": true })));
    assert_eq!(pressed(&sure, 1), Ok(json!({ "confirmed": false })));
}

#[test]
fn a_rating_is_its_number_and_not_its_place() {
    let rating = action(
        "rating_scale",
        json!({ "prompt": "How was it?", "min": 0, "max": 4, "labels": { "4": "great", "0": "bad" } }),
    );
    let outbound = asked(&rating);
    assert_eq!(outbound.text, "How was it?\n\n0: bad\n4: great");
    assert_eq!(labels(&outbound.choices), ["0", "1", "2", "3", "4"]);
    assert_eq!(said(&rating, "1"), Ok(json!({ "rating": 1 })));
    assert_eq!(pressed(&rating, 0), Ok(json!({ "rating": 0 })));
    assert_eq!(said(&rating, "5"), Err(NotAnAnswer::NoChoice));
}

#[test]
fn a_question_that_may_be_skipped_says_so() {
    let props = json!({ "prompt": "Which?", "options": ["a", "b"], "skippable": true });
    let skipped = Ok(json!({ "skipped": true }));
    let choice = action("multiple_choice", props.clone());
    assert_eq!(labels(&asked(&choice).choices), ["a", "b", "Skip"]);
    assert_eq!(
        (said(&choice, "skip"), pressed(&choice, 2)),
        (skipped.clone(), skipped.clone())
    );
    assert_eq!(said(&choice, "3"), skipped);
    let several = action("multi_select", props);
    assert_eq!(said(&several, "Skip"), skipped);
    let text = action("free_text", json!({ "prompt": "Why?", "skippable": true }));
    assert!(asked(&text).text.contains("`skip`"));
    assert_eq!(said(&text, "skip"), skipped);
    let must = action("free_text", json!({ "prompt": "Why?" }));
    assert_eq!(said(&must, "skip"), Ok(json!({ "text": "skip" })));
}

#[test]
fn free_text_has_its_bounds() {
    let text = action(
        "free_text",
        json!({ "prompt": "Why?", "min_length": 3, "max_length": 5 }),
    );
    assert_eq!(said(&text, " äöü "), Ok(json!({ "text": "äöü" })));
    for wrong in ["ab", "abcdef"] {
        assert!(matches!(
            said(&text, wrong),
            Err(NotAnAnswer::Length { min: 3, max: 5, .. })
        ));
    }
}

#[test]
fn what_no_chat_can_answer_is_said_with_a_note() {
    let form = action("form", json!({ "schema": { "type": "object" } }));
    let code = action("code_editor", json!({ "prompt": "Write it." }));
    let upload = action("file_upload", json!({ "prompt": "Send it." }));
    let own = action("seat_map", json!({ "prompt": "Where?" }));
    for action in [form, code, upload, own] {
        let outbound = ask(question(), &action);
        assert!(outbound.choices.is_empty());
        assert!(outbound.text.contains("cannot be answered in a chat"));
        let answer = read(
            question(),
            &action,
            &Said::Text {
                text: "1".to_owned(),
            },
            false,
        );
        assert_eq!(answer, Err(NotAnAnswer::Elsewhere));
    }
}

#[test]
fn a_button_answers_its_own_question_alone() {
    let other = OperationId::mint(RunId(Uuid::from_u128(2)), 0, "ask");
    let value = ask(other, &colours()).choices[0].value.clone();
    let button = ButtonValue::parse(&value).unwrap();
    assert_eq!(button.question, other);
    let answer = read(question(), &colours(), &Said::Button { value }, false);
    assert_eq!(answer, Err(NotAnAnswer::Another));
    for forged in ["", "q", "q.1", "1", "qAAAA.1", "approve"] {
        assert_eq!(ButtonValue::parse(forged), None, "{forged}");
    }
    let out_of_range = ButtonValue {
        question: question(),
        pressed: Pressed::Number(9),
    };
    let value = out_of_range.to_text();
    let answer = read(question(), &colours(), &Said::Button { value }, false);
    assert_eq!(answer, Err(NotAnAnswer::NoChoice));
}

fn approval(arguments: &str) -> Approval {
    let exact = Exact {
        operation: question(),
        component: Digest([2; 32]),
        tool: "delete_file",
        arguments,
    };
    Approval::new(&exact, "files", "worker", Timestamp(1_700_000_000_000))
}

fn code(outbound: &Outbound) -> String {
    let words = outbound.without_buttons.as_deref().unwrap();
    let (_, after) = words.split_once("`approve ").unwrap();
    after.split('`').next().unwrap().to_owned()
}

#[test]
fn an_approval_shows_the_whole_call() {
    let approval = approval(r#"{"path":"a/b","force":true}"#);
    let outbound = asked(&approval.action);
    for part in [
        "delete_file",
        r#""path": "a/b""#,
        r#""force": true"#,
        "by `files`",
        "before 2023-11-14 22:13 UTC",
    ] {
        assert!(outbound.text.contains(part), "{part}: {}", outbound.text);
    }
    assert_eq!(labels(&outbound.choices), ["Approve", "Refuse"]);
    let agreed = pressed(&approval.action, 0).unwrap();
    assert!(approval.agrees(&agreed));
    let refused = pressed(&approval.action, 1).unwrap();
    assert!(!approval.agrees(&refused));
}

#[test]
fn an_approval_in_words_names_the_call() {
    let approval = approval("{}");
    let outbound = asked(&approval.action);
    let code = code(&outbound);
    let read = |text: &str| {
        let said = Said::Text {
            text: text.to_owned(),
        };
        read(question(), &approval.action, &said, false)
    };
    let agreed = read(&format!(" Approve {} ", code.to_lowercase())).unwrap();
    assert!(approval.agrees(&agreed));
    let refused = read(&format!("refuse {code}")).unwrap();
    assert!(!approval.agrees(&refused));
    let more = format!("approve {code} now");
    for text in ["1", "yes", "approve", "approve 0000", "ok", &more] {
        assert_eq!(read(text), Err(NotAnAnswer::NoChoice), "{text}");
    }
    // Whoever says anything else is told how it is given; another question takes any words.
    let reported = open_approval(question(), &approval.action).unwrap();
    assert!(
        reported.contains(&format!("`approve {code}`")),
        "{reported}"
    );
    assert_eq!(open_approval(question(), &colours()), None);
}

#[test]
fn an_approval_is_not_given_in_a_group() {
    let approval = approval("{}");
    let value = ask(question(), &approval.action).choices[0].value.clone();
    let answer = read(question(), &approval.action, &Said::Button { value }, true);
    assert_eq!(answer, Err(NotAnAnswer::InGroup));
    let value = ask(question(), &colours()).choices[0].value.clone();
    assert!(read(question(), &colours(), &Said::Button { value }, true).is_ok());
}

#[test]
fn a_call_that_a_chat_does_not_show_whole_is_approved_elsewhere() {
    let long = json!({ "text": "a".repeat(APPROVAL_BYTES_MAX) }).to_string();
    let outbound = ask(question(), &approval(&long).action);
    assert!(outbound.choices.is_empty());
    assert!(outbound.text.contains("cannot be answered in a chat"));
}

#[test]
fn nothing_in_a_call_is_hidden_or_ends_its_block() {
    let arguments = json!({ "text": "a\u{202e}b\u{e0041} ```\n\n````approved" }).to_string();
    let outbound = asked(&approval(&arguments).action);
    assert!(outbound.text.contains("\\u202e"));
    assert!(outbound.text.contains("\\udb40\\udc41"));
    assert!(outbound.text.contains("`````json\n"));
    let fences = outbound.text.lines().filter(|line| line.starts_with("```"));
    assert_eq!(fences.count(), 2);
}

#[test]
fn what_an_agent_has_approved_is_shown_whole_too() {
    let with = |details: Value| {
        let props = json!({ "prompt": "Send it?", "details": details });
        action("approval", props)
    };
    let mail = with(json!({ "to": "bob@example.org" }));
    let outbound = asked(&mail);
    assert!(outbound.text.contains("bob@example.org"));
    assert_eq!(labels(&outbound.choices), ["Approve", "Decline"]);
    assert_eq!(said(&mail, "decline"), Ok(json!({ "approved": false })));
    assert_eq!(pressed(&mail, 0), Ok(json!({ "approved": true })));
    assert_eq!(asked(&with(Value::Null)).text, "Send it?");
    let long = with("a".repeat(APPROVAL_BYTES_MAX).into());
    assert!(ask(question(), &long).choices.is_empty());
}

/// An edit of an earlier message, or a reaction to one, fits a question for any text.
#[test]
fn an_edit_or_a_reaction_answers_no_question() {
    for (widget, props, text) in [
        ("free_text", json!({ "prompt": "Where?" }), "[reaction 👍]"),
        ("confirmation", json!({ "prompt": "Sure?" }), "yes"),
    ] {
        let action = action(widget, props);
        assert!(said(&action, text).is_ok(), "{widget}");
        let aside = Said::Aside {
            text: text.to_owned(),
        };
        let answer = read(question(), &action, &aside, false);
        assert_eq!(answer, Err(NotAnAnswer::NoWords), "{widget}");
    }
}
