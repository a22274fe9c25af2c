//! The functions that a filter may call by name, as far as they carry filters out themselves.

use crate::jq::plain::{children, from_entries, plain, to_entries, unknown, with_one};
use crate::jq::terms::{Filter, Scope, Values};
use crate::jq::values::{Halt, float, is_true, kind, merged, order, raised, weight};
use crate::meter::{Meter, VALUE_BYTES};
use crate::pattern::Searched;
use jaq_core::load::parse::Term;
use serde_json::{Map, Value};
use std::rc::Rc;

/// Patterns that are kept compiled.
const PATTERNS_MAX: usize = 8;
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
            ("error", []) => Err(Halt::Raised(text_of(self.meter, input)?)),
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
            ("sub" | "gsub", [pattern, by]) => self.replaced(name, pattern, by, scope),
            (_, [argument]) => {
                let mut all = Vec::new();
                for given in self.values(argument, scope)? {
                    self.meter.work(weight(input) + weight(&given))?;
                    let value = with_one(self.meter, name, input, &given)?;
                    all.push(self.made(value)?);
                }
                Ok(all)
            }
            (_, []) => {
                let is_cheap =
                    matches!(name, "length" | "type" | "not" | "null" | "true" | "false");
                if !is_cheap || input.is_string() {
                    // A sort reads each value some times.
                    self.meter.work(weight(input).saturating_mul(4))?;
                }
                match plain(self.meter, name, input)? {
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
            let entries = to_entries(self.meter, scope.input)?;
            let mut all = Vec::new();
            for entry in &entries {
                all.extend(self.values(each, scope.with(entry))?);
            }
            let object = from_entries(self.meter, &Value::Array(all))?;
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
                    self.meter.work(VALUE_BYTES + key.len())?;
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
        self.meter.work(count.saturating_mul(VALUE_BYTES))?;
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
            self.meter.work(VALUE_BYTES)?;
            keyed.push((keys, self.copy(item)?));
        }
        merged(self.meter, keyed, &|a, b| order_of_keys(&a.0, &b.0))
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
        let is_folded = flags.as_str().is_some_and(|flags| flags.contains('i'));
        let pattern = self.pattern(pattern, is_folded)?;
        Ok(vec![pattern.is_in(self.meter, text)?.into()])
    }

    /// Returns the input with a text in place of the first match of a pattern, or of each.
    fn replaced(
        &mut self,
        name: &str,
        pattern: &Term<&str>,
        by: &Term<&str>,
        scope: Scope<'_>,
    ) -> Values {
        let pattern = self.one(pattern, scope)?;
        let by = self.one(by, scope)?;
        let (Value::String(pattern), Value::String(by), Value::String(text)) =
            (&pattern, &by, scope.input)
        else {
            return raised(format!("{name} takes texts"));
        };
        let pattern = self.pattern(pattern, false)?;
        let mut made = String::new();
        let mut copied = 0;
        let mut from = 0;
        while let Some(found) = pattern.next_in(self.meter, text, from)? {
            let before = text.get(copied..found.start()).unwrap_or_default();
            self.meter.push_all(&mut made, &[before, by])?;
            copied = found.end();
            // After a match of nothing, the next one begins after the next character.
            let next = text.get(copied..).and_then(|rest| rest.chars().next());
            from = if found.is_empty() {
                copied + next.map_or(1, char::len_utf8)
            } else {
                copied
            };
            if name == "sub" {
                break;
            }
        }
        let rest = text.get(copied..).unwrap_or_default();
        self.meter.push(&mut made, rest)?;
        Ok(vec![self.made(Value::from(made))?])
    }

    /// Returns a compiled pattern. A filter that uses it again finds it compiled.
    fn pattern(&mut self, pattern: &str, is_folded: bool) -> Result<Rc<Searched>, Halt> {
        let key = (pattern.to_owned(), is_folded);
        if let Some(compiled) = self.patterns.get(&key) {
            return Ok(Rc::clone(compiled));
        }
        match Searched::compiled(self.meter, pattern, is_folded)? {
            Ok(compiled) => {
                let compiled = Rc::new(compiled);
                if self.patterns.len() >= PATTERNS_MAX {
                    self.patterns.clear();
                }
                self.patterns.insert(key, Rc::clone(&compiled));
                Ok(compiled)
            }
            Err(why) => raised(why),
        }
    }
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

/// Returns a value as a text, counted before it is made: a string by itself, all else as JSON.
pub(super) fn text_of(meter: &mut Meter, value: &Value) -> Result<String, Halt> {
    match value {
        Value::String(text) => {
            meter.longer(0, text.len())?;
            Ok(text.clone())
        }
        other => Ok(meter.json(other, true)?),
    }
}

/// Returns a value as a format writes it.
pub(super) fn formatted(
    meter: &mut Meter,
    format: Option<&str>,
    value: &Value,
) -> Result<String, Halt> {
    match format {
        None | Some("@text") => text_of(meter, value),
        Some("@json") => Ok(meter.json(value, true)?),
        Some("@csv") => joined(meter, value, ",", |text| {
            format!("\"{}\"", text.replace('"', "\"\""))
        }),
        Some("@tsv") => joined(meter, value, "\t", |text| {
            text.replace('\\', "\\\\")
                .replace('\t', "\\t")
                .replace('\n', "\\n")
                .replace('\r', "\\r")
        }),
        Some(other) => raised(format!("{other} is not read here")),
    }
}

fn joined(
    meter: &mut Meter,
    value: &Value,
    by: &str,
    quoted: impl Fn(&str) -> String,
) -> Result<String, Halt> {
    let Value::Array(items) = value else {
        return raised(format!("{} is no row", kind(value)));
    };
    let mut row = String::new();
    for (number, item) in items.iter().enumerate() {
        let cell = match item {
            Value::Null => String::new(),
            Value::String(text) => {
                // Each character is written as two at most.
                meter.work(text.len().saturating_mul(2))?;
                quoted(text)
            }
            Value::Bool(_) | Value::Number(_) => item.to_string(),
            Value::Array(_) | Value::Object(_) => {
                return raised(format!("{} is no cell of a row", kind(item)));
            }
        };
        let between = if number == 0 { "" } else { by };
        meter.push_all(&mut row, &[between, cell.as_str()])?;
    }
    Ok(row)
}
