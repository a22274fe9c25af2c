//! JSON Schemas in the part of the language that model servers agree on.
//!
//! Servers turn schemas into grammars, or into a type of their own, and refuse what they do not
//! know: references, limits beyond some thousand, formats, lists of types. Only keywords that all
//! of them take are sent.

use regex::Regex;
use serde_json::{Map, Value, json};

/// The least number of repetitions that grammars refuse.
const REPETITIONS_REFUSED: f64 = 2_000.0;
/// The largest number that servers read exactly.
const NUMBER_MAX: f64 = 9_007_199_254_740_992.0;
/// References that are followed in one schema.
const REFERENCES_MAX: u32 = 200;
/// Characters of a property's name that servers take.
const PROPERTY_CHARS_MAX: usize = 64;
/// Levels of a schema that are sent.
const DEPTH_MAX: usize = 24;

/// Returns the schema of a tool's arguments: an object, with its properties, and without
/// alternatives at its root.
pub(crate) fn of_tool(schema: &Value) -> Value {
    let mut sent = of_reply(schema);
    let Some(root) = sent.as_object_mut() else {
        return json!({"type": "object", "properties": {}});
    };
    let alternatives = root.remove("anyOf");
    root.remove("enum");
    root.remove("items");
    root.insert("type".to_owned(), json!("object"));
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    for alternative in alternatives
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let more = alternative.get("properties").and_then(Value::as_object);
        for (name, property) in more.into_iter().flatten() {
            if let Some(properties) = properties.as_object_mut() {
                properties.entry(name).or_insert_with(|| property.clone());
            }
        }
    }
    tell_choices(&mut sent);
    sent
}

/// Says in the description what may be chosen where it is no text: some servers refuse whole
/// requests for other choices, and for empty ones.
fn tell_choices(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_text = fields.get("type").is_none_or(|kind| kind == "string");
            if let Some(Value::Array(choices)) = fields.get_mut("enum") {
                choices.retain(|choice| choice != "");
                let are_texts = is_text && choices.iter().all(Value::is_string);
                let reported: Vec<String> = choices.iter().map(Value::to_string).collect();
                if !are_texts {
                    tell(fields, &format!("One of: {}.", reported.join(", ")));
                }
                if !are_texts || reported.is_empty() {
                    fields.remove("enum");
                }
            }
            fields.values_mut().for_each(tell_choices);
        }
        Value::Array(items) => items.iter_mut().for_each(tell_choices),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the schema of a reply.
pub(crate) fn of_reply(schema: &Value) -> Value {
    let mut normaliser = Normaliser {
        root: schema,
        within: Vec::new(),
        references_left: REFERENCES_MAX,
    };
    normaliser.schema(schema, Place::Needed, 0)
}

/// The place of a schema, which decides on `null`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// There has to be a value.
    Needed,
    /// The value may be left out, so `null` need not be offered.
    Optional,
}

/// A schema on its way out.
struct Normaliser<'a> {
    root: &'a Value,
    /// The references that are being followed.
    within: Vec<String>,
    references_left: u32,
}

