//! Senders, groups, and what becomes of their messages.

use super::*;
use crate::values::time::Timestamp;
use serde_json::{Value, json};

fn spec(changes: &Value) -> ConnectorSpec {
    let mut spec = json!({ "component": "telegram", "agent": "assistant" });
    let fields = spec.as_object_mut().unwrap();
    fields.extend(changes.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

fn telegram() -> ConnectorName {
    "telegram".parse().unwrap()
}

fn said(sender: &str, group: Option<&str>) -> Incoming {
    Incoming {
        id: "1".to_owned(),
        sender: sender.to_owned(),
        sender_name: None,
        group: group.map(str::to_owned),
        chat: "9".to_owned(),
        said: Said::Text {
            text: "hello".to_owned(),
        },
        quotations: Vec::new(),
        attachments: Vec::new(),
        sent_at: Timestamp(1),
    }
}

fn received(spec: &ConnectorSpec, incoming: &Incoming, user: Option<&str>) -> Reception {
    let user = user.map(|user| user.parse().unwrap());
    receive(spec, &telegram(), incoming, user.as_ref())
}

#[test]
fn a_group_has_a_key_that_no_sender_can_have() {
    let key = |incoming: &Incoming| key_of(&telegram(), incoming).map(|key| key.to_string());
    assert_eq!(key(&said("42", None)), Ok("telegram:42".to_owned()));
    let group = key(&said("42", Some("-100")));
    assert_eq!(group, Ok("telegram:group:-100".to_owned()));
    assert_eq!(key(&said("group:-100", None)), Err(NoSender::Group));
    assert_eq!(key(&said("group:-100", Some("-1"))), Err(NoSender::Group));
}

#[test]
fn whoever_has_another_id_has_another_key_of_the_same_kind() {
    let keys = |from: &str, to: &str, is_group: bool| {
        let moved = Moved {
            from: from.to_owned(),
            to: to.to_owned(),
            is_group,
        };
        keys_of_moved(&telegram(), &moved).map(|keys| keys.map(|key| key.to_string()))
    };
    assert_eq!(
        keys("-5", "-100", true),
        Ok(["telegram:group:-5", "telegram:group:-100"].map(str::to_owned))
    );
    assert_eq!(
        keys("4912", "4913", false),
        Ok(["telegram:4912", "telegram:4913"].map(str::to_owned))
    );
    // No person becomes a group.
    assert_eq!(keys("4912", "group:-5", false), Err(NoSender::Group));
    assert_eq!(keys("group:-5", "4913", false), Err(NoSender::Group));
}

#[test]
fn a_sender_who_is_known_speaks_to_an_agent_of_theirs() {
    let accepted = |own_words| Reception::Accept {
        user: "alice".parse().unwrap(),
        path: "/alice/telegram".parse().unwrap(),
        own_words,
    };
    let alone = said("42", None);
    let plain = spec(&json!({}));
    assert_eq!(received(&plain, &alone, Some("alice")), accepted(true));
    // Where senders prove nothing, their words are content from outside.
    let mail = spec(&json!({ "untrusted": true }));
    assert_eq!(received(&mail, &alone, Some("alice")), accepted(false));
    // In a group anybody may have said it.
    let groups = spec(&json!({ "groups": "bound" }));
    let in_group = said("42", Some("-100"));
    assert_eq!(received(&groups, &in_group, Some("alice")), accepted(false));
    assert_eq!(
        received(&plain, &in_group, Some("alice")),
        Reception::Ignore
    );
}

#[test]
fn a_sender_whom_nobody_knows_gets_what_the_operator_says() {
    let alone = said("42", None);
    let with = |changes: Value| received(&spec(&changes), &alone, None);
    assert_eq!(with(json!({})), Reception::Ignore);
    assert_eq!(with(json!({ "unknown": "pair" })), Reception::Pair);
    let Reception::Refuse { text } = with(json!({ "unknown": "refuse" })) else {
        panic!("another reception")
    };
    assert_eq!(text, REFUSAL);
    let own = with(json!({ "unknown": "refuse", "refusal": "No." }));
    assert_eq!(
        own,
        Reception::Refuse {
            text: "No.".to_owned()
        }
    );
}

#[test]
fn no_group_and_no_button_of_a_stranger_is_answered() {
    let mut pressed = said("42", None);
    pressed.said = Said::Button {
        value: "q".to_owned(),
    };
    for unknown in ["ignore", "refuse", "pair"] {
        let spec = spec(&json!({ "unknown": unknown, "groups": "bound" }));
        let in_group = said("42", Some("-100"));
        assert_eq!(received(&spec, &in_group, None), Reception::Ignore);
        assert_eq!(received(&spec, &pressed, None), Reception::Ignore);
    }
}

/// Nobody may ever read what somebody says whom nobody knows, and so it is not kept.
#[test]
fn the_words_of_a_sender_whom_nobody_knows_are_not_kept() {
    let message = Incoming {
        sender_name: Some("Eve".to_owned()),
        ..said("42", None)
    };
    let kept = |spec: &Value, user: Option<&str>| {
        received(&self::spec(spec), &message, user).kept(message.clone())
    };
    assert_eq!(kept(&json!({}), Some("eve")), Some(message.clone()));
    assert_eq!(kept(&json!({}), None), None);
    let wordless = message.clone().without_words();
    assert_eq!(wordless.said_words(), None);
    let paired = kept(&json!({ "unknown": "pair" }), None);
    assert_eq!(paired, Some(wordless.clone()), "an operator sees the name");
    let nameless = Incoming {
        sender_name: None,
        ..wordless
    };
    assert_eq!(kept(&json!({ "unknown": "refuse" }), None), Some(nameless));
}
