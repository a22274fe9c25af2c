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

/// Values over a bound are tested with a component, in `tests/all/triggers.rs`.
#[test]
fn what_is_at_a_bound_is_taken() {
    let full = returning(vec![message(&"a".repeat(MESSAGE_BYTES_MAX)); 16]);
    let taken = trigger_run(Ok(full), &[]).unwrap().unwrap();
    assert_eq!(taken.messages.len(), 16);
    let keeping = trigger::TriggerRun {
        state: Some(trigger::State {
            format: 1,
            bytes: vec![0; STATE_BYTES_MAX],
        }),
        ..returning(Vec::new())
    };
    assert!(trigger_run(Ok(keeping), &[1]).is_ok());
}

#[test]
fn a_message_says_something_in_text_alone() {
    let opaque = trigger::Message {
        content: vec![Part::Opaque("sha256:0".into())],
        ..message("")
    };
    check(returning(vec![opaque]), "has a part that is no text");
    let keyed = trigger::Message {
        idempotency_key: "k".repeat(257),
        ..message("hello")
    };
    check(returning(vec![keyed]), "is 257 bytes long; 256 at most");
    let lines = trigger::Message {
        content: vec![Part::Text("one".into()), Part::Text("two".into())],
        ..message("")
    };
    let fired = trigger_run(Ok(returning(vec![lines])), &[]).unwrap();
    let fired = fired.unwrap().messages.remove(0);
    assert_eq!((fired.text.as_str(), fired.key), ("one\ntwo", None));
}