impl Normaliser<'_> {
    fn schema(&mut self, schema: &Value, place: Place, depth: usize) -> Value {
        let Some(given) = schema.as_object().filter(|_| depth < DEPTH_MAX) else {
            return json!({});
        };
        let followed = self.within.len();
        let given = self.flat(given.clone());
        let mut sent = Map::new();
        for (key, value) in &given {
            let value = match key.as_str() {
                "title" | "description" if value.is_string() => Some(value.clone()),
                "properties" => Some(self.properties(value, &given, depth)),
                "items" => Some(self.items(value, depth)),
                "additionalProperties" if value.is_object() => {
                    let more = self.schema(value, Place::Needed, depth + 1);
                    (more != json!({})).then_some(more)
                }
                "additionalProperties" if value.is_boolean() => Some(value.clone()),
                "required" => required(value, &given),
                "enum" => choices(value, place),
                "default" if !value.is_null() => Some(value.clone()),
                _ => plain(key, value),
            };
            if let Some(value) = value {
                sent.insert(key.clone(), value);
            }
        }
        if let Some(value) = given.get("const") {
            sent.insert("enum".to_owned(), json!([value]));
        }
        exclusive(&given, &mut sent);
        self.types(&given, place, &mut sent);
        self.alternatives(&given, place, depth, &mut sent);
        self.tell_properties(&given, depth, &mut sent);
        if depth > 0 {
            leave_alone(&mut sent);
        }
        complete(&mut sent);
        self.within.truncate(followed);
        Value::Object(sent)
    }

    /// Follows a reference, and joins what `allOf` lists.
    fn flat(&mut self, mut given: Map<String, Value>) -> Map<String, Value> {
        if let Some(Value::String(reference)) = given.remove("$ref")
            && let Some(target) = self.followed(&reference)
        {
            let target = self.flat(target);
            join(&mut given, target);
        }
        if let Some(Value::Array(all)) = given.remove("allOf") {
            for one in all {
                if let Value::Object(one) = one {
                    let one = self.flat(one);
                    join(&mut given, one);
                }
            }
        }
        given
    }

    /// Returns what a reference within the schema leads to. One that leads to itself, and too many,
    /// stand for anything.
    fn followed(&mut self, reference: &str) -> Option<Map<String, Value>> {
        let target = self
            .root
            .pointer(reference.strip_prefix('#')?)?
            .as_object()?;
        let is_within = self.within.iter().any(|within| within == reference);
        self.references_left = self.references_left.checked_sub(1)?;
        if is_within {
            return None;
        }
        self.within.push(reference.to_owned());
        Some(target.clone())
    }

    fn properties(&mut self, value: &Value, given: &Map<String, Value>, depth: usize) -> Value {
        let needed = given.get("required").and_then(Value::as_array);
        let properties = value.as_object().into_iter().flatten();
        let sent = properties.filter(|(name, _)| is_name(name));
        let sent = sent.map(|(name, property)| {
            let is_needed =
                needed.is_some_and(|needed| needed.iter().any(|one| one.as_str() == Some(name)));
            let place = if is_needed {
                Place::Needed
            } else {
                Place::Optional
            };
            (name.clone(), self.schema(property, place, depth + 1))
        });
        Value::Object(sent.collect())
    }

    /// Says in the description which properties there are beside those whose names servers take.
    fn tell_properties(
        &mut self,
        given: &Map<String, Value>,
        depth: usize,
        sent: &mut Map<String, Value>,
    ) {
        let properties = given.get("properties").and_then(Value::as_object);
        let untold = properties.into_iter().flatten();
        for (name, property) in untold.filter(|(name, _)| !is_name(name)) {
            let property = self.schema(property, Place::Optional, depth + 1);
            tell(sent, &format!("Takes {} as well: {property}.", json!(name)));
            // Servers would keep their model from it.
            sent.remove("additionalProperties");
        }
    }

    /// A list of schemas, one for each place, becomes the alternatives of every place.
    fn items(&mut self, value: &Value, depth: usize) -> Value {
        match value {
            Value::Array(items) => {
                let items = items.iter();
                let any: Vec<Value> = items
                    .map(|item| self.schema(item, Place::Needed, depth + 1))
                    .collect();
                json!({ "anyOf": any })
            }
            item => self.schema(item, Place::Needed, depth + 1),
        }
    }

    /// A list of types becomes one type, or alternatives.
    fn types(&mut self, given: &Map<String, Value>, place: Place, sent: &mut Map<String, Value>) {
        let types: Vec<&str> = match given.get("type") {
            Some(Value::String(one)) => type_of(one).into_iter().collect(),
            Some(Value::Array(types)) => {
                let types = types.iter().filter_map(Value::as_str);
                types.filter_map(type_of).collect()
            }
            Some(_) | None => return,
        };
        let offered: Vec<&str> = types
            .iter()
            .copied()
            .filter(|one| *one != "null" || place == Place::Needed || types.len() == 1)
            .collect();
        match offered.as_slice() {
            [] => return,
            [one] => {
                sent.insert("type".to_owned(), json!(one));
                return;
            }
            _ => {}
        }
        let kept = ["title", "description", "default"];
        let details: Map<String, Value> = sent
            .iter()
            .filter(|(key, _)| !kept.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        sent.retain(|key, _| kept.contains(&key.as_str()));
        let any = offered.into_iter().map(|one| {
            let mut alternative = details.clone();
            alternative.retain(|key, _| belongs(key, one));
            if let Some(Value::Array(choices)) = alternative.get_mut("enum") {
                choices.retain(|choice| is_of_type(choice, one));
            }
            alternative.insert("type".to_owned(), json!(one));
            complete(&mut alternative);
            Value::Object(alternative)
        });
        sent.insert("anyOf".to_owned(), any.collect());
    }

    /// Alternatives go as `anyOf`. A single one is joined with what stands around it.
    fn alternatives(
        &mut self,
        given: &Map<String, Value>,
        place: Place,
        depth: usize,
        sent: &mut Map<String, Value>,
    ) {
        let listed = given.get("anyOf").or_else(|| given.get("oneOf"));
        let Some(listed) = listed.and_then(Value::as_array) else {
            return;
        };
        let is_null = |one: &Value| one.get("type").and_then(Value::as_str) == Some("null");
        // So schemas say that a value may be left out.
        let is_none = |one: &Value| *one == json!({"not": {}});
        let offered = listed
            .iter()
            .filter(|one| (place == Place::Needed || !is_null(one)) && !is_none(one));
        let mut any: Vec<Value> = offered
            .map(|one| self.schema(one, Place::Needed, depth + 1))
            .collect();
        // One that takes anything leaves no choice.
        let is_open = any.contains(&json!({}));
        match any.as_mut_slice() {
            [] => {}
            [Value::Object(only)] => join(sent, std::mem::take(only)),
            _ if is_open => {}
            _ => {
                if any.iter().all(|one| one.get("type").is_some()) && depth > 0 {
                    // Some servers want the type there alone.
                    sent.remove("type");
                }
                sent.insert("anyOf".to_owned(), Value::Array(any));
            }
        }
    }
}

