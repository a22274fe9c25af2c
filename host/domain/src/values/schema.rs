//! JSON Schemas from outside: limited before they are compiled, and before a document is checked.
//!
//! Two things are counted here, because four kilobytes of schema can require more work than there
//! is time for. [`check`] examines a schema when it enters: its size, its references, and the
//! number of schemas, literals and names for one place of a document. [`comparisons`] counts the
//! total comparisons of one schema with one document. Neither compares anything, and neither does
//! more work than the limits say. A match of a regular expression counts as many comparisons as
//! follow from its states and the length of the text. `uniqueItems` counts the pairs of items that
//! a hash may not distinguish.

mod graph;

use crate::values::json;
use graph::{Graph, References, inspections, same};
use jsonschema_regex::to_rust_regex;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;

/// Bytes of a schema.
pub const SCHEMA_BYTES_MAX: usize = 256 << 10;
/// Levels of lists and objects in a schema.
pub const SCHEMA_DEPTH_MAX: usize = json::DEPTH_MAX;
/// Values in a schema: objects, lists, texts, numbers.
pub const SCHEMA_NODES_MAX: usize = 20_000;
/// References in a schema.
pub const REFERENCES_MAX: usize = 1_000;
/// Length of a chain of schemas that apply to the same place of a document. Each is part of the one
/// before, or is referred to by it.
pub const CHAIN_MAX: usize = 64;
/// Schemas that one place of a document is compared with, plus their keywords, literals and listed
/// names. Each is counted as often as it is reached. For a schema that multiplies nothing, the
/// count is about its number of values.
pub const EXPANDED_MAX: u64 = 20_000;
/// Bytes of a regular expression.
pub const PATTERN_BYTES_MAX: usize = 32 << 10;
/// Regular expressions in a schema.
pub const PATTERNS_MAX: usize = 500;
/// Approximate states of all regular expressions in a schema: a few megabytes once compiled.
pub const PATTERN_STATES_MAX: u64 = 50_000;
/// Bytes of a reference.
pub const REFERENCE_BYTES_MAX: usize = 1 << 10;
/// Comparisons of one document with its schema.
pub const COMPARISONS_MAX: u64 = 1_000_000;

/// Letters shown of a name in the place of a fault.
const SHOWN_CHARS_MAX: usize = 40;
/// Steps shown of the path to a fault: the last ones.
const PLACE_STEPS_MAX: usize = 16;

/// A refused schema: the place of the fault, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Unfit {
    /// A JSON pointer into the schema; empty for the whole schema.
    pub place: String,
    /// The problem, and the limit.
    pub problem: Problem,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            write!(f, "{}", self.problem)
        } else {
            write!(f, "at {}: {}", self.place, self.problem)
        }
    }
}

/// The reason why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is neither an object nor a boolean.
    #[error("a JSON Schema is an object or a boolean")]
    Kind,
    /// It is too large.
    #[error("the schema has {0} bytes; {SCHEMA_BYTES_MAX} at most")]
    Bytes(usize),
    /// It is nested too deep.
    #[error("the schema is nested deeper than {SCHEMA_DEPTH_MAX} levels of lists and objects")]
    Depth,
    /// It has too many values.
    #[error("the schema has more than {SCHEMA_NODES_MAX} values")]
    Nodes,
    /// It has too many references.
    #[error("the schema has more than {REFERENCES_MAX} references")]
    References,
    /// A reference leads out of the schema, or to a place that depends on the document.
    #[error("only references within the schema can be followed, such as `#/$defs/name`")]
    Outside,
    /// A reference has no target.
    #[error("this refers to what is not there, or there twice")]
    Missing,
    /// A part of it is a separate schema document.
    #[error(
        "only the whole schema can have an identifier or another `$schema`, and not a part of it"
    )]
    Embedded,
    /// A schema that applies to the same place as itself.
    #[error("this schema applies itself to the same value, without end")]
    Endless,
    /// Too many schemas, one within or behind the other, apply to the same place.
    #[error(
        "more than {CHAIN_MAX} schemas, each within or behind the one before, apply to the \
             same value"
    )]
    Chain,
    /// Too many schemas, or too long lists in them, apply to the same place.
    #[error(
        "one value would be compared with more than {EXPANDED_MAX} schemas, keywords, literals \
             and names"
    )]
    Expanded,
    /// It has too many regular expressions.
    #[error("the schema has more than {PATTERNS_MAX} regular expressions")]
    Patterns,
    /// A regular expression is too long.
    #[error("the regular expression has {0} bytes; {PATTERN_BYTES_MAX} at most")]
    Pattern(usize),
    /// Its regular expressions have too many states.
    #[error(
        "the regular expressions up to this one come to {0} states; {PATTERN_STATES_MAX} at \
             most in a schema: repeat less, as in `{{1,100}}`"
    )]
    PatternStates(u64),
    /// A reference is too long.
    #[error("the reference has {0} bytes; {REFERENCE_BYTES_MAX} at most")]
    Reference(usize),
}

