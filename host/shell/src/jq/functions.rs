//! The functions that a filter may call by name.

use super::terms::{Filter, Scope, Values};
use super::values::{
    Halt, comparable, float, formatted, indexed, is_true, kind, number_of, order, raised, split,
    text_of, weight,
};
use crate::grep::MATCH_FACTOR;
use jaq_core::load::parse::Term;
use regex::RegexBuilder;
use serde_json::{Map, Value, json};

/// Bytes of memory of a compiled pattern, which each use is counted as.
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// Numbers that `range` gives.
const RANGE_MAX: i64 = 100_000;

/// Values with the keys by which they are sorted.
type Keyed = Vec<(Vec<Value>, Value)>;

impl Filter<'_> {
    /// Returns the values of a function.
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: &[Term<&str>],
        scope: Scope<'_>,
    ) -> Values {
        let input = scope.input;
        match (name, arguments) {
            ("empty", []) => Ok(Vec::new()),
            ("error", []) => raised(text_of(input)),
            ("select", [condition]) => {
                let holds = self.values(condition, scope)?;
                let count = holds.iter().filter(|holds| is_true(holds)).count();
                let mut all = Vec::new();
                for _ in 0..count {
                    all.push(self.copy(input)?);
                }
                Ok(all)
            }
            ("first", [of]) => Ok(self.values(of, scope)?.into_iter().take(1).collect()),
            ("last", [of]) => Ok(self.values(of, scope)?.pop().into_iter().collect()),
            ("limit", [count, of]) => {
                let count = self.one(count, scope)?;
                let count = float(&count)?.max(0.0) as usize;
                Ok(self.values(of, scope)?.into_iter().take(count).collect())
            }
            ("range", [until]) => self.range(None, until, scope),
            ("range", [from, until]) => self.range(Some(from), until, scope),
            ("sort_by" | "group_by" | "unique_by" | "min_by" | "max_by", [by]) => {
                let keyed = self.keyed(by, scope)?;
                let value = by_keys(name, keyed);
                Ok(vec![self.made(value)?])
            }
            ("map" | "map_values" | "with_entries" | "any" | "all", [each]) => {
                self.of_each(name, each, scope)
            }
            ("test", [pattern]) => self.test(pattern, None, scope),
            ("test", [pattern, flags]) => self.test(pattern, Some(flags), scope),
            (_, [argument]) => {
                let mut all = Vec::new();
                for given in self.values(argument, scope)? {
                    self.meter.work(weight(input) + weight(&given))?;
                    let value = with_one(name, input, &given)?;
                    all.push(self.made(value)?);
                }
                Ok(all)
            }
            (_, []) => {
                // A sort reads each value some times.
                self.meter.work(weight(input).saturating_mul(4))?;
                match plain(name, input)? {
                    Some(value) => Ok(vec![self.made(value)?]),
                    None => Ok(Vec::new()),
                }
            }
            _ => unknown(name, arguments.len()),
        }
    }

    /// Returns the value of a function that looks at each item of its input.
    fn of_each(&mut self, name: &str, each: &Term<&str>, scope: Scope<'_>) -> Values {
        if name == "map_values" {
            return self.map_values(each, scope);
        }
        if name == "with_entries" {
            let entries = to_entries(scope.input)?;
            let mut all = Vec::new();
            for entry in &entries {
                all.extend(self.values(each, scope.with(entry))?);
            }
            let object = from_entries(&Value::Array(all))?;
            return Ok(vec![self.made(object)?]);
        }
        let mut all = Vec::new();
        for item in children(scope.input)? {
            all.extend(self.values(each, scope.with(item))?);
        }
        Ok(vec![match name {
            "any" => all.iter().any(is_true).into(),
            "all" => all.iter().all(is_true).into(),
            _ => Value::Array(all),
        }])
    }

    /// Returns the first value of a term.
    fn one(&mut self, term: &Term<&str>, scope: Scope<'_>) -> Result<Value, Halt> {
        Ok(self
            .values(term, scope)?
            .into_iter()
            .next()
            .unwrap_or_default())
    }

    fn map_values(&mut self, each: &Term<&str>, scope: Scope<'_>) -> Values {
        Ok(vec![match scope.input {
            Value::Array(items) => {
                let mut all = Vec::new();
                for item in items {
                    all.extend(self.values(each, scope.with(item))?.into_iter().take(1));
                }
                Value::Array(all)
            }
            Value::Object(fields) => {
                let mut all = Map::new();
                for (key, item) in fields {
                    self.meter.work(key.len())?;
                    let value = self.values(each, scope.with(item))?.into_iter().next();
                    all.extend(value.map(|value| (key.clone(), value)));
                }
                Value::Object(all)
            }
            other => return raised(format!("{} has no items", kind(other))),
        }])
    }

    fn range(&mut self, from: Option<&Term<&str>>, until: &Term<&str>, scope: Scope<'_>) -> Values {
        let whole = |value: &Value| match value.as_i64() {
            Some(whole) => Ok(whole),
            None => raised("range takes whole numbers"),
        };
        let from = match from {
            Some(from) => whole(&self.one(from, scope)?)?,
            None => 0,
        };
        let until = whole(&self.one(until, scope)?)?;
        if until.saturating_sub(from) > RANGE_MAX {
            return raised(format!("range gives at most {RANGE_MAX} numbers"));
        }
        let count = usize::try_from(until.saturating_sub(from)).unwrap_or(0);
        self.meter.work(count.saturating_mul(64))?;
        Ok((from..until).map(Value::from).collect())
    }

    /// Returns the items of a list, sorted, with the keys by which they are.
    fn keyed(&mut self, by: &Term<&str>, scope: Scope<'_>) -> Result<Keyed, Halt> {
        let Value::Array(items) = scope.input else {
            return raised(format!("{} is no array", kind(scope.input)));
        };
        let mut keyed = Vec::new();
        for item in items {
            let keys = self.values(by, scope.with(item))?;
            keyed.push((keys, self.copy(item)?));
        }
        self.meter.work(weight(scope.input).saturating_mul(4))?;
        keyed.sort_by(|a, b| order_of_keys(&a.0, &b.0));
        Ok(keyed)
    }

    fn test(
        &mut self,
        pattern: &Term<&str>,
        flags: Option<&Term<&str>>,
        scope: Scope<'_>,
    ) -> Values {
        let pattern = self.one(pattern, scope)?;
        let flags = match flags {
            Some(flags) => self.one(flags, scope)?,
            None => Value::Null,
        };
        let (Value::String(pattern), Value::String(text)) = (&pattern, scope.input) else {
            return raised("test takes texts");
        };
        self.meter
            .work(PATTERN_BYTES_MAX + text.len().saturating_mul(MATCH_FACTOR))?;
        let compiled = RegexBuilder::new(pattern)
            .case_insensitive(flags.as_str().is_some_and(|flags| flags.contains('i')))
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX)
            .build();
        match compiled {
            Ok(compiled) => Ok(vec![compiled.is_match(text).into()]),
            Err(error) => raised(error.to_string()),
        }
    }
}