/// Adds a sentence to the description of a schema.
fn tell(schema: &mut Map<String, Value>, reported: &str) {
    let before = schema.get("description").and_then(Value::as_str);
    let reported = before.map_or(reported.to_owned(), |before| format!("{before} {reported}"));
    schema.insert("description".to_owned(), json!(reported));
}

/// Leaves nothing beside alternatives but what decides on a value, because some servers refuse it.
/// The description goes into those that have none.
fn leave_alone(sent: &mut Map<String, Value>) {
    if !sent.contains_key("anyOf") {
        return;
    }
    sent.remove("title");
    sent.remove("default");
    let description = sent.remove("description");
    let alternatives = sent.get_mut("anyOf").and_then(Value::as_array_mut);
    let Some((alternatives, description)) = alternatives.zip(description) else {
        return;
    };
    for alternative in alternatives.iter_mut().filter_map(Value::as_object_mut) {
        alternative
            .entry("description")
            .or_insert_with(|| description.clone());
    }
}

/// Returns the type that a word of other languages of schemas means.
fn type_of(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "string" | "str" | "text" => Some("string"),
        "number" | "float" | "double" => Some("number"),
        "integer" | "int" => Some("integer"),
        "boolean" | "bool" => Some("boolean"),
        "object" | "dict" | "map" => Some("object"),
        "array" | "list" => Some("array"),
        "null" | "none" => Some("null"),
        _ => None,
    }
}

/// Returns whether every server takes a property of this name.
fn is_name(name: &str) -> bool {
    let fits = |kind: u8| kind.is_ascii_alphanumeric() || matches!(kind, b'_' | b'-' | b'.');
    (1..=PROPERTY_CHARS_MAX).contains(&name.len()) && name.bytes().all(fits)
}

/// Adds what stands in another schema: properties and needs of both, and otherwise the first.
fn join(to: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match (to.get_mut(&key), value) {
            (Some(Value::Object(properties)), Value::Object(more)) if key == "properties" => {
                for (name, property) in more {
                    properties.entry(name).or_insert(property);
                }
            }
            (Some(Value::Array(needed)), Value::Array(more)) if key == "required" => {
                needed.extend(more);
            }
            (Some(_), _) => {}
            (None, value) => {
                to.insert(key, value);
            }
        }
    }
}

/// Returns a keyword that stands for itself, if every server takes it with this value.
fn plain(key: &str, value: &Value) -> Option<Value> {
    let number = value.as_f64();
    let is_sent = match key {
        "minLength" | "maxLength" | "minItems" | "maxItems" => {
            number.is_some_and(|number| (0.0..REPETITIONS_REFUSED).contains(&number))
        }
        "minimum" | "maximum" => number.is_some_and(|number| number.abs() <= NUMBER_MAX),
        "format" => value == "date-time",
        "pattern" => value
            .as_str()
            .is_some_and(|pattern| is_simple(pattern) && Regex::new(pattern).is_ok()),
        _ => false,
    };
    is_sent.then(|| value.clone())
}

