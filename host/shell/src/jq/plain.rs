//! The functions of a filter that need nothing but their input and one argument.

use super::functions::{formatted, text_of};
use super::values::{
    Halt, arithmetic, each_with, float, indexed, is_true, kind, merged, number_from, number_of,
    order, raised, split, weight,
};
use crate::meter::{Meter, OBJECT_BYTES, VALUE_BYTES};
use jaq_core::ops::Math;
use serde_json::{Map, Value, json};

pub(super) fn unknown<T>(name: &str, arguments: usize) -> Result<T, Halt> {
    let name = domain::shown::visible(name, 80);
    raised(format!("there is no function {name}/{arguments} here"))
}

/// Returns the items of a list, or the values of an object.
pub(super) fn children(value: &Value) -> Result<Vec<&Value>, Halt> {
    match value {
        Value::Array(items) => Ok(items.iter().collect()),
        Value::Object(fields) => Ok(fields.values().collect()),
        other => raised(format!("{} has no items", kind(other))),
    }
}

/// Returns the value of a function of its input; none where it gives nothing.
pub(super) fn plain(meter: &mut Meter, name: &str, input: &Value) -> Result<Option<Value>, Halt> {
    let is_kept = match name {
        "values" => Some(!input.is_null()),
        "nulls" => Some(input.is_null()),
        "booleans" => Some(input.is_boolean()),
        "numbers" => Some(input.is_number()),
        "strings" => Some(input.is_string()),
        "arrays" => Some(input.is_array()),
        "objects" => Some(input.is_object()),
        "iterables" => Some(input.is_array() || input.is_object()),
        "scalars" => Some(!(input.is_array() || input.is_object())),
        _ => None,
    };
    if let Some(is_kept) = is_kept {
        return Ok(is_kept.then(|| input.clone()));
    }
    Ok(Some(match name {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "not" => Value::Bool(!is_true(input)),
        "length" => length(input)?,
        "type" => kind(input).into(),
        "keys" | "keys_unsorted" => keys(name, input)?,
        "to_entries" => Value::Array(to_entries(meter, input)?),
        "from_entries" => from_entries(meter, input)?,
        "tojson" => meter.json(input, true)?.into(),
        "tostring" => text_of(meter, input)?.into(),
        "fromjson" => from_json(meter, text(input)?)?,
        "tonumber" => match input {
            Value::String(digits) => number_from(digits.trim())?,
            other => number_of(float(other)?),
        },
        "floor" => number_of(float(input)?.floor()),
        "ceil" => number_of(float(input)?.ceil()),
        "round" => number_of(float(input)?.round()),
        "abs" => number_of(float(input)?.abs()),
        "ascii_downcase" => text(input)?.to_ascii_lowercase().into(),
        "ascii_upcase" => text(input)?.to_ascii_uppercase().into(),
        "trim" => text(input)?.trim().into(),
        "ltrim" => text(input)?.trim_start().into(),
        "rtrim" => text(input)?.trim_end().into(),
        "@text" | "@json" | "@csv" | "@tsv" => formatted(meter, Some(name), input)?.into(),
        _ => return of_list(meter, name, input).map(Some),
    }))
}

/// Returns the value of a function of a list.
fn of_list(meter: &mut Meter, name: &str, input: &Value) -> Result<Value, Halt> {
    if !matches!(
        name,
        "add"
            | "any"
            | "all"
            | "sort"
            | "unique"
            | "min"
            | "max"
            | "first"
            | "last"
            | "reverse"
            | "flatten"
    ) {
        return unknown(name, 0);
    }
    let children = children(input)?;
    Ok(match name {
        "add" => added(meter, &children)?,
        "any" => children.iter().any(|item| is_true(item)).into(),
        "all" => children.iter().all(|item| is_true(item)).into(),
        "sort" => copied(sorted(meter, children)?),
        "unique" => {
            let mut unique = sorted(meter, children)?;
            unique.dedup_by(|a, b| order(a, b).is_eq());
            copied(unique)
        }
        "min" => copied_one(sorted(meter, children)?.first().copied()),
        "max" => copied_one(sorted(meter, children)?.pop()),
        "first" => copied_one(children.first().copied()),
        "last" => copied_one(children.last().copied()),
        "reverse" => copied(children.into_iter().rev().collect()),
        _ => {
            let mut flat = Vec::new();
            let mut next: Vec<&Value> = children.into_iter().rev().collect();
            while let Some(item) = next.pop() {
                match item {
                    Value::Array(items) => next.extend(items.iter().rev()),
                    other => flat.push(other.clone()),
                }
            }
            flat.into()
        }
    })
}

fn sorted<'v>(meter: &mut Meter, items: Vec<&'v Value>) -> Result<Vec<&'v Value>, Halt> {
    merged(meter, items, &|a, b| order(a, b))
}

fn copied(items: Vec<&Value>) -> Value {
    Value::Array(items.into_iter().cloned().collect())
}

fn copied_one(item: Option<&Value>) -> Value {
    item.cloned().unwrap_or_default()
}

