//! Values that are made from a schema: some that should fit it, and some that should not.
//!
//! A sample is a guess. Whoever uses one compares it with the schema first.

use serde_json::{Map, Value, json};

/// Levels to which a sample follows a schema.
const DEPTH_MAX: usize = 8;
/// Samples of one schema that should not fit it.
const MISFITS_MAX: usize = 24;

/// Returns an object with a value for every property that a schema of arguments requires.
#[must_use]
pub fn fitting(schema: &Value) -> Value {
    match value(schema, schema, 0) {
        object @ Value::Object(_) => object,
        _ => json!({}),
    }
}

/// Returns a value of any type that should fit a schema.
#[must_use]
pub fn fitting_any(schema: &Value) -> Value {
    value(schema, schema, 0)
}

/// A value that should fit a schema within another one.
fn value(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    for key in ["const", "default"] {
        if let Some(given) = schema.get(key) {
            return given.clone();
        }
    }
    for key in ["enum", "examples", "oneOf", "anyOf", "allOf"] {
        let first = schema.get(key).and_then(Value::as_array);
        match (key, first.and_then(|entries| entries.first())) {
            ("enum" | "examples", Some(first)) => return first.clone(),
            (_, Some(first)) if schema.get("properties").is_none() => {
                return value(first, root, depth + 1);
            }
            _ => {}
        }
    }
    let reference = schema.get("$ref").and_then(Value::as_str);
    if let Some(target) = reference.and_then(|to| root.pointer(to.strip_prefix('#')?)) {
        return value(target, root, depth + 1);
    }
    of_type(schema, root, depth)
}

fn of_type(schema: &Value, root: &Value, depth: usize) -> Value {
    let number = |key: &str| schema.get(key).and_then(Value::as_i64);
    match kinds(schema).first().copied() {
        Some("object") => object(schema, root, depth),
        Some("array") => {
            let count = number("minItems").unwrap_or(0).clamp(0, 8);
            let item = schema.get("items").unwrap_or(&Value::Null);
            (0..count).map(|_| value(item, root, depth + 1)).collect()
        }
        Some("integer" | "number") => {
            let least = number("minimum").or_else(|| number("exclusiveMinimum").map(|n| n + 1));
            json!(
                least
                    .unwrap_or(1)
                    .min(number("maximum").unwrap_or(i64::MAX))
            )
        }
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("string") | None if schema.get("properties").is_none() => text(schema),
        _ => object(schema, root, depth),
    }
}

fn object(schema: &Value, root: &Value, depth: usize) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let made: Map<String, Value> = names
        .map(|name| {
            let of = properties.and_then(|properties| properties.get(name));
            let made = value(of.unwrap_or(&Value::Null), root, depth + 1);
            (name.to_owned(), made)
        })
        .collect();
    Value::Object(made)
}

/// A text of the length and the form that a schema asks for, as far as forms are known.
fn text(schema: &Value) -> Value {
    let made = match schema.get("format").and_then(Value::as_str) {
        Some("uri" | "url") => "https://example.com/",
        Some("date") => "2026-01-01",
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("email") => "somebody@example.com",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "sample",
    };
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    let most = schema.get("maxLength").and_then(Value::as_u64);
    let least = usize::try_from(least.min(4_096)).unwrap_or(0);
    let most = most.and_then(|most| usize::try_from(most).ok());
    let padded = format!("{made:x<least$}");
    json!(
        padded
            .chars()
            .take(most.unwrap_or(usize::MAX))
            .collect::<String>()
    )
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns objects that should not fit a schema of arguments: each property of another type, one
/// that is required left out, and one that nobody knows.
#[must_use]
pub fn misfits(schema: &Value) -> Vec<Value> {
    let base = match fitting(schema) {
        Value::Object(base) => base,
        _ => Map::new(),
    };
    let mut misfits = Vec::new();
    if !base.is_empty() {
        misfits.push(json!({}));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let other = if kinds(property).contains(&"object") {
            json!("not an object")
        } else {
            json!({ "unexpected": true })
        };
        let mut changed = base.clone();
        changed.insert(name.clone(), other);
        misfits.push(Value::Object(changed));
    }
    let mut more = base;
    more.insert("agent_host_unexpected".to_owned(), json!(1));
    misfits.push(Value::Object(more));
    misfits.truncate(MISFITS_MAX);
    misfits
}

#[cfg(test)]
mod tests {
    use super::{fitting, misfits};
    use serde_json::json;

    #[test]
    fn a_sample_has_all_that_is_required_in_the_form_that_is_asked_for() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "minLength": 8 },
                "url": { "type": "string", "format": "uri" },
                "count": { "type": "integer", "minimum": 3 },
                "kind": { "enum": ["a", "b"] },
                "list": { "type": "array", "items": { "$ref": "#/$defs/one" }, "minItems": 2 },
                "maybe": { "type": ["boolean", "null"] },
                "optional": { "type": "string" }
            },
            "required": ["text", "url", "count", "kind", "list", "maybe"],
            "$defs": { "one": { "type": "number" } }
        });
        assert_eq!(
            fitting(&schema),
            json!({
                "text": "samplexx", "url": "https://example.com/", "count": 3, "kind": "a",
                "list": [1, 1], "maybe": true
            })
        );
        assert_eq!(fitting(&json!({ "type": "object" })), json!({}));
        assert_eq!(fitting(&json!(true)), json!({}));
    }

    #[test]
    fn a_schema_without_end_makes_a_sample_with_one() {
        let schema = json!({
            "type": "object", "properties": { "next": { "$ref": "#" } }, "required": ["next"]
        });
        assert!(fitting(&schema).get("next").is_some());
    }

    #[test]
    fn misfits_leave_out_change_and_add() {
        let schema = json!({
            "type": "object", "properties": { "text": { "type": "string" } },
            "required": ["text"]
        });
        assert_eq!(
            misfits(&schema),
            [
                json!({}),
                json!({ "text": { "unexpected": true } }),
                json!({ "text": "sample", "agent_host_unexpected": 1 }),
            ]
        );
    }
}