/// Returns whether a pattern is one that grammars can be made of: the whole text, ASCII, no
/// assertions, no classes of other languages, and no repetition beyond the limit.
fn is_simple(pattern: &str) -> bool {
    let Some(inner) = pattern
        .strip_prefix('^')
        .and_then(|rest| rest.strip_suffix('$'))
    else {
        return false;
    };
    let escapes = inner
        .split('\\')
        .skip(1)
        .filter_map(|after| after.chars().next());
    let repetitions = inner.split('{').skip(1).flat_map(|after| {
        let within = after.split('}').next().unwrap_or_default();
        within
            .split(',')
            .filter_map(|number| number.trim().parse::<f64>().ok())
    });
    inner.is_ascii()
        && !inner.contains("(?")
        && !inner.ends_with('\\')
        && escapes
            .into_iter()
            .all(|kind| !kind.is_ascii_alphanumeric() || "dswnrt".contains(kind))
        && repetitions
            .into_iter()
            .all(|number| number < REPETITIONS_REFUSED)
}

/// Exclusive limits of whole numbers become limits. Others are not sent.
fn exclusive(given: &Map<String, Value>, sent: &mut Map<String, Value>) {
    let is_whole = given.get("type").and_then(Value::as_str) == Some("integer");
    for (key, as_key, step) in [
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ] {
        let limit = given.get(key).and_then(Value::as_i64);
        if let Some(limit) = limit
            .and_then(|limit| limit.checked_add(step))
            .filter(|_| is_whole)
            && let Some(limit) = plain(as_key, &json!(limit))
        {
            sent.entry(as_key).or_insert(limit);
        }
    }
}

/// Returns the names that are needed, of those that there are.
fn required(value: &Value, given: &Map<String, Value>) -> Option<Value> {
    let properties = given.get("properties").and_then(Value::as_object)?;
    let mut names: Vec<&str> = Vec::new();
    for name in value.as_array()?.iter().filter_map(Value::as_str) {
        if is_name(name) && properties.contains_key(name) && !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| json!(names))
}

/// Returns the values to choose from, without `null` where the value may be left out.
fn choices(value: &Value, place: Place) -> Option<Value> {
    let mut offered: Vec<&Value> = Vec::new();
    for choice in value.as_array()? {
        if (place == Place::Needed || !choice.is_null()) && !offered.contains(&choice) {
            offered.push(choice);
        }
    }
    (!offered.is_empty()).then(|| json!(offered))
}

/// Returns whether a keyword says something about values of a type.
fn belongs(key: &str, kind: &str) -> bool {
    match key {
        "properties" | "required" | "additionalProperties" => kind == "object",
        "items" | "minItems" | "maxItems" | "uniqueItems" => kind == "array",
        "minLength" | "maxLength" | "pattern" | "format" => kind == "string",
        "minimum" | "maximum" => matches!(kind, "integer" | "number"),
        _ => kind != "null",
    }
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => {
            kind == "number" || kind == "integer" && (number.is_i64() || number.is_u64())
        }
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    }
}

/// Adds what servers miss: the type that the rest implies, and what objects and lists consist of.
fn complete(sent: &mut Map<String, Value>) {
    if !sent.contains_key("type") && !sent.contains_key("anyOf") {
        let choices = sent.get("enum").and_then(Value::as_array);
        let implied = if sent.contains_key("properties") {
            Some("object")
        } else if sent.contains_key("items") {
            Some("array")
        } else if choices.is_some_and(|choices| choices.iter().all(Value::is_string)) {
            Some("string")
        } else {
            None
        };
        if let Some(implied) = implied {
            sent.insert("type".to_owned(), json!(implied));
        }
    }
    match sent.get("type").and_then(Value::as_str) {
        Some("object") => drop(sent.entry("properties").or_insert_with(|| json!({}))),
        Some("array") => drop(sent.entry("items").or_insert_with(|| json!({}))),
        Some(_) | None => {}
    }
    if sent
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
    {
        sent.remove("enum");
    }
}

#[cfg(test)]
mod tests;
