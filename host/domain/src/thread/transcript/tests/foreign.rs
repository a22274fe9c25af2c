//! Files that pi and other programs wrote, modelled on the examples of their documents and tests.

use super::story::adoption;
use crate::thread::compaction::Mark;
use crate::thread::message::{Part, Role};
use crate::thread::model::Usage;
use crate::thread::transcript::dialect::{Dialect, aix, pi};
use crate::thread::transcript::{ABORTED_CALL, Adoption, Reading, Transcript, read};
use crate::thread::turn::TurnEnd;
use crate::values::digest::Salt;

const PI: &str = include_str!("../../../../tests/golden/transcript/foreign.pi.jsonl");
const AIX: &str = include_str!("../../../../tests/golden/transcript/foreign.aix.jsonl");

fn taken(file: &str) -> (Dialect, Reading) {
    read(file.as_bytes(), &adoption()).unwrap()
}

/// Each turn's messages as `role: text`, and its end.
fn reported(transcript: &Transcript) -> Vec<(Vec<String>, TurnEnd)> {
    let messages = |turn: &crate::thread::transcript::TranscriptTurn| {
        let said = turn.messages.iter().flatten();
        said.map(|message| {
            format!(
                "{:?}: {}",
                message.role,
                message.text().lines().next().unwrap_or_default()
            )
        })
        .collect()
    };
    transcript
        .turns
        .iter()
        .map(|turn| (messages(turn), turn.node.end))
        .collect()
}

fn turns(expected: &[(&[&str], TurnEnd)]) -> Vec<(Vec<String>, TurnEnd)> {
    expected
        .iter()
        .map(|(texts, end)| (texts.iter().map(|text| (*text).to_owned()).collect(), *end))
        .collect()
}

#[test]
fn a_session_of_pi_becomes_a_tree_of_turns() {
    let (dialect, reading) = taken(PI);
    assert_eq!((dialect, reading.exact), (Dialect::Pi, false));
    let transcript = &reading.transcript;
    assert_eq!(
        reported(transcript),
        turns(&[
            (&["User: Hello", "Assistant: Hi!"], TurnEnd::Replied),
            (
                &[
                    "User: Read it.",
                    "Assistant: ",
                    "Tool: output",
                    "Tool: The session was imported without a result of this call."
                ],
                TurnEnd::Aborted
            ),
            (&["User: Ran `ls -la`"], TurnEnd::Aborted),
            (&["Notice: User discussed X, Y, Z..."], TurnEnd::Replied),
            (&["User: Go on", "Assistant: Going"], TurnEnd::Aborted),
            (
                &[
                    "Notice: Branch explored approach A...",
                    "Notice: Injected context...",
                    "User: B",
                    "Assistant: Bee"
                ],
                TurnEnd::Replied
            ),
        ])
    );
    let ids: Vec<_> = transcript.turns.iter().map(|turn| turn.node.id).collect();
    let parents: Vec<_> = transcript
        .turns
        .iter()
        .map(|turn| turn.node.parent)
        .collect();
    assert_eq!(
        parents,
        [
            None,
            Some(ids[0]),
            Some(ids[1]),
            Some(ids[2]),
            Some(ids[3]),
            Some(ids[0])
        ]
    );
    let header = &transcript.header;
    assert_eq!(header.head, Some(ids[5]), "where the file ends");
    assert_eq!(header.name.as_deref(), Some("Refactor auth module"));
    assert_eq!(
        header.parent.unwrap().to_string(),
        "11111111-2222-4333-8444-555555555555"
    );
    assert_eq!(
        (header.agent_path.as_str(), header.definition.as_str()),
        ("/u/alice/agent/main", "main")
    );
    assert_eq!(header.created.to_string(), "2024-12-03T14:00:00.000Z");
    let labels: Vec<_> = header
        .labels
        .iter()
        .map(|label| (label.turn, label.label.as_str()))
        .collect();
    assert_eq!(
        labels,
        [(ids[0], "checkpoint-1")],
        "a label that was taken away is none"
    );
    let left_out: Vec<_> = reading
        .left_out
        .iter()
        .map(|left| (left.line, left.what.as_str()))
        .collect();
    assert_eq!(
        left_out,
        [
            (4, "model_change"),
            (5, "thinking_level_change"),
            (8, "custom my-extension"),
            (10, "bashExecution that pi keeps from the model"),
        ]
    );
    assert_eq!(
        transcript.turns[0].node.usage,
        Usage {
            input_tokens: 13,
            output_tokens: 4,
            cached_tokens: 2
        }
    );
    assert_eq!(transcript.turns[0].node.models, ["claude-sonnet-4-5"]);
}

