//! Values under filters: order, arithmetic, parts, texts.

use crate::meter::{Meter, OBJECT_BYTES, Stop, VALUE_BYTES};
use jaq_core::ops::{Cmp, Math};
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;

/// Work that a comparison of two values is counted as: about that of eight bytes.
pub(super) const COMPARISON: usize = 8;
/// The greatest whole number that has no neighbour of the same value: 2⁵³.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The reason why a filter has no further values.
#[derive(Debug)]
pub(super) enum Halt {
    /// It raised an error, which `try` catches.
    Raised(String),
    /// The line does not go on.
    Stopped(Stop),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

/// Returns an error that `try` catches.
pub(super) fn raised<T>(why: impl Into<String>) -> Result<T, Halt> {
    Err(Halt::Raised(why.into()))
}

/// Returns the bytes that a value takes in memory, about.
pub(super) fn weight(value: &Value) -> usize {
    let within = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| VALUE_BYTES + key.len() + weight(value));
            OBJECT_BYTES + fields.sum::<usize>()
        }
    };
    VALUE_BYTES + within
}

pub(super) fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// Counts the comparison of each of so many values with all of another.
pub(super) fn each_with(meter: &mut Meter, count: usize, other: &Value) -> Result<(), Halt> {
    let bytes = weight(other) / COMPARISON;
    Ok(meter.work(count.saturating_add(1).saturating_mul(bytes))?)
}

/// Sorts values by merging, so that each comparison is counted and the sort can end early.
pub(super) fn merged<T>(
    meter: &mut Meter,
    mut items: Vec<T>,
    order: &impl Fn(&T, &T) -> Ordering,
) -> Result<Vec<T>, Halt> {
    if items.len() < 2 {
        return Ok(items);
    }
    let right = items.split_off(items.len() / 2);
    let mut left = merged(meter, items, order)?.into_iter().peekable();
    let mut right = merged(meter, right, order)?.into_iter().peekable();
    let mut all = Vec::new();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        meter.work(COMPARISON)?;
        let next = if order(a, b).is_gt() {
            right.next()
        } else {
            left.next()
        };
        all.extend(next);
    }
    all.extend(left);
    all.extend(right);
    Ok(all)
}

/// Returns the name of a value's type.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the number that a text of a filter is.
pub(super) fn number_from(text: &str) -> Result<Value, Halt> {
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(whole.into());
    }
    match text.parse::<f64>() {
        Ok(number) => Ok(number_of(number)),
        Err(_) => raised(format!("{text} is no number")),
    }
}

/// Returns a number as JSON has it: whole if it is, and null if it is none.
pub(super) fn number_of(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < WHOLE_MAX {
        // Whole and within the bound, so it is exact.
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

pub(super) fn float(value: &Value) -> Result<f64, Halt> {
    match value.as_f64() {
        Some(number) => Ok(number),
        None => raised(format!("{} is no number", kind(value))),
    }
}

/// Returns the order of two values: null, false, true, numbers, strings, arrays, objects.
pub(super) fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => {
                let a = a.as_f64().unwrap_or(f64::NAN);
                a.total_cmp(&b.as_f64().unwrap_or(f64::NAN))
            }
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| order(a, b));
            first_difference(pairs).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let keys_a = sorted_keys(a);
            let keys_b = sorted_keys(b);
            let by_keys = keys_a.cmp(&keys_b);
            let values = keys_a
                .iter()
                .filter_map(|key| Some(order(a.get(*key)?, b.get(*key)?)));
            by_keys.then_with(|| first_difference(values).unwrap_or(Ordering::Equal))
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Option<Ordering> {
    orders.find(|order| *order != Ordering::Equal)
}

fn sorted_keys(object: &Map<String, Value>) -> Vec<&str> {
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    }
}

pub(super) fn compared(cmp: Cmp, a: &Value, b: &Value) -> bool {
    let order = order(a, b);
    match cmp {
        Cmp::Lt => order.is_lt(),
        Cmp::Le => order.is_le(),
        Cmp::Gt => order.is_gt(),
        Cmp::Ge => order.is_ge(),
        Cmp::Eq => order.is_eq(),
        Cmp::Ne => order.is_ne(),
    }
}

/// Returns the sum, difference and so on of two values, counted before it is made.
pub(super) fn arithmetic(
    meter: &mut Meter,
    math: Math,
    a: &Value,
    b: &Value,
) -> Result<Value, Halt> {
    // What is made is no larger than both together, but for the parts of a text.
    meter.work(weight(a).saturating_add(weight(b)))?;
    match (math, a, b) {
        (Math::Add, Value::Null, other) | (Math::Add, other, Value::Null) => Ok(other.clone()),
        (Math::Add, Value::String(a), Value::String(b)) => Ok(format!("{a}{b}").into()),
        (Math::Add, Value::Array(a), Value::Array(b)) => {
            Ok(a.iter().chain(b).cloned().collect::<Vec<_>>().into())
        }
        (Math::Add, Value::Object(a), Value::Object(b)) => {
            let mut both = a.clone();
            both.extend(b.iter().map(|(key, value)| (key.clone(), value.clone())));
            Ok(Value::Object(both))
        }
        (Math::Sub, Value::Array(a), Value::Array(b)) => {
            for value in b {
                each_with(meter, a.len(), value)?;
            }
            let left = a.iter().filter(|it| !b.contains(it));
            Ok(left.cloned().collect::<Vec<_>>().into())
        }
        (Math::Div, Value::String(a), Value::String(b)) => split(meter, a, b),
        (math, Value::Number(a), Value::Number(b)) => numbers(math, a, b),
        (math, a, b) => raised(format!(
            "{} and {} cannot be joined by {}",
            kind(a),
            kind(b),
            math.as_str()
        )),
    }
}