fn unknown<T>(name: &str, arguments: usize) -> Result<T, Halt> {
    let name = domain::shown::visible(name, 80);
    raised(format!("there is no function {name}/{arguments} here"))
}

fn order_of_keys(a: &[Value], b: &[Value]) -> std::cmp::Ordering {
    let mut pairs = a.iter().zip(b).map(|(a, b)| order(a, b));
    let first = pairs.find(|order| order.is_ne());
    first.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn by_keys(name: &str, keyed: Keyed) -> Value {
    let mut groups: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
    if matches!(name, "group_by" | "unique_by") {
        for (key, item) in keyed {
            match groups.last_mut() {
                Some((last, items)) if order_of_keys(last, &key).is_eq() => items.push(item),
                Some(_) | None => groups.push((key, vec![item])),
            }
        }
        let mut groups = groups.into_iter().map(|(_, items)| items);
        return if name == "group_by" {
            groups.map(Value::Array).collect::<Vec<_>>().into()
        } else {
            let firsts = groups.by_ref().filter_map(|items| items.into_iter().next());
            firsts.collect::<Vec<_>>().into()
        };
    }
    let mut items = keyed.into_iter().map(|(_, item)| item);
    match name {
        "min_by" => items.next().unwrap_or_default(),
        "max_by" => items.next_back().unwrap_or_default(),
        _ => items.collect::<Vec<_>>().into(),
    }
}

/// Returns the items of a list, or the values of an object.
fn children(value: &Value) -> Result<Vec<&Value>, Halt> {
    match value {
        Value::Array(items) => Ok(items.iter().collect()),
        Value::Object(fields) => Ok(fields.values().collect()),
        other => raised(format!("{} has no items", kind(other))),
    }
}

/// Returns the value of a function of its input; none where it gives nothing.
fn plain(name: &str, input: &Value) -> Result<Option<Value>, Halt> {
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
        "to_entries" => Value::Array(to_entries(input)?),
        "from_entries" => from_entries(input)?,
        "tojson" => input.to_string().into(),
        "tostring" => text_of(input).into(),
        "fromjson" => from_json(text(input)?)?,
        "tonumber" => match input {
            Value::String(digits) => super::values::number_from(digits.trim())?,
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
        "@text" | "@json" | "@csv" | "@tsv" => formatted(Some(name), input)?.into(),
        _ => return of_list(name, input).map(Some),
    }))
}

