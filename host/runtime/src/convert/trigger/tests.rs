//! Tests of what a trigger returns, and of its bounds.

use super::*;
use crate::convert::Unacceptable;

fn message(text: &str) -> trigger::Message {
    trigger::Message {
        target: None,
        content: vec![Part::Text(text.into())],
        idempotency_key: String::new(),
    }
}

fn returning(messages: Vec<trigger::Message>) -> trigger::TriggerRun {
    trigger::TriggerRun {
        messages,
        state: None,
        done: false,
    }
}

fn check(returned: trigger::TriggerRun, expected: &str) {
    let Unacceptable(detail) = trigger_run(Ok(returned), &[1]).unwrap_err();
    assert!(
        detail.contains(expected),
        "{detail} does not contain {expected}"
    );
}

#[test]
fn messages_are_bounded_in_number_and_bytes() {
    let many = |count: usize, text: &str| returning(vec![message(text); count]);
    check(many(101, "a"), "`messages` are 101; 100 at most");
    let long = "a".repeat(MESSAGE_BYTES_MAX);
    check(
        many(1, &format!("{long}a")),
        "`messages[0].content` is 65537 bytes long; 65536 at most",
    );
    check(many(17, &long), "`messages` is 1114112 bytes long");
    assert_eq!(
        trigger_run(Ok(many(16, &long)), &[])
            .unwrap()
            .unwrap()
            .messages
            .len(),
        16
    );
}

#[test]
fn a_message_says_something_in_text_alone() {
    check(returning(vec![message(" \n")]), "says nothing");
    let opaque = trigger::Message {
        content: vec![Part::Opaque("sha256:0".into())],
        ..message("")
    };
    check(returning(vec![opaque]), "has a part that is no text");
    let lines = trigger::Message {
        content: vec![Part::Text("one".into()), Part::Text("two".into())],
        ..message("")
    };
    let fired = trigger_run(Ok(returning(vec![lines])), &[])
        .unwrap()
        .unwrap();
    assert_eq!(fired.messages[0].text, "one\ntwo");
    assert_eq!(fired.messages[0].key, None);
}

#[test]
fn targets_and_keys_have_their_form() {
    let aiming = trigger::Message {
        target: Some("Not A Name".into()),
        ..message("hello")
    };
    check(
        returning(vec![aiming]),
        "`messages[0].target` names no target",
    );
    for (key, expected) in [
        ("a\nb".to_owned(), "has a control character"),
        ("k".repeat(257), "is 257 bytes long; 256 at most"),
    ] {
        let keyed = trigger::Message {
            idempotency_key: key,
            ..message("hello")
        };
        check(returning(vec![keyed]), expected);
    }
}

#[test]
fn a_state_is_bounded_and_of_a_format_that_is_read() {
    let keeping = |format: u32, bytes: usize| trigger::TriggerRun {
        state: Some(trigger::State {
            format,
            bytes: vec![0; bytes],
        }),
        ..returning(Vec::new())
    };
    check(keeping(2, 1), "`state.format` is 2");
    check(keeping(1, 65_537), "`state.bytes` is 65537 bytes long");
    assert!(trigger_run(Ok(keeping(1, 65_536)), &[1]).is_ok());
}
