//! JSON Schemas from outside: limited before they are compiled, and before a document is checked.
//!
//! Two things are counted here, because four kilobytes of schema can require more work than there
//! is time for. [`check`] examines a schema when it enters: its size, its references, and the
//! number of schemas, literals and names for one place of a document. [`comparisons`] counts the
//! total comparisons of one schema with one document. Neither compares anything, and neither does
//! more work than the limits say. A match of a regular expression counts as many comparisons as
//! follow from its states and the length of the text. `uniqueItems` counts the pairs of items that
//! a hash may not distinguish.

mod count;
mod graph;
mod pattern;
mod sizes;
#[cfg(test)]
mod tests;

pub use count::comparisons;

use crate::values::json;
use graph::Graph;
use serde_json::Value;
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
    if let Some(problem) = size(schema) {
        return Err(whole(problem));
    }
    Graph::read(schema)?.check()
}

/// Estimates the states of all regular expressions in a schema that passed [`check`].
#[must_use]
pub fn pattern_states(schema: &Value) -> u64 {
    graph::patterns(schema)
        .map(pattern::states)
        .fold(0, u64::saturating_add)
}

/// Returns the first exceeded limit of size.
fn size(schema: &Value) -> Option<Problem> {
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
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        };
        if depth > SCHEMA_DEPTH_MAX {
            return Some(Problem::Depth);
        }
        rest.extend(children.into_iter().map(|child| (child, depth + 1)));
    }
    let bytes = schema.to_string().len();
    (bytes > SCHEMA_BYTES_MAX).then_some(Problem::Bytes(bytes))
}
