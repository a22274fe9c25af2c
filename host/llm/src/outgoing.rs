//! Normalisation of what goes out to model servers, whatever their dialect.
//!
//! Servers refuse whole requests for a name, a schema or a character that one of its messages has.
//! All that is known of this is mended here, and in `conversation.rs`, which decides on order and
//! pairing. The record keeps everything as it was; only what is sent differs. Nothing depends on
//! what is left out of a schema, because the host checks arguments and replies itself.

mod schema;

use serde_json::{Map, Value, json};
use std::borrow::Cow;

pub(crate) use schema::{of_reply, of_tool};

/// Characters of a tool's name that every server takes.
const NAME_CHARS_MAX: usize = 64;

/// Returns the name of a tool in a form that every server takes.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    let fits = |kind: char| kind.is_ascii_alphanumeric() || matches!(kind, '_' | '-');
    if name.is_empty() {
        Cow::Borrowed("_")
    } else if name.len() <= NAME_CHARS_MAX && name.chars().all(fits) {
        Cow::Borrowed(name)
    } else {
        let kinds = name.chars().take(NAME_CHARS_MAX);
        Cow::Owned(
            kinds
                .map(|kind| if fits(kind) { kind } else { '_' })
                .collect(),
        )
    }
}

/// Returns the arguments of a call as an object. Other arguments are put inside one.
pub(crate) fn arguments(text: &str) -> Value {
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(object) => Value::Object(object),
        Err(_) if text.trim().is_empty() => json!({}),
        Err(_) => json!({ "not_an_object": text }),
    }
}

/// Returns the arguments of a call as the text of an object: many servers read it before they show
/// it to their model, and refuse the request if they cannot.
pub(crate) fn arguments_text(text: &str) -> Cow<'_, str> {
    if serde_json::from_str::<Map<String, Value>>(text).is_ok() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(arguments(text).to_string())
    }
}

/// Returns the schema of a reply in words, for servers that take it in no other way.
pub(crate) fn reply_words(schema: &Value) -> String {
    format!(
        "Answer with one JSON value that fits this JSON Schema, and with nothing else:\n{schema}"
    )
}

/// Returns the text of a request, without the control characters that servers refuse.
pub(crate) fn body(mut request: Value) -> String {
    let text = request.to_string();
    // As JSON escapes them. An escaped backslash before such letters costs no more than an
    // inspection.
    if !["\\u00", "\\b", "\\f"]
        .iter()
        .any(|escape| text.contains(escape))
    {
        return text;
    }
    clean(&mut request);
    request.to_string()
}

fn clean(value: &mut Value) {
    let is_refused = |kind: char| kind.is_ascii_control() && !matches!(kind, '\t' | '\n' | '\r');
    match value {
        Value::String(text) if text.contains(is_refused) => {
            *text = text.replace(is_refused, "\u{fffd}");
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_becomes_one_that_servers_take() {
        let long = "n".repeat(70);
        for (given, sent) in [
            ("read_file", "read_file"),
            (
                "read_file<|channel|>analysis",
                "read_file__channel__analysis",
            ),
            ("functions.read_file:0", "functions_read_file_0"),
            ("größe", "gr__e"),
            ("", "_"),
            (&long, &long[..64]),
        ] {
            assert_eq!(tool_name(given), sent);
        }
    }

    #[test]
    fn arguments_that_are_no_object_are_told_inside_one() {
        for (given, sent) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            (" ", "{}"),
            (
                "{\"a\": unfini",
                "{\"not_an_object\":\"{\\\"a\\\": unfini\"}",
            ),
            ("[1]", "{\"not_an_object\":\"[1]\"}"),
        ] {
            assert_eq!(arguments_text(given), sent);
        }
    }

    #[test]
    fn control_characters_are_replaced_and_lines_are_kept() {
        let sent = body(json!({"a": ["x\0y\u{1b}[1m\n\tz", "\\u0000"], "b": "\u{8}\u{c}"}));
        assert_eq!(
            serde_json::from_str::<Value>(&sent).unwrap(),
            json!({"a": ["x\u{fffd}y\u{fffd}[1m\n\tz", "\\u0000"], "b": "\u{fffd}\u{fffd}"})
        );
    }
}
