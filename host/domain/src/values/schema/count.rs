//! Counting the comparisons of a document with its schema, up to a limit.

use super::graph::{References, inspections, same};
use super::pattern::states;
use super::sizes::{members, names, size};
use super::{COMPARISONS_MAX, TooCostly};
use serde_json::{Map, Value};
use std::collections::HashMap;

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
/// whichever is taken. The schema has passed [`super::check`]. The stack that the traversal needs
/// is the document's depth times [`super::CHAIN_MAX`].
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
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
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
        Value::Array(_) | Value::Object(_) => false,
    }
}