/// A document with too many comparisons against its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("comparing it with its schema takes more than {COMPARISONS_MAX} comparisons")]
pub struct TooCostly;

/// Checks that a schema can be compiled and applied in bounded time and memory.
///
/// References have to stay within the schema and have a target. No schema may apply itself to the
/// same value again: a recursive schema recurs through parts of the value (`properties`, `items`).
///
/// # Errors
/// The first exceeded limit, with its place.
pub fn check(schema: &Value) -> Result<(), Unfit> {
    let whole = |problem| Unfit {
        place: String::new(),
        problem,
    };
    if !schema.is_object() && !schema.is_boolean() {
        return Err(whole(Problem::Kind));
    }
    if let Some(problem) = oversize(schema) {
        return Err(whole(problem));
    }
    Graph::read(schema)?.check()
}

/// Estimates the states of all regular expressions in a schema that passed [`check`].
#[must_use]
pub fn pattern_states(schema: &Value) -> u64 {
    graph::patterns(schema)
        .map(states)
        .fold(0, u64::saturating_add)
}

/// Returns the first exceeded limit of size.
fn oversize(schema: &Value) -> Option<Problem> {
    let mut nodes = 0_usize;
    let mut rest = vec![(schema, 1_usize)];
    while let Some((value, depth)) = rest.pop() {
        nodes += 1;
        if nodes > SCHEMA_NODES_MAX {
            return Some(Problem::Nodes);
        }
        let children: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => continue,
        };
        if depth > SCHEMA_DEPTH_MAX {
            return Some(Problem::Depth);
        }
        rest.extend(children.into_iter().map(|child| (child, depth + 1)));
    }
    let bytes = schema.to_string().len();
    (bytes > SCHEMA_BYTES_MAX).then_some(Problem::Bytes(bytes))
}

// The cost of regular expressions, in states.
//
// A pattern of twenty letters such as `[ab]*a[ab]{8000}c` has thousands of states, and each letter
// of a text may lead through all of them. So the memory of a compiled pattern and the time of a
// match are bounded by its states, and not by its length.

/// States of a range of letters outside ASCII, on average: ranges share the states of their
/// encodings' first bytes.
const WIDE_RANGE_STATES: u64 = 2;

/// Estimates the states of a pattern in JSON Schema's syntax. An invalid pattern has none:
/// compiling it fails.
fn states(pattern: &str) -> u64 {
    let Ok(pattern) = to_rust_regex(pattern) else {
        return 0;
    };
    regex_syntax::parse(&pattern).map_or(0, |parsed| expanded(&parsed))
}

/// Counts the states with every repetition written out. The parser limits the depth.
fn expanded(part: &Hir) -> u64 {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .map(|range| {
                if range.end().is_ascii() {
                    1
                } else {
                    WIDE_RANGE_STATES
                }
            })
            .sum(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Repetition(repeated) => {
            let times = repeated
                .max
                .unwrap_or_else(|| repeated.min.saturating_add(1))
                .max(1);
            expanded(&repeated.sub)
                .saturating_add(1)
                .saturating_mul(u64::from(times))
        }
        HirKind::Capture(group) => expanded(&group.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(expanded).fold(1, u64::saturating_add)
        }
    }
}

// The sizes of values, and of a schema's own comparisons and lookups.

/// Bytes of a text or a name that take as long to compare as one value.
const BYTES_PER_VALUE: usize = 100;

/// Returns a value and all values within it.
fn all(root: &Value) -> impl Iterator<Item = &Value> {
    let mut rest = vec![root];
    std::iter::from_fn(move || {
        let value = rest.pop()?;
        match value {
            Value::Array(items) => rest.extend(items),
            Value::Object(fields) => rest.extend(fields.values()),
            _ => {}
        }
        Some(value)
    })
}

/// Counts the values within a value; long texts and names count by their bytes.
fn size(root: &Value) -> u64 {
    all(root).map(members).fold(0, u64::saturating_add)
}