fn numbers(math: Math, a: &Number, b: &Number) -> Result<Value, Halt> {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        let exact = match math {
            Math::Add => a.checked_add(b),
            Math::Sub => a.checked_sub(b),
            Math::Mul => a.checked_mul(b),
            Math::Div => a
                .checked_rem(b)
                .filter(|rest| *rest == 0)
                .and(a.checked_div(b)),
            Math::Rem => a.checked_rem(b),
        };
        if let Some(exact) = exact {
            return Ok(exact.into());
        }
    }
    let a = a.as_f64().unwrap_or(f64::NAN);
    let b = b.as_f64().unwrap_or(f64::NAN);
    if matches!(math, Math::Div | Math::Rem) && b == 0.0 {
        return raised("a number cannot be divided by 0");
    }
    Ok(number_of(match math {
        Math::Add => a + b,
        Math::Sub => a - b,
        Math::Mul => a * b,
        Math::Div => a / b,
        Math::Rem => a % b,
    }))
}

/// Returns the parts of a text between separators, counted before they are made.
pub(super) fn split(meter: &mut Meter, text: &str, by: &str) -> Result<Value, Halt> {
    if text.is_empty() {
        return Ok(Value::Array(Vec::new()));
    }
    meter.work(text.len())?;
    let parts = if by.is_empty() {
        text.chars().count()
    } else {
        text.matches(by).count() + 1
    };
    meter.work(text.len() + parts.saturating_mul(VALUE_BYTES))?;
    if by.is_empty() {
        let chars = text.chars().map(|char| Value::from(char.to_string()));
        return Ok(chars.collect::<Vec<_>>().into());
    }
    let parts = text.split(by).map(Value::from);
    Ok(parts.collect::<Vec<_>>().into())
}

/// Returns the place in a list that an index means: from the end if it is below 0.
fn place(index: f64, length: usize) -> Option<usize> {
    let index = index.floor();
    let from_start = if index < 0.0 {
        index + length as f64
    } else {
        index
    };
    (from_start >= 0.0 && from_start < length as f64).then_some(from_start as usize)
}

/// The value under an index where nothing is.
static NOTHING: Value = Value::Null;

/// Returns the item or field under an index; null without one.
pub(super) fn indexed<'v>(value: &'v Value, index: &Value) -> Result<&'v Value, Halt> {
    match (value, index) {
        (Value::Null, Value::String(_) | Value::Number(_) | Value::Null) => Ok(&NOTHING),
        (Value::Object(fields), Value::String(key)) => Ok(fields.get(key).unwrap_or(&NOTHING)),
        (Value::Array(items), Value::Number(_)) => {
            let place = place(float(index)?, items.len());
            let item = place.and_then(|place| items.get(place));
            Ok(item.unwrap_or(&NOTHING))
        }
        (value, index) => raised(format!(
            "{} cannot be indexed with {}",
            kind(value),
            kind(index)
        )),
    }
}

/// Returns the part of a list or text between two places, counted before it is made.
pub(super) fn sliced(
    meter: &mut Meter,
    value: &Value,
    from: &Value,
    until: &Value,
) -> Result<Value, Halt> {
    meter.work(VALUE_BYTES)?;
    let bounds = |length: usize| -> Result<(usize, usize), Halt> {
        let at = |bound: &Value, without: usize| -> Result<usize, Halt> {
            if bound.is_null() {
                return Ok(without);
            }
            let bound = float(bound)?;
            let from_start = if bound < 0.0 {
                bound + length as f64
            } else {
                bound
            };
            Ok(from_start.clamp(0.0, length as f64) as usize)
        };
        Ok((at(from, 0)?, at(until, length)?))
    };
    match value {
        Value::Null => Ok(Value::Null),
        Value::Array(items) => {
            let (from, until) = bounds(items.len())?;
            let part = items.get(from..until).unwrap_or_default();
            for item in part {
                meter.work(weight(item))?;
            }
            Ok(part.to_vec().into())
        }
        Value::String(text) => {
            meter.work(text.len().saturating_mul(2))?;
            let (from, until) = bounds(text.chars().count())?;
            let part = text.chars().skip(from).take(until.saturating_sub(from));
            Ok(part.collect::<String>().into())
        }
        other => raised(format!("{} has no parts", kind(other))),
    }
}
