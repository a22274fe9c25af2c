//! The faults of a body, one at a time, as its schema defines them.

use super::cases::{Case, SURPRISE};
use super::document::{Body, Property};
use serde_json::{Value, json};

/// Lists in each other: more than the parser follows.
const LISTS: usize = 200;
/// Characters of a text that is longer than any text may be.
const TEXT_CHARS: usize = (1 << 20) + 1;
/// Bytes of a body that is longer than any body may be.
const BODY_BYTES: usize = (2 << 20) + 1;
/// Bytes of a file that is longer than any file may be.
const FILE_BYTES: usize = (10 << 20) + 1;
/// Bytes of a session's file that is longer than any may be.
const TRANSCRIPT_BYTES: usize = (32 << 20) + 1;
/// Fields of free text, which may have any characters in it.
const WORDS: [&str; 7] = [
    "content",
    "description",
    "message",
    "reason",
    "system_prompt",
    "system_prompt_override",
    "text",
];

/// Returns the bad variants of a body that may be any bytes: of its length and of its media type.
pub(super) fn of_bytes(good: &Case, is_transcript: bool) -> Vec<Case> {
    let types = ["nonsense", "", "text/", "a b/c", "text/plain, text/html"];
    let mut cases: Vec<Case> = types
        .into_iter()
        .map(|content_type| good.of_type(Some(content_type)))
        .collect();
    let bytes = if is_transcript {
        TRANSCRIPT_BYTES
    } else {
        FILE_BYTES
    };
    cases.push(good.with_body("a file that is too long", vec![0; bytes]));
    if is_transcript {
        let bad = [
            "",
            "nope",
            "\0",
            "[]",
            "{}",
            "{\"type\":\"session\",\"version\":3}",
            "{\"type\":\"user\"}",
        ];
        cases.extend(bad.map(|text| good.with_body("a file that is no session", text)));
    }
    cases
}

/// Returns the bad variants of a body as a whole. `value` is the one that would be taken.
pub(super) fn whole(body: &Body, good: &Case, value: &Value) -> Vec<Case> {
    let text = value.to_string();
    let nested = lists().to_string();
    let mut cases = vec![
        good.with_body(
            "a body that is cut short",
            &text.as_bytes()[..text.len() - 1],
        ),
        good.with_body("a body and something behind it", format!("{text} x")),
        good.with_body("a word for a body", "nope"),
        good.with_body("a zero byte for a body", "\0"),
        good.with_body("a body that is not UTF-8", &b"{\"\xff\":1}"[..]),
        good.with_body("a list of the body", json!([value]).to_string()),
        good.with_body("an empty list for a body", "[]"),
        good.with_body("text for a body", "\"x\""),
        good.with_body("a number for a body", "7"),
        good.with_body("200 lists in each other for a body", nested),
        good.with_body("a body that is too long", " ".repeat(BODY_BYTES)),
        good.of_type(None),
        good.of_type(Some("text/plain")),
        good.of_type(Some("application/x-www-form-urlencoded")),
    ];
    // A body that may be missing may be `null`.
    if body.is_required {
        cases.push(good.with_body("no body", ""));
        cases.push(good.with_body("null for a body", "null"));
    }
    if body.is_closed {
        cases.push(good.with_body("an unknown property", with(value, SURPRISE, "1")));
    }
    cases
}

/// Returns the bad variants of one property of a body.
pub(super) fn of_property(property: &Property, good: &Case, value: &Value) -> Vec<Case> {
    let name = property.name.as_str();
    let shape = &property.shape;
    let mut cases = Vec::new();
    let mut put = |what: &str, text: &str| {
        cases.push(good.with_body(&format!("`{name}`: {what}"), with(value, name, text)))
    };
    for (kind, unknown_sender) in shape.not_taken() {
        put(
            &format!("{kind}, which it is not"),
            &unknown_sender.to_string(),
        );
    }
    for (kind, unknown_sender) in shape.items.iter().flat_map(|items| items.not_taken()) {
        put(
            &format!("a list of {kind}, which is not in it"),
            &json!([unknown_sender]).to_string(),
        );
    }
    if shape.takes("integer") && !shape.takes_anything() {
        for number in ["-1", "18446744073709551616", "1e40"] {
            put(number, number);
        }
        let beyond = [
            shape.minimum.map(|least| least - 1),
            shape.maximum.map(|most| most + 1),
        ];
        for number in beyond.into_iter().flatten() {
            put("a number out of its range", &number.to_string());
        }
    }
    if shape.takes("string") && !shape.takes_anything() {
        put(
            "a text of more than 1 MiB",
            &json!("x".repeat(TEXT_CHARS)).to_string(),
        );
        put("half of a character", r#""\ud800""#);
        if !WORDS.contains(&name) {
            put(
                "control characters",
                &json!("a\0\u{1b}[31m\u{7f}\n").to_string(),
            );
        }
    }
    if shape.takes("object") {
        put(
            "200 lists in each other",
            &json!({ "a": lists() }).to_string(),
        );
    }
    if let Some(there) = value.get(name) {
        let twice = format!("{{{}:{there},{}", json!(name), &value.to_string()[1..]);
        cases.push(good.with_body(&format!("`{name}` twice"), twice));
    }
    if property.is_required {
        cases.push(good.with_body(&format!("no `{name}`"), object(&without(value, name))));
    }
    cases
}

/// Lists in each other.
fn lists() -> Value {
    (0..LISTS).fold(json!(1), |inner, _| Value::Array(vec![inner]))
}

/// The body with this text in the place of a property's value: it need not be JSON.
fn with(value: &Value, name: &str, text: &str) -> String {
    let mut members = without(value, name);
    members.push(format!("{}:{text}", json!(name)));
    object(&members)
}

/// The members of the body but one.
fn without(value: &Value, name: &str) -> Vec<String> {
    let members = value
        .as_object()
        .unwrap()
        .iter()
        .filter(|(other, _)| *other != name);
    members
        .map(|(other, value)| format!("{}:{value}", json!(other)))
        .collect()
}

fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}