/// Counts the parts of a value itself: its items, its names (also by their bytes), or its text.
fn members(value: &Value) -> u64 {
    let count = match value {
        Value::String(text) => text.len() / BYTES_PER_VALUE,
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields
            .keys()
            .map(|name| 1 + name.len() / BYTES_PER_VALUE)
            .sum(),
        _ => 0,
    };
    count as u64
}

/// Counts the names in a list, or in an object by name and in the lists of its fields. Schemas
/// under the names are not traversed.
fn names(value: &Value) -> u64 {
    let Value::Object(fields) = value else {
        return size(value);
    };
    let lists = fields.values().filter(|value| value.is_array());
    lists.map(size).fold(members(value), u64::saturating_add)
}

/// Counts the parts of a schema itself: its keywords, and the literals and names that they list.
fn own(schema: &Map<String, Value>) -> u64 {
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

// Counting the comparisons of a document with its schema, up to a limit.

/// Keywords with literals for comparison.
const LITERALS: [&str; 2] = ["enum", "const"];
/// Keywords with names that are looked up in an object.
const NAMES: [&str; 3] = ["required", "dependentRequired", "dependencies"];
/// Keywords that count the letters of a text.
const LENGTHS: [&str; 2] = ["minLength", "maxLength"];
/// Keywords that decode or parse a text.
const CONTENTS: [&str; 2] = ["contentEncoding", "contentMediaType"];
/// Steps of a regular expression, of one state for one byte each, that count as one comparison.
const STEPS_PER_COMPARISON: u64 = 100;
/// Steps of decoding or parsing one byte.
const CONTENT_STEPS: u64 = 10;
/// Names of an object that are found, or not, in the time of one comparison.
const LOOKUPS_PER_COMPARISON: u64 = 10;
/// Values of two equal items that are compared in the time of one comparison.
const EQUALS_PER_COMPARISON: u64 = 10;
/// Numbers up to this one have distinct hashes; larger ones share a hash if they are equal as
/// floating-point numbers.
const OWN_HASH_MAX: f64 = 9_007_199_254_740_992.0;

/// Counts the most comparisons of a schema with a part of a document. Every branch counts,
/// whichever is taken. The schema has passed [`self::check`]. The stack that the traversal needs
/// is the document's depth times [`self::CHAIN_MAX`].
///
/// # Errors
/// More than [`COMPARISONS_MAX`].
pub fn comparisons(schema: &Value, document: &Value) -> Result<u64, TooCostly> {
    let mut count = Count {
        references: References::new(schema),
        targets: HashMap::new(),
        states: HashMap::new(),
        left: COMPARISONS_MAX,
    };
    count.compare(schema, document)?;
    Ok(COMPARISONS_MAX - count.left)
}

struct Count<'a> {
    references: References<'a>,
    /// The target of each visited reference, by the address of the schema that contains it.
    targets: HashMap<*const Map<String, Value>, Option<&'a Value>>,
    /// The states of each visited pattern, by its address.
    states: HashMap<*const u8, u64>,
    left: u64,
}

impl<'a> Count<'a> {
    /// Counts the comparisons of a schema with a value. Returns the number of schemas that were
    /// applied to the value itself.
    fn compare(&mut self, schema: &'a Value, document: &Value) -> Result<u64, TooCostly> {
        self.take(1)?;
        let mut applied = 1_u64;
        let Value::Object(schema) = schema else {
            return Ok(applied);
        };
        self.take(listed(schema, &LITERALS, size))?;
        let references = &self.references;
        let target = *self
            .targets
            .entry(std::ptr::from_ref(schema))
            .or_insert_with(|| references.target(schema).ok().flatten());
        let inspections = inspections(schema);
        for within in same(schema).map(|(_, value)| value).chain(target) {
            for _ in 0..inspections {
                applied = applied.saturating_add(self.compare(within, document)?);
            }
        }
        if inspections > 1 && !document.is_string() {
            // Each of those schemas checks every part for whether it was evaluated.
            self.take(applied.saturating_mul(members(document)))?;
        }
        match document {
            Value::Object(fields) => self.fields(schema, fields)?,
            Value::Array(items) => self.items(schema, items)?,
            Value::String(text) => self.text(schema, text)?,
            _ => {}
        }
        Ok(applied)
    }

    fn take(&mut self, comparisons: u64) -> Result<(), TooCostly> {
        self.left = self.left.checked_sub(comparisons).ok_or(TooCostly)?;
        Ok(())
    }

