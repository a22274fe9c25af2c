//! Files of both dialects as they were written once: they read as what they are, and are written
//! the same again.

use super::story::{adoption, story};
use crate::thread::transcript::dialect::{Dialect, aix, pi};
use crate::thread::transcript::{Reading, Transcript, read};
use serde_json::Value;
use std::path::PathBuf;

#[expect(clippy::disallowed_methods, reason = "said by whoever runs the tests")]
fn check(name: &str, written: &[u8]) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/transcript")
        .join(name);
    if std::env::var("AGENT_HOST_ACCEPT").is_ok_and(|value| value == "1") {
        std::fs::write(&file, written).unwrap();
    }
    let noted = std::fs::read(&file).unwrap_or_default();
    assert!(
        noted == written,
        "{name} is written differently now. Where that is meant: AGENT_HOST_ACCEPT=1"
    );
}

fn lines(file: &[u8]) -> Vec<Value> {
    std::str::from_utf8(file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The story's thread to its head.
fn thread() -> Transcript {
    let story = story();
    story.thread(story.header.head.unwrap()).unwrap()
}

#[test]
fn a_tree_is_written_for_pi_as_it_always_was() {
    let written = pi::write(&story()).unwrap();
    check("pi.jsonl", &written);
    let reading = Reading {
        transcript: story(),
        exact: true,
        left_out: vec![],
        passed_over: Vec::new(),
    };
    assert_eq!(read(&written, &adoption()), Ok((Dialect::Pi, reading)));
}

#[test]
fn a_thread_is_written_for_aix_as_it_always_was() {
    let written = aix::write(&thread()).unwrap();
    check("aix.jsonl", &written);
    let reading = Reading {
        transcript: thread(),
        exact: true,
        left_out: vec![],
        passed_over: Vec::new(),
    };
    assert_eq!(read(&written, &adoption()), Ok((Dialect::Aix, reading)));
}

/// Checks the messages that pi takes from a file: those on the way from the last entry up to the
/// root.
#[test]
fn pi_opens_the_file_at_the_head_with_the_thread_as_its_context() {
    let entries = lines(&pi::write(&story()).unwrap());
    let (header, entries) = entries.split_first().unwrap();
    assert_eq!(
        (&header["type"], &header["version"]),
        (&"session".into(), &3.into())
    );
    assert_eq!(header["cwd"], "/u/alice/agent/tutor");
    let by_id = |id: &Value| entries.iter().find(|entry| entry["id"] == *id);
    let mut context = Vec::new();
    let mut at = entries.last();
    while let Some(entry) = at {
        context.push(entry.clone());
        at = by_id(&entry["parentId"]);
    }
    context.reverse();
    let roles: Vec<&str> = context
        .iter()
        .filter(|entry| entry["type"] == "message" || entry["type"] == "custom_message")
        .map(|entry| {
            entry["message"]["role"]
                .as_str()
                .or(entry["customType"].as_str())
                .unwrap()
        })
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "toolResult",
            "toolResult",
            "assistant",
            "user",
            "assistant",
            "toolResult",
            "agent-host.notice"
        ]
    );
    let said = &context
        .iter()
        .find(|entry| entry["message"]["role"] == "assistant")
        .unwrap()["message"];
    assert_eq!(said["stopReason"], "toolUse");
    assert_eq!(
        (&said["provider"], &said["api"]),
        (&"anthropic".into(), &"anthropic-messages".into())
    );
    let kinds: Vec<&str> = said["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["thinking", "text", "toolCall", "toolCall"]);
    assert_eq!(said["content"][3]["arguments"]["arguments"], "not json");
    assert_eq!(
        entries
            .iter()
            .filter(|entry| entry["parentId"].is_null())
            .count(),
        1,
        "one root"
    );
    let mut ids: Vec<&str> = entries
        .iter()
        .map(|entry| entry["id"].as_str().unwrap())
        .collect();
    assert!(
        ids.iter()
            .all(|id| id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
    );
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), entries.len());
}

/// A line as aix's reader decodes it: fixed fields, each of one type, found without regard to case.
fn decoded(line: &Value) -> Option<(&str, &str, Option<&Value>)> {
    let names = [
        "type",
        "timestamp",
        "sessionid",
        "uuid",
        "cwd",
        "version",
        "id",
    ];
    for (name, value) in line.as_object()? {
        let name = name.to_lowercase();
        if names.contains(&name.as_str()) && !value.is_string() && !value.is_null() {
            return None;
        }
    }
    Some((
        line["type"].as_str()?,
        line["uuid"].as_str().unwrap_or_default(),
        line.get("message"),
    ))
}

/// Returns the text that aix extracts from a message's content.
fn extracted(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks
                .iter()
                .filter(|block| block["type"] == "text")
                .filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[test]
fn aix_takes_every_line_and_its_turns_have_the_ids_of_ours() {
    let thread = thread();
    let written = aix::write(&thread).unwrap();
    let mut said: Vec<(String, String, String)> = Vec::new();
    for line in lines(&written) {
        let (kind, uuid, message) =
            decoded(&line).unwrap_or_else(|| panic!("aix would skip {line}"));
        if matches!(kind, "user" | "assistant") {
            let text = extracted(&message.unwrap()["content"]);
            if !text.is_empty() {
                said.push((kind.to_owned(), uuid.to_owned(), text));
            }
        }
    }
    let texts: Vec<(&str, &str)> = said
        .iter()
        .map(|(kind, _, text)| (kind.as_str(), text.as_str()))
        .collect();
    assert_eq!(
        texts,
        [
            ("user", "What is on this page?\nLook \"closely\"."),
            ("assistant", "I read it."),
            ("assistant", "Fractions – ½ and ¼.\u{2028}"),
            ("user", "Explain the first one."),
        ]
    );
    // aix ends a turn at the next user, and calls it by the last assistant's id.
    assert_eq!(said[2].1, thread.turns[0].node.id.to_string());
}

#[test]
fn a_tree_is_no_file_for_aix_and_its_threads_are() {
    let story = story();
    let error = aix::write(&story).unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&story.turns[2].node.id.to_string()),
        "{error}"
    );
    for turn in &story.turns {
        let thread = story.thread(turn.node.id).unwrap();
        let read = aix::read(&aix::write(&thread).unwrap(), &adoption()).unwrap();
        assert_eq!(read.transcript, thread);
    }
}