#[test]
fn what_pi_knows_beyond_text_is_kept_and_goes_to_no_provider() {
    let (_, Reading { transcript, .. }) = taken(PI);
    let parts = |turn: usize, message: usize| {
        transcript.turns[turn].messages[message]
            .as_ref()
            .unwrap()
            .parts
            .as_slice()
    };
    let [thinking, call, other] = parts(1, 1) else {
        panic!("{:?}", parts(1, 1))
    };
    let Part::Opaque {
        provider,
        model,
        value,
    } = thinking
    else {
        panic!("{thinking:?}")
    };
    assert_eq!(
        (provider.as_str(), model.as_str()),
        ("imported", "anthropic/claude-sonnet-4-5")
    );
    assert_eq!(value["thinkingSignature"], "c2ln");
    let expected = Part::Call {
        call_id: "call_123".into(),
        name: "bash".into(),
        arguments: r#"{"command":"ls"}"#.into(),
    };
    assert_eq!(
        (call, matches!(other, Part::Call { .. })),
        (&expected, true)
    );
    let [Part::Text { .. }, Part::Opaque { value, .. }, _] = parts(3, 0) else {
        panic!("{:?}", parts(3, 0))
    };
    assert_eq!(
        (&value["firstKeptEntryId"], &value["tokensBefore"]),
        (&"c3d4e5f6".into(), &50_000.into())
    );
    let [
        Part::Blob {
            digest,
            media_type,
            size: 5,
        },
    ] = parts(1, 0)
        .split_last()
        .map(|(last, _)| std::slice::from_ref(last))
        .unwrap()
    else {
        panic!("{:?}", parts(1, 0))
    };
    assert_eq!(
        (media_type.as_str(), transcript.blobs[digest].as_slice()),
        ("image/png", b"hello".as_slice())
    );
    let result = transcript.turns[1].messages[2].as_ref().unwrap();
    assert_eq!(
        (
            result.answers.as_ref().unwrap().message,
            result.answers.as_ref().unwrap().index
        ),
        (4, 0)
    );
    let paired = transcript.turns[1].messages[3].as_ref().unwrap();
    assert_eq!(
        (paired.text().as_str(), paired.origin.as_str()),
        (ABORTED_CALL, "host")
    );
    assert!(
        transcript
            .turns
            .iter()
            .flat_map(|turn| turn.messages.iter().flatten())
            .all(|m| m.untrusted || m.origin == "host")
    );
}

/// A compaction of pi s is a turn that says from where on turns are kept and goes out as one again.
#[test]
fn a_compaction_of_pi_is_a_turn_with_its_first_kept_turn_and_goes_out_as_one() {
    let (_, Reading { transcript, .. }) = taken(PI);
    let turns = &transcript.turns;
    let mark = Mark::of(turns[3].messages[0].as_ref().unwrap()).unwrap();
    let expected = Mark {
        summarized_through: turns[0].node.id,
        first_kept: Some(turns[1].node.id),
        tokens_before: 50_000,
        tokens_after: 0,
    };
    assert_eq!(mark, expected);
    let exported = String::from_utf8(pi::write(&transcript).unwrap()).unwrap();
    let lines: Vec<serde_json::Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let compaction = lines
        .iter()
        .find(|line| line["type"] == "compaction")
        .unwrap();
    assert_eq!(
        (&compaction["summary"], &compaction["tokensBefore"]),
        (&"User discussed X, Y, Z...".into(), &50_000.into())
    );
    let kept = lines
        .iter()
        .find(|line| line["id"] == compaction["firstKeptEntryId"])
        .unwrap();
    assert_eq!(
        (&kept["type"], &kept["message"]["role"]),
        (&"message".into(), &"user".into()),
        "{kept}"
    );
    // What it says is found again where it goes on in pi.
    let again = pi::read_foreign(exported.as_bytes(), &adoption())
        .unwrap()
        .transcript;
    let marks: Vec<Mark> = again
        .turns
        .iter()
        .flat_map(|turn| turn.messages.iter().flatten())
        .filter_map(Mark::of)
        .collect();
    let expected = Mark {
        summarized_through: again.turns[0].node.id,
        first_kept: Some(again.turns[1].node.id),
        ..expected
    };
    assert_eq!(marks, [expected]);
}

#[test]
fn ids_of_turns_follow_from_content_and_salt() {
    let (_, first) = taken(PI);
    assert_eq!(taken(PI).1, first);
    let other = read(
        PI.as_bytes(),
        &Adoption {
            salt: Salt([8; 16]),
            ..adoption()
        },
    )
    .unwrap()
    .1;
    assert_ne!(
        other.transcript.turns[0].node.id,
        first.transcript.turns[0].node.id
    );
    let changed = taken(&PI.replace("Hi!", "Ho!")).1;
    assert_ne!(
        changed.transcript.turns[5].node.id,
        first.transcript.turns[5].node.id
    );
    // It is ours from here on.
    let exported = pi::write(&first.transcript).unwrap();
    assert_eq!(
        pi::read(&exported, &adoption()),
        Ok(Reading {
            exact: true,
            left_out: vec![],
            ..first
        })
    );
}