    /// Counts a match of a pattern: each byte of the text may lead through all of its states.
    fn matching(&mut self, pattern: &'a str, text: &str) -> Result<(), TooCostly> {
        let states = *self
            .states
            .entry(pattern.as_ptr())
            .or_insert_with(|| states(pattern));
        self.take(states.saturating_mul(text.len() as u64) / STEPS_PER_COMPARISON)
    }

    fn text(&mut self, schema: &'a Map<String, Value>, text: &str) -> Result<(), TooCostly> {
        let has =
            |keywords: [&str; 2]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
        let steps = u64::from(has(LENGTHS)) + CONTENT_STEPS * u64::from(has(CONTENTS));
        self.take(steps.saturating_mul(text.len() as u64) / STEPS_PER_COMPARISON)?;
        match schema.get("pattern").and_then(Value::as_str) {
            Some(pattern) => self.matching(pattern, text),
            None => Ok(()),
        }
    }

    /// A field may fit every pattern.
    fn fields(
        &mut self,
        schema: &'a Map<String, Value>,
        fields: &Map<String, Value>,
    ) -> Result<(), TooCostly> {
        self.take(listed(schema, &NAMES, names))?;
        if let Some(own) = schema.get("properties")
            && let Value::Object(schemas) = own
        {
            // Each side is looked up in the other.
            let lookups = members(own).saturating_add(fields.len() as u64);
            self.take(lookups / LOOKUPS_PER_COMPARISON)?;
            for (name, within) in schemas {
                if let Some(value) = fields.get(name) {
                    self.compare(within, value)?;
                }
            }
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for (pattern, within) in patterns.into_iter().flatten() {
            for (name, value) in fields {
                self.matching(pattern, name)?;
                self.compare(within, value)?;
            }
        }
        for within in named(schema, &["additionalProperties", "unevaluatedProperties"]) {
            for value in fields.values() {
                self.compare(within, value)?;
            }
        }
        for within in named(schema, &["propertyNames"]) {
            for name in fields.keys() {
                self.take(name.len() as u64 / STEPS_PER_COMPARISON)?;
                self.compare(within, &Value::String(name.clone()))?;
            }
        }
        Ok(())
    }

    fn items(&mut self, schema: &'a Map<String, Value>, items: &[Value]) -> Result<(), TooCostly> {
        for keyword in ["prefixItems", "items"] {
            let by_place = schema.get(keyword).and_then(Value::as_array);
            for (within, value) in by_place.into_iter().flatten().zip(items) {
                self.compare(within, value)?;
            }
        }
        for within in named(
            schema,
            &["items", "additionalItems", "unevaluatedItems", "contains"],
        ) {
            for value in items {
                self.compare(within, value)?;
            }
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.unique(items)?;
        }
        Ok(())
    }

    /// Counts the search for two equal items. All are hashed; each item that may share its hash is
    /// compared with all of them, to their last values.
    fn unique(&mut self, items: &[Value]) -> Result<(), TooCostly> {
        let sized = |item: &Value| size(item).saturating_add(1);
        let hashed = items.iter().map(sized).fold(0, u64::saturating_add);
        self.take(hashed / EQUALS_PER_COMPARISON)?;
        let alike = || items.iter().filter(|item| !has_own_hash(item));
        let pairs = alike().map(sized).fold(0, u64::saturating_add);
        self.take(pairs.saturating_mul(alike().count() as u64) / EQUALS_PER_COMPARISON)
    }
}

/// The schemas of these keywords, of which each applies to every part.
fn named<'a>(
    schema: &'a Map<String, Value>,
    keywords: &'static [&'static str],
) -> impl Iterator<Item = &'a Value> {
    keywords
        .iter()
        .filter_map(move |keyword| schema.get(*keyword))
        .filter(|value| value.is_object() || value.is_boolean())
}

/// The sum of these keywords' entries.
fn listed(schema: &Map<String, Value>, keywords: &[&str], count: fn(&Value) -> u64) -> u64 {
    let lists = keywords.iter().filter_map(|keyword| schema.get(*keyword));
    lists.map(count).fold(0, u64::saturating_add)
}

/// Returns whether only an equal value has the same hash. Lists and objects can be made to share a
/// hash, which does not include their nesting.
fn has_own_hash(item: &Value) -> bool {
    match item {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number
            .as_f64()
            .is_some_and(|number| number.abs() <= OWN_HASH_MAX),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
