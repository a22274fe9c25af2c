//! A small tree: a fork, calls, thinking, a notice, a blob, an aborted turn, an erased message.

use crate::thread::message::{Answers, Draft, Message, Part, Role};
use crate::thread::model::Usage;
use crate::thread::transcript::dialect::{Dialect, aix, pi};
use crate::thread::transcript::verify::jump;
use crate::thread::transcript::{
    Adoption, EMPTY_STATE, Header, Label, Reading, Transcript, TranscriptTurn, read,
};
use crate::thread::turn::{TurnEnd, TurnNode};
use crate::values::digest::{Digest, Salt};
use crate::values::id::{RunId, SessionId, TurnId};
use crate::values::time::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use uuid::Uuid;

/// 2025-12-15T09:30:00Z
pub(super) const NOON: Timestamp = Timestamp(1_765_791_000_000);

pub(super) fn adoption() -> Adoption {
    Adoption {
        agent_path: "/u/alice/agent/main".into(),
        definition: "main".into(),
        salt: Salt([7; 16]),
    }
}

/// A transcript without turns.
pub(super) fn empty() -> Transcript {
    let header = Header {
        session: SessionId(Uuid::from_u128(0x0000_1111_2222_4333_8444_5555_6666_7777)),
        name: Some("Fractions".into()),
        agent_path: "/u/alice/agent/tutor".into(),
        definition: "tutor".into(),
        created: NOON,
        head: None,
        parent: None,
        labels: Vec::new(),
    };
    Transcript {
        header,
        turns: Vec::new(),
        blobs: BTreeMap::new(),
    }
}

/// Adds a turn behind another one; none for a root. Returns its id.
pub(super) fn add(
    to: &mut Transcript,
    parent: Option<TurnId>,
    end: TurnEnd,
    drafts: Vec<Draft>,
) -> TurnId {
    let place = to.turns.len() as u64;
    let find = |id: TurnId| {
        to.turns
            .iter()
            .find(|turn| turn.node.id == id)
            .map(|turn| &turn.node)
    };
    let before = parent.and_then(find);
    let first_message = before.map_or(1, |node| node.last_message + 1);
    let salt = Salt([u8::try_from(place % 251).unwrap(); 16]);
    let messages: Vec<Message> = (first_message..)
        .zip(drafts)
        .map(|(id, draft)| draft.at(id, salt))
        .collect();
    let models = if messages
        .iter()
        .any(|message| message.role == Role::Assistant)
    {
        vec!["claude-sonnet-4".to_owned()]
    } else {
        vec![]
    };
    let mut node = TurnNode {
        id: TurnId(Digest([0; 32])),
        parent,
        jump: jump(before, find),
        depth: before.map_or(1, |node| node.depth + 1),
        run: RunId(Uuid::from_u128(
            0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(place),
        )),
        first_message,
        last_message: first_message + messages.len() as u64 - 1,
        messages: messages.iter().map(Message::digest).collect(),
        session_state: Digest::of(EMPTY_STATE),
        end,
        usage: Usage {
            input_tokens: 100 + place,
            output_tokens: 20,
            cached_tokens: 60,
        },
        models,
    };
    node.id = node.compute_id();
    let id = node.id;
    to.blobs
        .insert(Digest::of(EMPTY_STATE), EMPTY_STATE.to_vec());
    to.turns.push(TranscriptTurn {
        node,
        committed: NOON.plus_ms(place * 1_000),
        messages: messages.into_iter().map(Some).collect(),
    });
    id
}

pub(super) fn user(text: &str) -> Draft {
    Draft::text(Role::User, "api", text)
}

pub(super) fn assistant(parts: Vec<Part>) -> Draft {
    Draft {
        parts,
        ..Draft::text(Role::Assistant, "model:claude-sonnet-4", "")
    }
}

pub(super) fn call(call_id: &str, name: &str, arguments: &str) -> Part {
    Part::Call {
        call_id: call_id.into(),
        name: name.into(),
        arguments: arguments.into(),
    }
}

pub(super) fn result(message: u64, index: u32, call_id: &str, text: &str) -> Draft {
    let answers = Answers {
        message,
        index,
        call_id: call_id.into(),
        name: "read_file".into(),
        failed: false,
    };
    Draft {
        answers: Some(answers),
        untrusted: true,
        ..Draft::text(Role::Tool, "tool:read_file", text)
    }
}

fn thinking(text: &str) -> Part {
    let value =
        json!({ "type": "thinking", "thinking": text, "signature": "c2lnbmVk", "weight": 0.5 });
    Part::Opaque {
        provider: "anthropic".into(),
        model: "claude-sonnet-4".into(),
        value,
    }
}

/// The story. Its head is in the second branch.
pub(super) fn story() -> Transcript {
    let mut story = empty();
    let image = b"\x89PNG not really".to_vec();
    let digest = Digest::of(&image);
    let size = image.len() as u64;
    story.blobs.insert(digest, image);
    let photo = Part::Blob {
        digest,
        media_type: "image/png".into(),
        size,
    };
    let first = add(
        &mut story,
        None,
        TurnEnd::Replied,
        vec![
            Draft {
                parts: vec![
                    Part::text("What is on this page?\nLook \"closely\"."),
                    photo,
                ],
                ..user("")
            },
            assistant(vec![
                thinking("A file first."),
                Part::text("I read it."),
                call("call_1", "read_file", r#"{"path":"a.md"}"#),
                call("call_1", "read_file", "not json"),
            ]),
            result(2, 0, "call_1", "# Fractions"),
            result(2, 1, "call_1", "no such file"),
            assistant(vec![Part::text("Fractions – ½ and ¼.\u{2028}")]),
        ],
    );
    let kept = Part::Blob {
        digest: Digest::of(b"elsewhere"),
        media_type: "text/plain".into(),
        size: 9,
    };
    let elsewhere = Draft {
        parts: vec![Part::text("And this?"), kept],
        ..user("")
    };
    let left = add(
        &mut story,
        Some(first),
        TurnEnd::Replied,
        vec![elsewhere, assistant(vec![Part::text("A note.")])],
    );
    let right = add(
        &mut story,
        Some(first),
        TurnEnd::Aborted,
        vec![
            user("Explain the first one."),
            assistant(vec![call("call_2", "read_file", "{}")]),
            Draft {
                origin: "host".into(),
                ..result(7, 0, "call_2", "Cancelled.")
            },
            Draft::text(Role::Notice, "host", "The turn was cancelled."),
        ],
    );
    add(
        &mut story,
        Some(left),
        TurnEnd::Failed,
        vec![user("Go on.")],
    );
    let last = add(&mut story, Some(right), TurnEnd::Completed, vec![]);
    story.turns[1].messages[0] = None;
    story.header.head = Some(last);
    story.header.parent = Some(SessionId(Uuid::from_u128(5)));
    story.header.labels = vec![
        Label {
            turn: left,
            label: "the note".into(),
        },
        Label {
            turn: first,
            label: "start".into(),
        },
    ];
    story
}

// Files of both dialects as they were written once: they read as what they are, and are written
// the same again.

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
