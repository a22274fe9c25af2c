//! Sums in a form that generators of clients understand.
//!
//! A generator calls an alternative that stands within its sum `TriggerRunType3`, and leaves out a
//! record that a sum is part of. So each alternative gets a schema of its own, `TriggerRunDone`.
//! A record with a sum in it becomes a sum of records. A sum whose alternatives differ by the value
//! of one field gets a discriminator.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The schemas of a description, as references to them begin.
const SCHEMAS: &str = "#/components/schemas/";
/// The same, as a JSON pointer.
const POINTER: &str = "/components/schemas";

/// Brings all sums of a description into that form.
pub(super) fn name_alternatives(description: &mut Value) {
    let Some(found) = description.pointer(POINTER).and_then(Value::as_object) else {
        return;
    };
    let mut schemas = found.clone();
    let mut parts = BTreeSet::new();
    for (name, schema) in found {
        let whole = match of_sum(found, schema, &mut parts) {
            None => of_record(found, name, schema, &mut parts),
            Some(alternatives) => Some((alternatives, None)),
        };
        let Some((alternatives, common)) = whole else {
            continue;
        };
        schemas.extend(common.map(|common| (fields_of(name), common)));
        let mut sum = named(name, alternatives, &mut schemas);
        put(&mut sum, "description", schema.get("description").cloned());
        schemas.insert(name.clone(), sum);
    }
    if let Some(described) = description.pointer_mut(POINTER) {
        *described = schemas.into();
    }
    drop_unused(description, parts);
}

/// Drops sums that stood in no other place than in those that they were part of, with their
/// alternatives.
fn drop_unused(description: &mut Value, parts: BTreeSet<String>) {
    let mut left: Vec<String> = parts.into_iter().collect();
    while let Some(part) = left.pop() {
        let is_used = description
            .to_string()
            .contains(&format!("\"{SCHEMAS}{part}\""));
        let schemas = description.pointer_mut(POINTER);
        let Some(schemas) = schemas.and_then(Value::as_object_mut).filter(|_| !is_used) else {
            continue;
        };
        let dropped = schemas.remove(&part).unwrap_or_default();
        let alternatives = list(&dropped, "oneOf").into_iter().flatten();
        left.extend(alternatives.filter_map(referred).map(str::to_owned));
    }
}

/// Adds the alternatives of a sum to the schemas, under their names, and returns the sum of them.
fn named(sum: &str, alternatives: Vec<Value>, schemas: &mut Map<String, Value>) -> Value {
    let mut references = Vec::new();
    let mut mapping = Map::new();
    let mut fields = BTreeSet::new();
    for mut alternative in alternatives {
        let reported = tag(&alternative);
        let title = alternative
            .as_object_mut()
            .and_then(|it| it.remove("title"));
        let title = title.as_ref().and_then(Value::as_str);
        let suffix = reported.as_ref().map_or(title, |(_, value)| Some(value));
        let name = format!("{sum}{}", in_camel_case(suffix.unwrap_or_default()));
        let reference = format!("{SCHEMAS}{name}");
        references.push(json!({ "$ref": reference }));
        fields.insert(reported.as_ref().map(|(field, _)| field.clone()));
        mapping.extend(reported.map(|(_, value)| (value, reference.clone().into())));
        let other = schemas.insert(name, alternative);
        debug_assert!(other.is_none(), "{reference} is two schemas");
    }
    let mut sum = json!({ "oneOf": references });
    if let (Some(Some(field)), 1) = (fields.first(), fields.len()) {
        let discriminator = json!({ "propertyName": field, "mapping": mapping });
        put(&mut sum, "discriminator", Some(discriminator));
    }
    sum
}

/// Returns the alternatives of a record with a sum in it, each with the record's other fields, and
/// these. None of another record.
fn of_record(
    schemas: &Map<String, Value>,
    name: &str,
    record: &Value,
    parts: &mut BTreeSet<String>,
) -> Option<(Vec<Value>, Option<Value>)> {
    let mut members = list(record, "allOf")?.clone();
    let (at, inner) = members.iter().enumerate().find_map(|(at, member)| {
        let part = referred(member)?;
        let inner = of_sum(schemas, schemas.get(part)?, parts)?;
        parts.insert(part.to_owned());
        Some((at, inner))
    })?;
    members.remove(at);
    let common = json!({ "$ref": format!("{SCHEMAS}{}", fields_of(name)) });
    let complete = |alternative: Value| {
        let own = list(&alternative, "allOf").cloned();
        let mut all = own.unwrap_or_else(|| vec![alternative.clone()]);
        all.push(common.clone());
        let mut whole = json!({ "allOf": all });
        for key in ["title", "description"] {
            put(&mut whole, key, alternative.get(key).cloned());
        }
        whole
    };
    let alternatives = inner.into_iter().map(complete).collect();
    let rest = match members.len() {
        1 => members.remove(0),
        _ => json!({ "allOf": members }),
    };
    Some((alternatives, Some(rest)))
}