#[test]
fn where_branches_part_within_a_turn_each_has_a_whole_turn() {
    let entry = |id: &str, parent: &str, role: &str, text: &str| {
        let message = format!(r#"{{"role":"{role}","content":"{text}"}}"#);
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2024-12-03T14:00:01Z","message":{message}}}"#
        )
    };
    let file = [
        r#"{"type":"session","version":3,"id":"x","timestamp":"2024-12-03T14:00:00Z","cwd":"/"}"#
            .to_owned(),
        entry("a", "null", "user", "Which?"),
        entry("b", r#""a""#, "assistant", "This."),
        entry("c", r#""a""#, "assistant", "That."),
        entry("d", r#""b""#, "assistant", "And this."),
        entry("e", r#""b""#, "user", "Sure?"),
    ];
    let (_, Reading { transcript, .. }) = taken(&file.join("\n"));
    assert_eq!(
        reported(&transcript),
        turns(&[
            (&["User: Which?", "Assistant: This."], TurnEnd::Replied),
            (&["User: Which?", "Assistant: That."], TurnEnd::Replied),
            (
                &["User: Which?", "Assistant: This.", "Assistant: And this."],
                TurnEnd::Replied
            ),
            (&["User: Sure?"], TurnEnd::Aborted),
        ])
    );
    let ids: Vec<_> = transcript.turns.iter().map(|turn| turn.node.id).collect();
    assert_eq!(
        transcript
            .turns
            .iter()
            .map(|turn| turn.node.parent)
            .collect::<Vec<_>>(),
        [None, None, None, Some(ids[0])]
    );
    assert_eq!(transcript.header.head, Some(ids[3]));
}

#[test]
fn a_session_for_aix_becomes_a_thread() {
    let (dialect, reading) = taken(AIX);
    assert_eq!((dialect, reading.exact), (Dialect::Aix, false));
    assert_eq!(
        reported(&reading.transcript),
        turns(&[
            (
                &[
                    "User: Hello",
                    "User: world",
                    "Assistant: First part",
                    "Assistant: Third"
                ],
                TurnEnd::Replied
            ),
            (&["User: After compaction", "Assistant: "], TurnEnd::Replied),
            (&["User: Anyone?"], TurnEnd::Aborted),
        ])
    );
    let transcript = reading.transcript;
    assert_eq!(
        transcript.turns[0].messages[2].as_ref().unwrap().text(),
        "First part\nSecond part"
    );
    assert_eq!(transcript.turns[0].node.models, ["claude-4", "claude-5"]);
    assert_eq!(transcript.header.head, Some(transcript.turns[2].node.id));
    assert_eq!(
        reading
            .left_out
            .iter()
            .map(|left| (left.line, left.what.as_str()))
            .collect::<Vec<_>>(),
        [(6, "summary")]
    );
    // The same id here every time, for a session whose id is no UUID.
    assert_eq!(
        transcript.header.session,
        taken(AIX).1.transcript.header.session
    );
    assert_eq!(
        aix::read(&aix::write(&transcript).unwrap(), &adoption())
            .unwrap()
            .transcript,
        transcript
    );
}

/// A file that went on in another program is no export any more. Its content can still be imported.
#[test]
fn an_export_that_went_on_elsewhere_is_taken_as_what_it_shows() {
    let story = super::story::story();
    let mut file = String::from_utf8(pi::write(&story).unwrap()).unwrap();
    let last: serde_json::Value = serde_json::from_str(file.lines().last().unwrap()).unwrap();
    for (id, parent, role) in [
        ("fedcba98", last["id"].as_str().unwrap(), "user"),
        ("01234567", "fedcba98", "assistant"),
    ] {
        let message = serde_json::json!({ "role": role, "content": [{ "type": "text", "text": "More." }], "stopReason": "stop" });
        let entry = serde_json::json!({
            "type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", "message": message,
        });
        file.push_str(&format!("{entry}\n"));
    }
    let fault = pi::read(file.as_bytes(), &adoption()).unwrap_err();
    assert!(
        fault.message.contains("as another program's file"),
        "{fault}"
    );
    let reading = pi::read_foreign(file.as_bytes(), &adoption()).unwrap();
    let tree = reading.transcript.tree();
    let thread = tree
        .thread(reading.transcript.header.head.unwrap())
        .unwrap();
    assert_eq!(reading.transcript.header.name.as_deref(), Some("Fractions"));
    let last = reading
        .transcript
        .turns
        .iter()
        .find(|turn| turn.node.id == thread.last().unwrap().id)
        .unwrap();
    let said: Vec<_> = last
        .messages
        .iter()
        .flatten()
        .map(|message| (message.role, message.text()))
        .collect();
    let more = |role: Role| (role, "More.".to_owned());
    assert_eq!(
        said,
        [
            (Role::Notice, "The turn was cancelled.".to_owned()),
            more(Role::User),
            more(Role::Assistant)
        ]
    );
    assert_eq!(reading.transcript.header.session, story.header.session);
    let thread = story.thread(story.header.head.unwrap()).unwrap();
    let flat = aix::read_foreign(&aix::write(&thread).unwrap(), &adoption()).unwrap();
    assert_eq!(
        reported(&flat.transcript)[0].0.len(),
        5,
        "results of tools do not divide a turn"
    );
}
