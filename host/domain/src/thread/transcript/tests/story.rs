//! A small tree: a fork, calls, thinking, a notice, a blob, an aborted turn, an erased message.

use crate::thread::message::{Answers, Draft, Message, Part, Role};
use crate::thread::model::Usage;
use crate::thread::transcript::verify::jump;
use crate::thread::transcript::{Adoption, EMPTY_STATE, Header, Label, Transcript, TranscriptTurn};
use crate::thread::turn::{TurnEnd, TurnNode};
use crate::values::digest::{Digest, Salt};
use crate::values::id::{RunId, SessionId, TurnId};
use crate::values::time::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;
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
