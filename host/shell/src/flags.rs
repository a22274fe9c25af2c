//! The flags of a skill's command: the description of a tool's arguments for a model.

use serde_json::Value;
use shapes::shown::visible;
use std::fmt::Write;

/// Characters of a value or of a choice of values, in a flag's line.
const VALUES_CHARS_MAX: usize = 400;
/// Characters of the schema of one flag.
const SCHEMA_CHARS_MAX: usize = 4_000;
/// The bounds of a schema, with their descriptions.
const BOUNDS: [(&str, &str); 11] = [
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
    ("multipleOf", "a multiple of"),
    ("minLength", "characters at least"),
    ("maxLength", "characters at most"),
    ("minItems", "items at least"),
    ("maxItems", "items at most"),
    ("pattern", "matches"),
    ("format", "written as"),
];

/// Returns the flags of a tool with arguments of this schema, a line each: name, type, need,
/// values, bounds, default and description.
#[must_use]
pub fn flags_of(arguments: &Value) -> String {
    let mut text = String::new();
    for (name, schema) in properties(arguments) {
        let required = arguments.get("required").and_then(Value::as_array);
        let is_needed = required.is_some_and(|all| all.iter().any(|it| it == name.as_str()));
        let need = if is_needed { ", required" } else { "" };
        let reported = schema.get("description").and_then(Value::as_str);
        let reported = reported
            .map(|reported| format!(": {reported}"))
            .unwrap_or_default();
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "- `--{name}` ({}{need}{}){reported}",
            kind_shown(schema),
            more_shown(schema)
        );
    }
    text
}

/// Returns the schemas of those arguments of a tool that are more than one word or number, with the
/// schemas that they refer to. Empty if there are no such arguments.
#[must_use]
pub fn schemas_of(arguments: &Value) -> String {
    let mut text = String::new();
    for (name, schema) in properties(arguments) {
        let kinds = kinds_of(schema);
        let is_one = kinds
            .iter()
            .all(|kind| !matches!(*kind, "array" | "object"));
        if is_one && !kinds.is_empty() {
            continue;
        }
        let shown = visible(&schema.to_string(), SCHEMA_CHARS_MAX);
        let _ = writeln!(text, "--{name} takes JSON of this schema: {shown}");
    }
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = arguments.get(key).filter(|_| !text.is_empty()) {
            let shown = visible(&definitions.to_string(), SCHEMA_CHARS_MAX);
            let _ = writeln!(text, "{key}: {shown}");
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

/// Returns the types that a schema allows, as far as it names them. Those of its alternatives and
/// values are included.
#[must_use]
pub fn kinds_of(schema: &Value) -> Vec<&str> {
    let mut kinds = Vec::new();
    match schema.get("type") {
        Some(Value::String(kind)) => kinds.push(kind.as_str()),
        Some(Value::Array(all)) => kinds.extend(all.iter().filter_map(Value::as_str)),
        _ => {}
    }
    if !kinds.is_empty() {
        return kinds;
    }
    for key in ["anyOf", "oneOf"] {
        let alternatives = schema.get(key).and_then(Value::as_array);
        for alternative in alternatives.into_iter().flatten() {
            let of_one = kinds_of(alternative);
            if of_one.is_empty() {
                // It may be anything.
                return Vec::new();
            }
            kinds.extend(of_one);
        }
    }
    let values = schema.get("enum").and_then(Value::as_array);
    let values = values.into_iter().flatten().chain(schema.get("const"));
    kinds.extend(values.map(|value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }));
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn properties(arguments: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = arguments.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

/// Returns the types of an argument in words, with those of a list's items and an object's fields.
fn kind_shown(schema: &Value) -> String {
    let kinds = kinds_of(schema);
    if kinds.is_empty() {
        return "json".to_owned();
    }
    let shown = kinds.iter().map(|kind| match *kind {
        "array" => match schema.get("items").map(kinds_of) {
            Some(items) if !items.is_empty() => format!("array of {}", items.join(" or ")),
            _ => "array".to_owned(),
        },
        "object" => match schema.get("properties").and_then(Value::as_object) {
            Some(fields) if !fields.is_empty() => {
                let names: Vec<&str> = fields.keys().map(String::as_str).collect();
                format!("object with {}", names.join(", "))
            }
            _ => "object".to_owned(),
        },
        kind => kind.to_owned(),
    });
    shown.collect::<Vec<_>>().join(" or ")
}

/// Returns the values to choose from, the bounds and the default of an argument in words.
fn more_shown(schema: &Value) -> String {
    let mut shown = String::new();
    let items = schema.get("items");
    let values = |schema: &Value| {
        let all = schema.get("enum").and_then(Value::as_array)?;
        let all: Vec<String> = all.iter().map(Value::to_string).collect();
        Some(visible(&all.join(" "), VALUES_CHARS_MAX))
    };
    if let Some(values) = values(schema).or_else(|| items.and_then(values)) {
        let _ = write!(shown, ", one of {values}");
    }
    for (key, words) in BOUNDS {
        if let Some(bound) = schema.get(key) {
            let bound = visible(&bound.to_string(), VALUES_CHARS_MAX);
            let _ = write!(shown, ", {words} {bound}");
        }
    }
    if let Some(default) = schema.get("default") {
        let default = visible(&default.to_string(), VALUES_CHARS_MAX);
        let _ = write!(shown, ", {default} without it");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{flags_of, schemas_of};
    use serde_json::json;

    #[test]
    fn a_model_is_told_what_it_may_give_for_a_flag() {
        let arguments = json!({
                "type": "object", "required": ["state"],
                "$defs": { "place": { "type": "object", "properties": { "x": { "type": "number" } } } },
                "properties": {
                    "state": { "type": "string", "enum": ["open", "done"], "default": "open" },
                    "title": { "type": ["string", "null"], "maxLength": 80 },
                    "count": { "type": "integer", "minimum": 1, "maximum": 5, "description": "How many." },
                    "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
                    "owner": { "type": "object", "properties": { "name": { "type": "string" } } },
                    "size": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                    "place": { "$ref": "#/$defs/place" },
                },
        });
        assert_eq!(
            flags_of(&arguments),
            "- `--state` (string, required, one of \"open\" \"done\", \"open\" without it)\n\
             - `--title` (string or null, characters at most 80)\n\
             - `--count` (integer, at least 1, at most 5): How many.\n\
             - `--tags` (array of string, one of \"a\" \"b\")\n\
             - `--owner` (object with name)\n\
             - `--size` (integer or string)\n\
             - `--place` (json)\n"
        );
        let schemas = schemas_of(&arguments);
        for expected in [
            r#"--owner takes JSON of this schema: {"type":"object","properties":{"name""#,
            r#"--tags takes JSON of this schema: {"type":"array","items":{"enum":["a","b"]}}"#,
            r##"--place takes JSON of this schema: {"$ref":"#/$defs/place"}"##,
            r#"$defs: {"place":{"type":"object","properties":{"x""#,
        ] {
            assert!(schemas.contains(expected), "{expected}: {schemas}");
        }
        assert!(
            !schemas.contains("--state") && !schemas.contains("--size"),
            "{schemas}"
        );
        let plain = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        assert_eq!(schemas_of(&plain), "");
    }
}
