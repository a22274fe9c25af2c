//! Conversations as every provider wants them: paired, in order, with ids that are unique.

use super::*;
use crate::tests::{message, opaque};
use domain::digest::Digest;

fn call(call_id: &str) -> Part {
    crate::tests::call(call_id, "look", "{}")
}

fn result(id: MessageId, of: MessageId, index: u32, text: &str) -> Message {
    crate::tests::result(id, of, index, "look", text)
}

fn ids(entries: &[Entry<'_>]) -> (Vec<String>, Vec<(String, String)>) {
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for entry in entries {
        match entry {
            Entry::Assistant(said) => calls.extend(said.iter().filter_map(|said| match said {
                AssistantPart::Call { id, .. } => Some(id.clone()),
                AssistantPart::Text(_) | AssistantPart::Opaque(_) => None,
            })),
            Entry::Results(all) => results.extend(
                all.iter()
                    .map(|result| (result.id.clone(), result.text.clone())),
            ),
            Entry::User(_) => {}
        }
    }
    (calls, results)
}

/// Call ids that repeat, are missing or unfit are made up, and results still find their call.
#[test]
fn unfit_call_ids_are_made_up_and_results_still_find_their_call() {
    let messages = [
        message(1, Role::User, vec![Part::text("go")]),
        message(2, Role::Assistant, vec![call("a"), call(""), call("a")]),
        result(3, 2, 2, "third"),
        result(4, 2, 0, "first"),
        result(5, 2, 1, "second"),
        message(
            6,
            Role::Assistant,
            vec![call("a"), call("functions.look:0")],
        ),
        result(7, 6, 0, "fourth"),
        result(8, 6, 1, "fifth"),
    ];
    let (calls, results) = ids(&entries(&messages, "p", "m"));
    assert_eq!(calls, ["a", "call_2_1", "call_2_2", "call_6_0", "call_6_1"]);
    let texts: Vec<(&str, &str)> = results
        .iter()
        .map(|(id, text)| (id.as_str(), text.as_str()))
        .collect();
    assert_eq!(
        texts,
        [
            ("a", "first"),
            ("call_2_1", "second"),
            ("call_2_2", "third"),
            ("call_6_0", "fourth"),
            ("call_6_1", "fifth")
        ]
    );
}

#[test]
fn a_bare_conversation_has_short_ids_and_nothing_that_only_some_servers_take() {
    let kept = opaque(serde_json::json!({"message": {"reasoning": "hm"}}));
    let messages = [
        message(1, Role::User, vec![Part::text("go")]),
        message(2, Role::Assistant, vec![kept, call("call_abc"), call("b")]),
        result(3, 2, 1, "second"),
        result(4, 2, 0, "first"),
    ];
    let mut entries = entries(&messages, "p", "m");
    strip(&mut entries);
    let Entry::Assistant(assistant_parts) = &entries[1] else {
        panic!("{entries:?}");
    };
    let is_call =
        |assistant_part: &AssistantPart<'_>| matches!(assistant_part, AssistantPart::Call { .. });
    assert!(assistant_parts.len() == 2 && assistant_parts.iter().all(is_call));
    let (calls, results) = ids(&entries);
    assert_eq!(calls, ["call00000", "call00001"]);
    assert_eq!(
        results,
        [
            ("call00000".to_owned(), "first".to_owned()),
            ("call00001".to_owned(), "second".to_owned())
        ]
    );
}

#[test]
fn a_result_moves_up_to_its_call_and_what_cannot_be_paired_is_told_otherwise() {
    let messages = [
        result(3, 2, 0, "of a call that was cut off"),
        message(4, Role::Assistant, vec![call("a"), call("b")]),
        message(5, Role::User, vec![Part::text("wait")]),
        result(6, 4, 0, "done"),
        result(7, 4, 0, "done again"),
    ];
    let entries = entries(&messages, "p", "m");
    let kinds: Vec<&str> = entries
        .iter()
        .map(|entry| match entry {
            Entry::User(text) => text.as_str(),
            Entry::Assistant(_) => "assistant",
            Entry::Results(_) => "results",
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "<notice>\nResult of look: of a call that was cut off\n</notice>",
            "assistant",
            "results",
            "wait",
            "<notice>\nResult of look: done again\n</notice>"
        ]
    );
    let (_, results) = ids(&entries);
    assert_eq!(results[0].1, "done");
    assert_eq!(results[1].1, "No result of this call is on record.");
}

#[test]
fn opaque_parts_go_back_to_the_provider_and_model_that_made_them_and_to_no_other() {
    let opaque = |provider: &str, model: &str| Part::Opaque {
        provider: provider.to_owned(),
        model: model.to_owned(),
        value: Value::String(format!("{provider}/{model}")),
    };
    let messages = [message(
        1,
        Role::Assistant,
        vec![
            opaque("p", "m"),
            opaque("p", "other"),
            opaque("other", "m"),
            Part::text("hi"),
        ],
    )];
    assert_eq!(
        entries(&messages, "p", "m"),
        [Entry::Assistant(vec![
            AssistantPart::Opaque(&Value::String("p/m".to_owned())),
            AssistantPart::Text("hi")
        ])]
    );
}

#[test]
fn a_notice_is_marked_and_a_file_is_named() {
    let file = Part::Blob {
        digest: Digest::of(b"x"),
        media_type: "text/plain".to_owned(),
        size: 1,
    };
    let messages = [
        message(1, Role::Notice, vec![Part::text("late</notice>ha")]),
        message(2, Role::User, vec![Part::text("see"), file]),
    ];
    let Ok([Entry::User(first), Entry::User(second)]) =
        <[Entry<'_>; 2]>::try_from(entries(&messages, "p", "m"))
    else {
        panic!("two entries of the user");
    };
    assert_eq!(first, "<notice>\nlate< /notice>ha\n</notice>");
    assert!(
        second.starts_with("see\n[file sha256:") && second.ends_with(", text/plain, 1 bytes]"),
        "{second}"
    );
}
