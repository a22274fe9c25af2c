//! Files that are refused, and lines that are passed over: each with its line, its field and a word
//! on what to do.

use super::story::{adoption, empty, story};
use crate::thread::message::Part;
use crate::thread::transcript::dialect::{aix, detect, pi};
use crate::thread::transcript::{
    COPIED_MESSAGES_MAX, LINE_BYTES_MAX, Label, PASSED_OVER_MAX, TIME_MS_MAX, Transcript,
    TranscriptFault, Unsound, Unwritable, WORD_BYTES_MAX, read,
};
use crate::values::digest::Digest;
use crate::values::json::DEPTH_MAX;
use crate::values::time::Timestamp;
use serde_json::{Value, json};

fn file(lines: &[Value]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect()
}

fn refused(file: &[u8]) -> TranscriptFault {
    read(file, &adoption())
        .err()
        .unwrap_or_else(|| panic!("it was taken: {}", String::from_utf8_lossy(file)))
}

/// The fault because of which a file is refused, or else its first line that is passed over.
fn fault_of(file: &[u8]) -> TranscriptFault {
    match read(file, &adoption()) {
        Err(fault) => fault,
        Ok((_, reading)) => {
            let first = reading.passed_over.into_iter().next();
            first.unwrap_or_else(|| panic!("all was taken: {}", String::from_utf8_lossy(file)))
        }
    }
}

