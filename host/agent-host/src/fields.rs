//! Fields of the JSON documents that a host answers with, by their JSON pointers. One that is
//! missing counts as empty.

use serde_json::Value;

/// Returns a text.
pub(crate) fn text<'a>(document: &'a Value, pointer: &str) -> &'a str {
    let value = document.pointer(pointer);
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number.
pub(crate) fn number(document: &Value, pointer: &str) -> u64 {
    let value = document.pointer(pointer);
    value.and_then(Value::as_u64).unwrap_or_default()
}

/// Returns a list.
pub(crate) fn list<'a>(document: &'a Value, pointer: &str) -> &'a [Value] {
    let value = document.pointer(pointer).and_then(Value::as_array);
    value.map(Vec::as_slice).unwrap_or_default()
}

/// Returns a truth value.
pub(crate) fn is_true(document: &Value, pointer: &str) -> bool {
    document.pointer(pointer).and_then(Value::as_bool) == Some(true)
}

/// Returns a value as a line shows it: a text without its quotation marks, nothing for null.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
