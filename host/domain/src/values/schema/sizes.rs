//! The sizes of values, and of a schema's own comparisons and lookups.

use serde_json::{Map, Value};

/// Bytes of a text or a name that take as long to compare as one value.
const BYTES_PER_VALUE: usize = 100;

/// Returns a value and all values within it.
pub(super) fn all(root: &Value) -> impl Iterator<Item = &Value> {
    let mut rest = vec![root];
    std::iter::from_fn(move || {
        let value = rest.pop()?;
        match value {
            Value::Array(items) => rest.extend(items),
            Value::Object(fields) => rest.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Some(value)
    })
}

/// Counts the values within a value; long texts and names count by their bytes.
pub(super) fn size(root: &Value) -> u64 {
    all(root).map(members).fold(0, u64::saturating_add)
}

/// Counts the parts of a value itself: its items, its names (also by their bytes), or its text.
pub(super) fn members(value: &Value) -> u64 {
    let count = match value {
        Value::String(text) => text.len() / BYTES_PER_VALUE,
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields
            .keys()
            .map(|name| 1 + name.len() / BYTES_PER_VALUE)
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    count as u64
}

/// Counts the names in a list, or in an object by name and in the lists of its fields. Schemas
/// under the names are not traversed.
pub(super) fn names(value: &Value) -> u64 {
    let Value::Object(fields) = value else {
        return size(value);
    };
    let lists = fields.values().filter(|value| value.is_array());
    lists.map(size).fold(members(value), u64::saturating_add)
}

/// Counts the parts of a schema itself: its keywords, and the literals and names that they list.
pub(super) fn own(schema: &Map<String, Value>) -> u64 {
    let keywords = schema.iter().map(|(keyword, value)| {
        let listed = match keyword.as_str() {
            "enum" | "const" => size(value),
            "type" | "required" | "dependentRequired" | "dependentSchemas" | "dependencies"
            | "properties" | "patternProperties" => names(value),
            _ => 0,
        };
        listed.saturating_add(1)
    });
    keywords.fold(0, u64::saturating_add)
}