/// A session of pi's with a question and an answer.
fn pi_lines() -> Vec<Value> {
    let usage = json!({ "input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0 });
    let answer = json!({
        "role": "assistant", "content": [{ "type": "text", "text": "b" }, { "type": "toolCall", "id": "c", "name": "t", "arguments": {} }],
        "provider": "p", "model": "m", "usage": usage, "stopReason": "toolUse",
    });
    let result = json!({ "role": "toolResult", "toolCallId": "c", "toolName": "t", "content": [], "isError": false });
    let at = "2025-01-01T00:00:00Z";
    vec![
        json!({ "type": "session", "version": 3, "id": "s", "timestamp": at, "cwd": "/" }),
        json!({ "type": "message", "id": "1", "parentId": null, "timestamp": at, "message": { "role": "user", "content": "a" } }),
        json!({ "type": "message", "id": "2", "parentId": "1", "timestamp": at, "message": answer }),
        json!({ "type": "message", "id": "3", "parentId": "2", "timestamp": at, "message": result }),
        json!({ "type": "label", "id": "4", "parentId": "3", "timestamp": at, "targetId": "1", "label": "l" }),
        json!({ "type": "compaction", "id": "5", "parentId": "4", "timestamp": at, "summary": "s", "firstKeptEntryId": "1" }),
    ]
}

fn aix_lines() -> Vec<Value> {
    let said = |kind: &str, uuid: &str| {
        let message = json!({ "role": kind, "content": "x" });
        json!({ "type": kind, "uuid": uuid, "sessionId": "s", "timestamp": "2025-01-01T00:00:00Z", "message": message })
    };
    vec![
        json!({ "type": "session", "version": "1.0", "id": "s", "cwd": "/" }),
        said("user", "1"),
        said("assistant", "2"),
    ]
}

/// Sets a field, or takes it out.
fn with(mut lines: Vec<Value>, line: usize, field: &str, value: Value) -> Vec<Value> {
    let (at, name) = field.rsplit_once('/').unwrap();
    let object = lines[line - 1]
        .pointer_mut(at)
        .unwrap()
        .as_object_mut()
        .unwrap();
    if value == json!("(none)") {
        object.shift_remove(name)
    } else {
        object.insert(name.to_owned(), value)
    };
    lines
}

#[test]
fn what_is_wrong_in_a_file_of_pi_is_told_by_line_and_field() {
    assert!(read(&file(&pi_lines()), &adoption()).is_ok());
    let none = || json!("(none)");
    let long = json!("x".repeat(WORD_BYTES_MAX + 1));
    for (line, field, value, says) in [
        (1, "/version", json!(4), "3 is the newest"),
        (1, "/version", json!(1), "open it with pi once"),
        (1, "/version", json!(-3), "a whole number"),
        (1, "/id", none(), "it is missing"),
        (1, "/id", json!(7), "a text is needed, this is a number"),
        (1, "/timestamp", json!("soon"), "`soon` is no time"),
        (
            1,
            "/parentSession",
            json!([]),
            "a text is needed, this is a list",
        ),
        (2, "/type", none(), "it is missing"),
        (2, "/id", none(), "it is missing"),
        (2, "/id", long.clone(), "1 to 1024 bytes"),
        (
            2,
            "/parentId",
            json!("1"),
            "no entry before it has the id `1`",
        ),
        (
            2,
            "/parentId",
            json!("3"),
            "no entry before it has the id `3`: an entry stands behind its parent",
        ),
        (2, "/timestamp", none(), "it is missing"),
        (
            2,
            "/timestamp",
            json!("9999-12-30T00:00:00Z"),
            "later than the year 9998",
        ),
        (
            2,
            "/message",
            json!("hi"),
            "an object is needed, this is a text",
        ),
        (
            2,
            "/message/role",
            json!("system"),
            "`system` is none of `user`",
        ),
        (2, "/message/content", none(), "it is missing"),
        (
            2,
            "/message/content",
            json!(7),
            "a text or a list of blocks",
        ),
        (2, "/message/content/0", json!("x"), "an object is needed"),
        (
            3,
            "/id",
            json!("1"),
            "an entry before it has the id `1` too",
        ),
        (
            3,
            "/message/stopReason",
            json!("tired"),
            "`tired` is none of",
        ),
        (3, "/message/usage/input", json!(1.5), "a whole number"),
        (3, "/message/content/0/text", none(), "it is missing"),
        (3, "/message/content/1/id", json!(""), "1 to 1024 bytes"),
        (4, "/message/toolName", none(), "it is missing"),
        (
            4,
            "/message/isError",
            json!("no"),
            "true or false is needed",
        ),
        (5, "/targetId", json!("9"), "no entry has the id `9`"),
        (5, "/label", long, "at most 1024 bytes"),
        (6, "/summary", none(), "it is missing"),
        (6, "/type", json!("session"), "divide the file"),
    ] {
        let changed = if field.ends_with("/content/0") {
            with(pi_lines(), line, "/message/content", json!([value]))
        } else {
            with(pi_lines(), line, field, value.clone())
        };
        let fault = fault_of(&file(&changed));
        assert_eq!(
            (fault.line, fault.field.as_str()),
            (line, field),
            "{value:.60}: {fault}"
        );
        assert!(fault.message.contains(says), "{field}: {fault}");
        // The session's own line, and what belongs to another file, are the file's fault.
        let is_of_file = line == 1 || says == "divide the file";
        assert_eq!(
            read(&file(&changed), &adoption()).is_err(),
            is_of_file,
            "{field}"
        );
    }
    let orphan = fault_of(&file(&with(
        pi_lines(),
        4,
        "/message/toolCallId",
        json!("d"),
    )));
    assert_eq!(
        (orphan.line, orphan.message.contains("under the id `d`")),
        (4, true),
        "{orphan}"
    );
    let mut image = pi_lines();
    image[1]["message"]["content"] =
        json!([{ "type": "image", "data": "?", "mimeType": "image/png" }]);
    assert_eq!(fault_of(&file(&image)).field, "/message/content/0/data");
    let record = json!({ "type": "custom", "customType": "agent-host.turn", "id": "9", "timestamp": "2025-01-01T00:00:00Z", "data": {} });
    assert_eq!(
        refused(&file(&[pi_lines(), vec![record]].concat())).field,
        "/customType"
    );
}

#[test]
fn what_is_wrong_in_a_file_for_aix_is_told_by_line_and_field() {
    assert!(read(&file(&aix_lines()), &adoption()).is_ok());
    let none = || json!("(none)");
    for (line, field, value, says) in [
        (1, "/id", none(), "it is missing"),
        (2, "/uuid", none(), "it is missing"),
        (2, "/uuid", json!(1), "a text is needed"),
        (2, "/sessionId", json!("t"), "divide the file"),
        (2, "/timestamp", json!(1), "a text is needed"),
        (2, "/message", none(), "it is missing"),
        (2, "/message/role", none(), "it is missing"),
        (2, "/message/role", json!("assistant"), "make them the same"),
        (3, "/uuid", json!("1"), "line 2 has the uuid `1` too"),
        (3, "/message/model", json!(4), "a text is needed"),
        (3, "/message/content", none(), "it is missing"),
        (3, "/agentHost", json!({}), "take the field out"),
    ] {
        let fault = fault_of(&file(&with(aix_lines(), line, field, value.clone())));
        assert_eq!(
            (fault.line, fault.field.as_str()),
            (line, field),
            "{value}: {fault}"
        );
        assert!(fault.message.contains(says), "{field}: {fault}");
    }
    let nameless = vec![with(aix_lines(), 2, "/sessionId", none()).swap_remove(1)];
    assert_eq!(refused(&file(&nameless)).line, 0);
}

#[test]
fn lines_that_no_dialect_has_are_refused() {
    let nested = |levels: usize| {
        format!(
            "{{\"type\":\"x\",\"y\":{}{}}}",
            "[".repeat(levels),
            "]".repeat(levels)
        )
        .into_bytes()
    };
    let pi = |more: &[u8]| [file(&pi_lines()), more.to_vec()].concat();
    for (bytes, line, says) in [
        (b"".to_vec(), 0, "it has no lines"),
        (b"\n \n".to_vec(), 0, "it has no lines"),
        (b"not json".to_vec(), 1, "it is not JSON"),
        (b"[1]".to_vec(), 1, "this one is a list"),
        (b"{}".to_vec(), 1, "tell the dialect"),
        (
            [b"\xef\xbb\xbf".to_vec(), file(&pi_lines())].concat(),
            1,
            "byte order mark",
        ),
        (pi(b"{\"type\": \xff}"), 7, "it is not UTF-8 from byte 9 on"),
        (pi(b"{\"type\":\"x\""), 7, "it is not JSON"),
        (pi(&nested(DEPTH_MAX)), 7, "nested deeper than 64"),
        (pi(&nested(100_000)), 7, "nested deeper than 64"),
        (
            pi(&vec![b' '; LINE_BYTES_MAX + 1]),
            7,
            "10485759 is the most",
        ),
    ] {
        let fault = fault_of(&bytes);
        assert_eq!(fault.line, line, "{fault}");
        assert!(fault.to_string().contains(says), "{fault}");
        assert_eq!(read(&bytes, &adoption()).is_err(), line < 7, "{fault}");
    }
    // As pi and aix do, empty lines and line ends of other systems are passed over.
    let text = String::from_utf8(file(&aix_lines()))
        .unwrap()
        .replace('\n', "\r\n\r\n");
    assert!(read(text.as_bytes(), &adoption()).is_ok());
    let only = json!({ "type": "session", "id": "x", "timestamp": "2025-01-01T00:00:00Z" });
    assert_eq!(
        detect(&file(std::slice::from_ref(&only))).unwrap_err().line,
        1
    );
    let old = file(&[
        only,
        json!({ "type": "message", "message": { "role": "user", "content": "x" } }),
    ]);
    assert!(refused(&old).message.contains("open it with pi once"));
}

/// One bad line costs what is in it: what stands behind it goes on from what stood before it.
#[test]
fn a_line_that_cannot_be_read_is_passed_over_and_named() {
    let at = "2025-01-01T00:00:00Z";
    let said = |id: &str, parent: &str, role: &str, text: &str| {
        let message = json!({ "role": role, "content": text });
        json!({ "type": "message", "id": id, "parentId": parent, "timestamp": at, "message": message })
            .to_string()
    };
    let mut lines: Vec<String> = pi_lines().iter().take(2).map(Value::to_string).collect();
    lines.extend([
        "{\"type\":\"message\",\"id\":\"x".to_owned(),
        said("3", "2", "assistant", "b"),
        said("4", "3", "system", "c"),
        said("5", "4", "user", "d"),
    ]);
    let (_, reading) = read(lines.join("\n").as_bytes(), &adoption()).unwrap();
    let texts: Vec<String> = reading
        .transcript
        .turns
        .iter()
        .flat_map(|turn| turn.messages.iter().flatten())
        .map(crate::thread::message::Message::text)
        .collect();
    assert_eq!(texts, ["a", "b", "d"]);
    let named: Vec<(usize, &str)> = reading
        .passed_over
        .iter()
        .map(|fault| (fault.line, fault.field.as_str()))
        .collect();
    assert_eq!(named, [(3, ""), (5, "/message/role")]);
    // A file with hardly anything else is no such file.
    lines.extend(std::iter::repeat_n("nothing".to_owned(), PASSED_OVER_MAX));
    let fault = refused(lines.join("\n").as_bytes());
    assert!(fault.message.contains("no such file"), "{fault}");
}

#[test]
fn branches_within_turns_are_not_copied_without_end() {
    let at = "2025-01-01T00:00:00Z";
    let mut lines = vec![pi_lines().swap_remove(0)];
    // One long answer, and at each of its messages another end.
    let mut parent = Value::Null;
    for place in 0..600 {
        let role = if place == 0 { "user" } else { "assistant" };
        let said = format!("a{place}");
        for id in [&said, &format!("b{place}")] {
            let message = json!({ "role": role, "content": "x" });
            lines.push(json!({ "type": "message", "id": id, "parentId": parent, "timestamp": at, "message": message }));
        }
        parent = json!(said);
    }
    let fault = refused(&file(&lines));
    assert!(
        fault.message.contains(&COPIED_MESSAGES_MAX.to_string()),
        "{fault}"
    );
    lines.truncate(601);
    assert!(read(&file(&lines), &adoption()).is_ok());
}

/// Each change to a file of ours, and what is said of it.
#[test]
fn a_file_of_ours_is_what_was_written_or_nothing() {
    let written = String::from_utf8(pi::write(&story()).unwrap()).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    let find = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap() + 1;
    let turn = find("\"agent-host.turn\"");
    let end = find("\"agent-host.end\"");
    let blob = find("\"agent-host.blob\"");
    let shown = find("\"role\":\"user\"");
    let check = |changed: String, line: usize, says: &str| {
        let fault = refused(changed.as_bytes());
        assert_eq!(
            (fault.line, fault.message.contains(says)),
            (line, true),
            "{says}: {fault}"
        );
    };
    let without = |line: usize| {
        lines
            .iter()
            .enumerate()
            .filter(|(at, _)| at + 1 != line)
            .map(|(_, text)| format!("{text}\n"))
            .collect()
    };
    let replaced = |line: usize, from: &str, to: &str| -> String {
        assert!(lines[line - 1].contains(from), "{from}");
        (1..)
            .zip(&lines)
            .map(|(at, text)| {
                format!(
                    "{}\n",
                    if at == line {
                        text.replace(from, to)
                    } else {
                        (*text).to_owned()
                    }
                )
            })
            .collect()
    };
    check(
        replaced(shown, "What is on", "What was on"),
        shown,
        "somebody changed the file",
    );
    check(
        replaced(shown + 1, "What is on", "What was on"),
        turn,
        "message 1 is not the one that it commits to",
    );
    check(
        replaced(turn, "\"end\":\"replied\"", "\"end\":\"failed\""),
        turn,
        "its id follows from other content",
    );
    check(
        replaced(turn, "\"input_tokens\":100", "\"input_tokens\":1"),
        turn - 2,
        "somebody changed the file",
    );
    check(
        replaced(turn, "\"depth\":1", "\"depth\":2"),
        turn,
        "it should have the depth 1",
    );
    check(
        replaced(turn, "\"committed\":", "\"comitted\":"),
        turn,
        "comitted",
    );
    check(without(shown), shown, "somebody changed the file");
    check(
        without(shown + 1),
        turn - 1,
        "it commits to 5 messages, and 4 are given",
    );
    check(without(turn), end - 1, "it says 5 turns, and 4 were there");
    check(without(end), 0, "it was cut off");
    check(
        format!("{written}{}\n", lines[end - 1]),
        end + 1,
        "which is the last",
    );
    check(format!("{written}\n"), 0, "somebody changed the file");
    check(replaced(blob, "\"pieces\":1", "\"pieces\":2"), blob + 1, "");
    check(
        replaced(2, "agent-host.transcript/1", "agent-host.transcript/2"),
        2,
        "with the version that wrote it",
    );
    check(
        replaced(2, "\"head\":\"", "\"head\":\"0"),
        2,
        "export the session again",
    );
    check(
        replaced(end, "\"turns\":5", "\"turns\":4"),
        end,
        "it says 4 turns, and 5 were there",
    );
    check(
        replaced(end, "agent-host.end", "agent-host.more"),
        end,
        "no record of",
    );
    let flat = aix::write(&empty()).unwrap();
    let cut: Vec<u8> = flat
        .iter()
        .copied()
        .take_while(|byte| *byte != b'\n')
        .collect();
    assert!(refused(&cut).message.contains("it was cut off"));
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let unsound = |change: fn(&mut Transcript)| {
        let mut story = story();
        change(&mut story);
        let Err(Unwritable::Unsound(unsound)) = pi::write(&story) else {
            panic!("it was written")
        };
        assert_eq!(
            aix::write(&story),
            Err(Unwritable::Unsound(unsound.clone()))
        );
        unsound.to_string()
    };
    let head = |story: &mut Transcript| {
        story.header.head = Some(crate::values::id::TurnId(Digest([1; 32])))
    };
    assert!(unsound(head).starts_with("the header's `head`"));
    let name = |story: &mut Transcript| story.header.name = Some(String::new());
    assert!(unsound(name).contains("it has 0 bytes, and 1 to 1024"));
    let label = |story: &mut Transcript| {
        story.header.labels.push(Label {
            turn: crate::values::id::TurnId(Digest([1; 32])),
            label: "x".into(),
        });
    };
    assert!(unsound(label).contains("take its label out"));
    let late = |story: &mut Transcript| story.turns[1].committed = Timestamp(TIME_MS_MAX + 1);
    assert!(unsound(late).starts_with("turn 1: "));
    let other = |story: &mut Transcript| {
        drop(
            story
                .blobs
                .insert(Digest::of(b"elsewhere"), b"other".to_vec()),
        )
    };
    assert!(unsound(other).contains("put its own bytes there"));
    let unnamed =
        |story: &mut Transcript| drop(story.blobs.insert(Digest::of(b"x"), b"x".to_vec()));
    assert_eq!(
        unsound(unnamed),
        Unsound::Unnamed {
            digest: Digest::of(b"x")
        }
        .to_string()
    );
}

#[test]
fn a_message_that_makes_too_long_a_line_is_named_and_a_long_blob_is_divided() {
    use super::story::{add, user};
    use crate::thread::turn::TurnEnd;
    let mut long = empty();
    let turn = add(
        &mut long,
        None,
        TurnEnd::Failed,
        vec![user("short"), user(&"x".repeat(LINE_BYTES_MAX / 2))],
    );
    let error = aix::write(&long).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("message 2 of turn {turn} makes a line of ")),
        "{error}"
    );
    assert!(
        pi::write(&long).is_ok(),
        "what pi is shown stands in a line of its own"
    );
    let mut deep = empty();
    let mut value = json!(1);
    for _ in 0..DEPTH_MAX + 12 {
        value = json!([value]);
    }
    let part = Part::Opaque {
        provider: "p".into(),
        model: "m".into(),
        value,
    };
    add(
        &mut deep,
        None,
        TurnEnd::Failed,
        vec![crate::thread::message::Draft {
            parts: vec![part],
            ..user("")
        }],
    );
    assert!(matches!(pi::write(&deep), Err(Unwritable::TooDeep { .. })));
    let mut large = empty();
    let bytes: Vec<u8> = (0..(9_u32 << 20))
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect();
    let part = Part::Blob {
        digest: Digest::of(&bytes),
        media_type: "text/plain".into(),
        size: bytes.len() as u64,
    };
    add(
        &mut large,
        None,
        TurnEnd::Failed,
        vec![crate::thread::message::Draft {
            parts: vec![part],
            ..user("")
        }],
    );
    large.blobs.insert(Digest::of(&bytes), bytes);
    let file = aix::write(&large).unwrap();
    assert_eq!(
        file.split(|byte| *byte == b'\n')
            .filter(|line| line.starts_with(b"{\"type\":\"agent-host.blob\""))
            .count(),
        4
    );
    assert_eq!(aix::read(&file, &adoption()).unwrap().transcript, large);
    // pi is shown images, and told of those that are too large for its line.
    let mut image = empty();
    for bytes in [vec![1; 3 << 20], vec![2; 9 << 20]] {
        let part = Part::Blob {
            digest: Digest::of(&bytes),
            media_type: "image/png".into(),
            size: bytes.len() as u64,
        };
        add(
            &mut image,
            None,
            TurnEnd::Failed,
            vec![crate::thread::message::Draft {
                parts: vec![part.clone(), part],
                ..user("")
            }],
        );
        image.blobs.insert(Digest::of(&bytes), bytes);
    }
    let file = pi::write(&image).unwrap();
    let shown = String::from_utf8(file.clone()).unwrap();
    assert_eq!(
        (
            shown.matches("\"type\":\"image\"").count(),
            shown.matches("[image/png, ").count()
        ),
        (1, 3)
    );
    assert_eq!(pi::read(&file, &adoption()).unwrap().transcript, image);
}
