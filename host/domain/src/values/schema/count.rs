//! Counting the comparisons of a document with its schema, up to a limit.

use super::graph::{References, looks, same};
use super::pattern::states;
use super::{COMPARISONS_MAX, TooCostly};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Lists of which a comparison may go through every entry.
const LISTS: [&str; 3] = ["enum", "required", "dependentRequired"];
/// Steps of a regular expression, of one state for one byte each, that count as one comparison.
const STEPS_PER_COMPARISON: u64 = 100;

/// Counts the comparisons that a schema takes with a part of a document, at most. Every branch
/// counts, whichever is taken. The schema has passed [`super::check`]; going through the document
/// takes stack for its depth times [`super::CHAIN_MAX`].
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
    /// The target of each reference that was met, by the address of the schema that has it.
    targets: HashMap<*const Map<String, Value>, Option<&'a Value>>,
    /// The states of each pattern that was met, by its address.
    states: HashMap<*const u8, u64>,
    left: u64,
}

impl<'a> Count<'a> {
    fn compare(&mut self, schema: &'a Value, document: &Value) -> Result<(), TooCostly> {
        self.take(1)?;
        let Value::Object(schema) = schema else {
            return Ok(());
        };
        let listed = LISTS
            .iter()
            .filter_map(|keyword| schema.get(*keyword))
            .map(length)
            .sum::<usize>();
        self.take(listed as u64)?;
        let references = &self.references;
        let target = *self
            .targets
            .entry(std::ptr::from_ref(schema))
            .or_insert_with(|| references.target(schema).ok().flatten());
        for within in same(schema).map(|(_, value)| value).chain(target) {
            for _ in 0..looks(schema) {
                self.compare(within, document)?;
            }
        }
        match document {
            Value::Object(fields) => self.fields(schema, fields),
            Value::Array(items) => self.items(schema, items),
            Value::String(text) => match schema.get("pattern").and_then(Value::as_str) {
                Some(pattern) => self.matching(pattern, text),
                None => Ok(()),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
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

    /// A field may fit every pattern.
    fn fields(
        &mut self,
        schema: &'a Map<String, Value>,
        fields: &Map<String, Value>,
    ) -> Result<(), TooCostly> {
        let own = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for (name, value) in fields {
            let within = own
                .and_then(|own| own.get(name))
                .into_iter()
                .chain(patterns.into_iter().flat_map(Map::values));
            for schema in within.chain(named(
                schema,
                &["additionalProperties", "unevaluatedProperties"],
            )) {
                self.compare(schema, value)?;
            }
            for pattern in patterns.into_iter().flat_map(Map::keys) {
                self.matching(pattern, name)?;
            }
            for schema in named(schema, &["propertyNames"]) {
                self.compare(schema, &Value::String(name.clone()))?;
            }
        }
        Ok(())
    }

    fn items(&mut self, schema: &'a Map<String, Value>, items: &[Value]) -> Result<(), TooCostly> {
        for (index, value) in items.iter().enumerate() {
            let by_place = ["prefixItems", "items"]
                .iter()
                .filter_map(|keyword| schema.get(*keyword)?.as_array()?.get(index));
            for schema in by_place.chain(named(
                schema,
                &["items", "additionalItems", "unevaluatedItems", "contains"],
            )) {
                self.compare(schema, value)?;
            }
        }
        Ok(())
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

fn length(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