/// Returns the sum of some values, in time that grows with their size only.
fn added(meter: &mut Meter, items: &[&Value]) -> Result<Value, Halt> {
    if items.iter().all(|item| item.is_string()) && !items.is_empty() {
        let texts: Vec<&str> = items.iter().filter_map(|item| item.as_str()).collect();
        return Ok(texts.concat().into());
    }
    if items.iter().all(|item| item.is_array()) && !items.is_empty() {
        let lists = items.iter().filter_map(|item| item.as_array());
        return Ok(lists.flatten().cloned().collect::<Vec<_>>().into());
    }
    if items.iter().all(|item| item.is_object()) && !items.is_empty() {
        let mut all = Map::new();
        for fields in items.iter().filter_map(|item| item.as_object()) {
            all.extend(
                fields
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
        }
        return Ok(Value::Object(all));
    }
    let mut sum = Value::Null;
    for item in items {
        if !matches!(item, Value::Null | Value::Number(_)) {
            return raised(format!("{} and others cannot be added", kind(item)));
        }
        sum = arithmetic(meter, Math::Add, &sum, item)?;
    }
    Ok(sum)
}

/// Returns the value of a function of its input and one argument.
pub(super) fn with_one(
    meter: &mut Meter,
    name: &str,
    input: &Value,
    given: &Value,
) -> Result<Value, Halt> {
    Ok(match name {
        "has" => match (input, given) {
            (Value::Object(fields), Value::String(key)) => fields.contains_key(key).into(),
            (Value::Array(items), Value::Number(_)) => {
                let index = float(given)?;
                (index >= 0.0 && index < items.len() as f64).into()
            }
            _ => return raised(format!("{} has no such keys", kind(input))),
        },
        "contains" | "inside" => {
            let (whole, part) = if name == "contains" {
                (input, given)
            } else {
                (given, input)
            };
            each_with(meter, weight(part) / VALUE_BYTES, whole)?;
            contains(whole, part).into()
        }
        "startswith" => text(input)?.starts_with(text(given)?).into(),
        "endswith" => text(input)?.ends_with(text(given)?).into(),
        "ltrimstr" => match (input, given) {
            (Value::String(whole), Value::String(start)) => {
                whole.strip_prefix(start.as_str()).unwrap_or(whole).into()
            }
            _ => input.clone(),
        },
        "rtrimstr" => match (input, given) {
            (Value::String(whole), Value::String(end)) => {
                whole.strip_suffix(end.as_str()).unwrap_or(whole).into()
            }
            _ => input.clone(),
        },
        "split" => split(meter, text(input)?, text(given)?)?,
        "index" => match text(input)?.find(text(given)?) {
            Some(at) => text(input)?
                .get(..at)
                .unwrap_or_default()
                .chars()
                .count()
                .into(),
            None => Value::Null,
        },
        "join" => joined(meter, &children(input)?, text(given)?)?,
        "getpath" => {
            let mut value = input;
            for key in children(given)? {
                value = indexed(value, key)?;
            }
            value.clone()
        }
        "error" => return Err(Halt::Raised(text_of(meter, given)?)),
        _ => return unknown(name, 1),
    })
}

/// Returns texts in one, with another between them.
fn joined(meter: &mut Meter, items: &[&Value], by: &str) -> Result<Value, Halt> {
    let mut joined = String::new();
    for (number, item) in items.iter().enumerate() {
        let chunk = match item {
            Value::Null => String::new(),
            other => text_of(meter, other)?,
        };
        let between = if number == 0 { "" } else { by };
        meter.push_all(&mut joined, &[between, chunk.as_str()])?;
    }
    Ok(joined.into())
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => whole.contains(part.as_str()),
        (Value::Array(whole), Value::Array(part)) => part
            .iter()
            .all(|part| whole.iter().any(|whole| contains(whole, part))),
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part))),
        (whole, part) => order(whole, part).is_eq(),
    }
}

fn text(value: &Value) -> Result<&str, Halt> {
    match value {
        Value::String(text) => Ok(text),
        other => raised(format!("{} is no string", kind(other))),
    }
}

fn length(input: &Value) -> Result<Value, Halt> {
    Ok(match input {
        Value::Null => 0.into(),
        Value::String(text) => text.chars().count().into(),
        Value::Array(items) => items.len().into(),
        Value::Object(fields) => fields.len().into(),
        Value::Number(_) => number_of(float(input)?.abs()),
        Value::Bool(_) => return raised("boolean has no length"),
    })
}

fn keys(name: &str, input: &Value) -> Result<Value, Halt> {
    match input {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            if name == "keys" {
                keys.sort_unstable();
            }
            Ok(json!(keys))
        }
        Value::Array(items) => Ok((0..items.len()).map(Value::from).collect::<Vec<_>>().into()),
        other => raised(format!("{} has no keys", kind(other))),
    }
}

fn from_json(meter: &mut Meter, text: &str) -> Result<Value, Halt> {
    meter.reading(text)?;
    domain::json::parse(text).map_err(|refused| Halt::Raised(refused.to_string()))
}

pub(super) fn to_entries(meter: &mut Meter, input: &Value) -> Result<Vec<Value>, Halt> {
    let Value::Object(fields) = input else {
        return raised(format!("{} is no object", kind(input)));
    };
    let mut entries = Vec::new();
    for (key, value) in fields {
        meter.work(OBJECT_BYTES + 4 * VALUE_BYTES + key.len() + weight(value))?;
        entries.push(json!({ "key": key, "value": value }));
    }
    Ok(entries)
}

pub(super) fn from_entries(meter: &mut Meter, input: &Value) -> Result<Value, Halt> {
    let mut object = Map::new();
    for entry in children(input)? {
        let key = ["key", "k", "name"]
            .iter()
            .find_map(|key| entry.get(key).filter(|key| !key.is_null()));
        let value = ["value", "v"].iter().find_map(|key| entry.get(key));
        let Some(key) = key else {
            return raised("an entry has no key");
        };
        let key = text_of(meter, key)?;
        meter.work(VALUE_BYTES + key.len() + value.map_or(VALUE_BYTES, weight))?;
        object.insert(key, value.cloned().unwrap_or_default());
    }
    Ok(Value::Object(object))
}