fn list<'a>(schema: &'a Value, key: &str) -> Option<&'a Vec<Value>> {
    schema.get(key)?.as_array()
}

/// Adds a keyword to a schema, where there is a value for it.
fn put(schema: &mut Value, key: &str, value: Option<Value>) {
    if let (Some(schema), Some(value)) = (schema.as_object_mut(), value) {
        schema.insert(key.to_owned(), value);
    }
}

/// Returns the name of the schema of the fields that a record has whatever its sum is.
fn fields_of(record: &str) -> String {
    format!("{record}Fields")
}

/// Returns the alternatives of a sum of objects. Where one is a sum itself, its own stand in its
/// place.
fn of_sum(
    schemas: &Map<String, Value>,
    schema: &Value,
    parts: &mut BTreeSet<String>,
) -> Option<Vec<Value>> {
    let mut all = Vec::new();
    for alternative in list(schema, "oneOf")? {
        match referred(alternative) {
            Some(name) => {
                all.extend(of_sum(schemas, schemas.get(name)?, parts)?);
                parts.insert(name.to_owned());
            }
            None if is_object(alternative) => all.push(alternative.clone()),
            None => return None,
        }
    }
    Some(all)
}

fn is_object(schema: &Value) -> bool {
    schema["type"] == "object" || schema["allOf"].is_array()
}

/// Returns the name of the schema that a reference leads to.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix(SCHEMAS)
}

/// Returns the field of an alternative that has one possible value, and that value.
fn tag(alternative: &Value) -> Option<(String, String)> {
    let fields = alternative["properties"].as_object().into_iter().flatten();
    let mut reported = fields.filter_map(|(field, schema)| {
        let [value] = schema["enum"].as_array()?.as_slice() else {
            return None;
        };
        Some((field.clone(), value.as_str()?.to_owned()))
    });
    let mut parts = list(alternative, "allOf").into_iter().flatten();
    reported.next().or_else(|| parts.find_map(tag))
}

/// Returns a tag such as `agent.created.v1` in the form of a schema's name, `AgentCreatedV1`.
fn in_camel_case(tag: &str) -> String {
    let words = tag.split(|letter: char| !letter.is_ascii_alphanumeric());
    words
        .flat_map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the schemas of a description that has these.
    fn named(schemas: &Value) -> Value {
        let mut description = json!({ "components": { "schemas": schemas } });
        name_alternatives(&mut description);
        description["components"]["schemas"].take()
    }

    fn tagged(state: &str) -> Value {
        json!({ "type": "object", "properties": { "state": { "type": "string", "enum": [state] } } })
    }

    fn reference(name: &str) -> Value {
        json!({ "$ref": format!("{SCHEMAS}{name}") })
    }

    #[test]
    fn an_alternative_has_a_schema_of_its_own_and_its_sum_a_discriminator() {
        let sum =
            json!({ "description": "A run.", "oneOf": [tagged("done"), tagged("timed-out")] });
        let schemas = named(&json!({ "Run": sum }));
        let mapping = json!({
            "done": format!("{SCHEMAS}RunDone"), "timed-out": format!("{SCHEMAS}RunTimedOut"),
        });
        let expected = json!({
            "Run": {
                "description": "A run.",
                "oneOf": [reference("RunDone"), reference("RunTimedOut")],
                "discriminator": { "propertyName": "state", "mapping": mapping },
            },
            "RunDone": tagged("done"),
            "RunTimedOut": tagged("timed-out"),
        });
        assert_eq!(schemas, expected);
    }

    #[test]
    fn a_record_with_a_sum_in_it_becomes_a_sum_of_records() {
        let erased = json!({ "type": "object", "title": "Erased" });
        let rest = json!({ "type": "object", "properties": { "id": {} } });
        let schemas = named(&json!({
            "Data": { "oneOf": [tagged("made")] },
            "Content": { "oneOf": [reference("Data"), erased] },
            "Event": { "allOf": [reference("Content"), rest] },
        }));
        let expected = json!({
            "Event": { "oneOf": [reference("EventMade"), reference("EventErased")] },
            "EventMade": { "allOf": [tagged("made"), reference("EventFields")] },
            "EventErased": { "allOf": [erased, reference("EventFields")] },
            "EventFields": rest,
        });
        assert_eq!(schemas, expected);
    }

    #[test]
    fn what_is_no_sum_of_objects_stays() {
        let schemas = json!({
            "Content": { "oneOf": [{ "type": "string" }, tagged("made")] },
            "Maybe": { "oneOf": [reference("Plain"), { "type": "null" }] },
            "Plain": { "allOf": [reference("Other"), tagged("made")] },
            "Other": { "type": "object" },
        });
        assert_eq!(named(&schemas), schemas);
    }
}
