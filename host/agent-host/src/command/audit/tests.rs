//! The lines that people see, pinned.

use super::{Known, line};
use crate::terminal::one_line;
use serde_json::{Value, json};

fn entry(more: Value) -> Value {
    let mut line = json!({
        "position": 42, "time": "2026-11-22T08:00:00.000Z", "definition": "reader", "tool": "read_file", "operation_id": "0123456789abcdef",
        "segment": 0, "component": "files", "code": "sha256:aabbccddeeff", "grant": "sha256:112233445566",
    });
    let Value::Object(more) = more else {
        unreachable!("an object")
    };
    line.as_object_mut().unwrap().extend(more);
    line
}

#[test]
fn lines_say_when_who_through_what_which_call_and_what_was_decided() {
    let head = "      42  2026-11-22T08:00:00.000Z  reader  files@aabbccdd grant 11223344  \
                read_file 01234567.0  ";
    for (more, expected) in [
        (
            json!({ "kind": "decision", "capability": "files.read", "verdict": "granted", "rule": "grant", "times": 3, "detail": "/workspace/a" }),
            "granted files.read x3 by grant  /workspace/a",
        ),
        (
            json!({ "kind": "decision", "capability": "files.read", "verdict": "granted", "rule": "grant", "times": 1, "detail": "/w/a", "folder": "/srv/ann", "folder_granted": "/srv/{user}" }),
            "granted files.read by grant  /w/a  in /srv/ann (/srv/{user})",
        ),
        (
            json!({ "kind": "decision", "capability": "files.write", "verdict": "refused", "rule": "capabilityDenylist", "times": 1 }),
            "refused files.write by capabilityDenylist",
        ),
        (
            json!({ "kind": "request", "verdict": "done", "status": 200, "bytes_in": 10, "bytes_out": 20, "detail": "GET https://a.example:443/x" }),
            "request done 200  GET https://a.example:443/x  20 bytes out, 10 in",
        ),
        (
            json!({ "kind": "left_out", "of": "decision", "left_out": 7 }),
            "7 more of this call were not kept one by one",
        ),
    ] {
        assert_eq!(one_line(&line(&entry(more))), format!("{head}{expected}"));
    }
    for (more, component) in [
        (json!({ "kind": "admission" }), "files@aabbccdd"),
        (
            json!({ "kind": "admission", "version": "0.1.0" }),
            "files 0.1.0@aabbccdd",
        ),
    ] {
        assert_eq!(
            line(&entry(more)),
            format!(
                "      42  2026-11-22T08:00:00.000Z  host  {component} grant 11223344  admitted"
            )
        );
    }
}

#[test]
fn a_call_of_a_connector_is_told_with_its_name_and_without_an_operation() {
    let polled = json!({
        "position": 7, "time": "T", "kind": "request", "definition": "connector:telegram",
        "tool": "connector.poll", "component": "telegram", "code": "sha256:aabbccddeeff",
        "grant": "sha256:112233445566", "verdict": "done", "status": 401, "bytes_in": 1,
        "bytes_out": 2, "detail": "POST https://a.example:443/x",
    });
    assert_eq!(
        line(&polled),
        "       7  T  connector:telegram  telegram@aabbccdd grant 11223344  connector.poll  request \
         done 401  POST https://a.example:443/x  2 bytes out, 1 in"
    );
}

#[test]
fn what_a_guest_wrote_cannot_forge_a_line() {
    let reported = entry(
        json!({ "kind": "decision", "verdict": "refused", "capability": "x", "rule": "grant", "detail": "a\n      43  forged\u{1b}[2J" }),
    );
    let forged = one_line(&line(&reported));
    assert!(
        !forged.contains('\n') && !forged.contains('\u{1b}'),
        "{forged}"
    );
}

#[test]
fn a_name_that_the_host_does_not_know_is_told_with_the_nearest_one() {
    let definitions = json!({ "definitions": [{ "definition": "reader" }] });
    let components = json!({ "components": [{
        "name": "lists", "grant": { "keyValue": [{ "bucket": "lists" }] },
        "describes": { "kind": "tools", "description": [{ "name": "list_add", "capabilities": ["lists.write"] }] },
    }] });
    let known = Known::new(&definitions, &components);
    for (what, name) in [
        ("agent", "reader"),
        ("agent", "019a0000-0000-7000-8000-000000000000"),
        ("component", "lists"),
        ("tool", "list_add"),
        ("tool", "delegate"),
        ("tool", "connector.poll"),
        ("agent", "connector:telegram"),
        ("capability", "lists.read"),
        ("capability", "tools.call"),
        ("capability", "wasi:sockets"),
    ] {
        assert_eq!(known.note(what, name), None, "{what} {name}");
    }
    for (what, name, nearest) in [
        ("agent", "raeder", "reader"),
        ("component", "list", "lists"),
        ("tool", "list_ad", "list_add"),
        ("capability", "list.read", "lists.read"),
    ] {
        let note = known.note(what, name).unwrap();
        assert!(
            note.contains(&format!("no {what} `{name}` now"))
                && note.ends_with(&format!("the nearest is `{nearest}`")),
            "{note}"
        );
    }
}