/// Returns the value of a function of a list.
fn of_list(name: &str, input: &Value) -> Result<Value, Halt> {
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
    let sorted = || {
        let mut sorted: Vec<Value> = children.iter().map(|item| (*item).clone()).collect();
        sorted.sort_by(order);
        sorted
    };
    Ok(match name {
        "add" => added(&children)?,
        "any" => children.iter().any(|item| is_true(item)).into(),
        "all" => children.iter().all(|item| is_true(item)).into(),
        "sort" => sorted().into(),
        "unique" => {
            let mut unique = sorted();
            unique.dedup_by(|a, b| order(a, b).is_eq());
            unique.into()
        }
        "min" => sorted().into_iter().next().unwrap_or_default(),
        "max" => sorted().pop().unwrap_or_default(),
        "first" => children
            .first()
            .map(|item| (*item).clone())
            .unwrap_or_default(),
        "last" => children
            .last()
            .map(|item| (*item).clone())
            .unwrap_or_default(),
        "reverse" => {
            let reversed = children.iter().rev().map(|item| (*item).clone());
            reversed.collect::<Vec<_>>().into()
        }
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

/// Returns the sum of some values, in time that grows with their size only.
fn added(items: &[&Value]) -> Result<Value, Halt> {
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
        sum = super::values::arithmetic(jaq_core::ops::Math::Add, &sum, item)?;
    }
    Ok(sum)
}

/// Returns the value of a function of its input and one argument.
fn with_one(name: &str, input: &Value, given: &Value) -> Result<Value, Halt> {
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
            comparable(weight(input) / 64, weight(given) / 64)?;
            if name == "contains" {
                contains(input, given).into()
            } else {
                contains(given, input).into()
            }
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
        "split" => split(text(input)?, text(given)?),
        "join" => {
            let texts: Vec<String> = children(input)?
                .into_iter()
                .map(|item| match item {
                    Value::Null => String::new(),
                    other => text_of(other),
                })
                .collect();
            let by = text(given)?;
            let bytes: usize = texts.iter().map(|text| text.len() + by.len()).sum();
            if bytes > crate::meter::TEXT_BYTES_MAX {
                return raised("join would make too long a text");
            }
            texts.join(by).into()
        }
        "getpath" => {
            let mut value = input.clone();
            for key in children(given)? {
                value = indexed(&value, key)?;
            }
            value
        }
        "error" => return raised(text_of(given)),
        _ => return unknown(name, 1),
    })
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

fn from_json(text: &str) -> Result<Value, Halt> {
    domain::json::parse(text).map_err(|refused| Halt::Raised(refused.to_string()))
}

fn to_entries(input: &Value) -> Result<Vec<Value>, Halt> {
    let Value::Object(fields) = input else {
        return raised(format!("{} is no object", kind(input)));
    };
    let entries = fields
        .iter()
        .map(|field| json!({ "key": field.0, "value": field.1 }));
    Ok(entries.collect())
}

fn from_entries(input: &Value) -> Result<Value, Halt> {
    let mut object = Map::new();
    for entry in children(input)? {
        let key = ["key", "k", "name"]
            .iter()
            .find_map(|key| entry.get(key).filter(|key| !key.is_null()));
        let value = ["value", "v"].iter().find_map(|key| entry.get(key));
        let Some(key) = key else {
            return raised("an entry has no key");
        };
        object.insert(text_of(key), value.cloned().unwrap_or_default());
    }
    Ok(Value::Object(object))
}
