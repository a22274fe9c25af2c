//! Objects that may have any fields: the description says so, as generators take an object without
//! fields for one that must be empty.

use serde_json::{Map, Value, json};

/// The keys of a schema that say which fields an object has.
const FIELDS: [&str; 6] = [
    "properties",
    "additionalProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "$ref",
];
/// The keys under which anything may stand that is no schema.
const VALUES: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Opens the objects that say nothing of their fields, and takes `null` away as a default: a field
/// that may be left out needs none.
pub(crate) fn add(description: &mut Value) {
    match description {
        Value::Object(schema) => {
            if is_object(schema) && !FIELDS.iter().any(|key| schema.contains_key(*key)) {
                schema.insert("additionalProperties".to_owned(), json!(true));
            }
            if schema.get("default") == Some(&Value::Null) {
                schema.shift_remove("default");
            }
            for (key, value) in schema {
                if !VALUES.contains(&key.as_str()) {
                    add(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(add),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    }
}
