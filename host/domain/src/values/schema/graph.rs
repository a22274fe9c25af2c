//! The subschemas of a schema, and which of them apply to the same value.

use super::{
    CHAIN_MAX, EXPANDED_MAX, PATTERN_BYTES_MAX, PATTERN_STATES_MAX, PATTERNS_MAX, PLACE_STEPS_MAX,
    Problem, REFERENCE_BYTES_MAX, REFERENCES_MAX, SHOWN_CHARS_MAX, Unfit, all, own, states,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Keywords with one schema that applies to the same value.
const SAME_ONE: &[&str] = &["not", "if", "then", "else"];
/// Keywords with a list of schemas that apply to the same value.
const SAME_LIST: &[&str] = &["allOf", "anyOf", "oneOf"];
/// Keywords with schemas by name that apply to the same value.
const SAME_NAMED: &[&str] = &["dependentSchemas", "dependencies"];
/// Keywords with one schema, or a list of them, that apply to parts of the value.
const PART: &[&str] = &[
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
];
/// Keywords with schemas by name that apply to parts of the value, or wherever they are referred
/// to.
const PART_NAMED: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
/// Keywords that read the same value again, with everything that applies to it.
const POLLS_AGAIN: &[&str] = &["unevaluatedProperties", "unevaluatedItems"];
/// The most times that these keywords read a value.
const POLLS_MAX: u64 = 3;

/// Returns the schemas that apply to the same value as this one because they are part of it.
/// Referenced schemas are not among them.
pub(super) fn same<'a>(
    schema: &'a Map<String, Value>,
) -> impl Iterator<Item = (Step<'a>, &'a Value)> {
    schemas_by(schema, SAME_ONE, SAME_LIST, SAME_NAMED)
}

/// The number of times that a schema reads the same value.
pub(super) fn inspections(schema: &Map<String, Value>) -> u64 {
    if POLLS_AGAIN
        .iter()
        .any(|keyword| schema.contains_key(*keyword))
    {
        POLLS_MAX
    } else {
        1
    }
}

/// The subschemas that apply to parts of the value, or only through references.
fn parts<'a>(schema: &'a Map<String, Value>) -> impl Iterator<Item = (Step<'a>, &'a Value)> {
    schemas_by(schema, PART, PART, PART_NAMED)
}

/// The schemas under keywords with one schema, with a list, and with named ones.
fn schemas_by<'a>(
    schema: &'a Map<String, Value>,
    one: &'static [&'static str],
    list: &'static [&'static str],
    by_name: &'static [&'static str],
) -> impl Iterator<Item = (Step<'a>, &'a Value)> {
    let one = one
        .iter()
        .filter_map(move |keyword| Some((Step::Keyword(keyword), schema.get(*keyword)?)));
    let list = list.iter().flat_map(move |keyword| listed(keyword, schema));
    let by_name = by_name
        .iter()
        .flat_map(move |keyword| named(keyword, schema));
    one.chain(list)
        .chain(by_name)
        .filter(|(_, value)| is_schema(value))
}

fn listed<'a>(
    keyword: &'static str,
    schema: &'a Map<String, Value>,
) -> impl Iterator<Item = (Step<'a>, &'a Value)> {
    let items = schema
        .get(keyword)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    items
        .enumerate()
        .map(move |(index, value)| (Step::Item(keyword, index), value))
}

fn named<'a>(
    keyword: &'static str,
    schema: &'a Map<String, Value>,
) -> impl Iterator<Item = (Step<'a>, &'a Value)> {
    let fields = schema
        .get(keyword)
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    fields.map(move |(name, value)| (Step::Named(keyword, name), value))
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// A step from a schema to one within it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    /// It is the whole.
    Root,
    /// By a keyword with one schema.
    Keyword(&'a str),
    /// By a keyword with a list of schemas.
    Item(&'a str, usize),
    /// By a keyword with named schemas.
    Named(&'a str, &'a str),
    /// By a reference.
    Referred,
}

/// A subschema, and the path to it.
struct FoundSchema<'a> {
    value: &'a Value,
    parent: usize,
    step: Step<'a>,
}

/// All subschemas of a schema, each once.
pub(super) struct Graph<'a> {
    references: References<'a>,
    found: Vec<FoundSchema<'a>>,
}

impl<'a> Graph<'a> {
    /// Finds every subschema, from the root on, through parts and references.
    pub(super) fn read(root: &'a Value) -> Result<Self, Unfit> {
        let references = References::new(root);
        let old_ids = declares_old_ids(root);
        let mut graph = Self {
            references,
            found: vec![FoundSchema {
                value: root,
                parent: 0,
                step: Step::Root,
            }],
        };
        let mut seen = HashSet::from([address(root)]);
        let mut patterns = Patterns::default();
        let mut referring = 0;
        let mut next = 0;
        while let Some(&FoundSchema { value, step, .. }) = graph.found.get(next) {
            let at = next;
            next += 1;
            let Value::Object(schema) = value else {
                continue;
            };
            let embedded =
                !matches!(step, Step::Root) && graph.references.is_embedded(schema, old_ids);
            let checked = if embedded {
                Err(Problem::Embedded)
            } else {
                patterns.add(schema)
            };
            let target = checked
                .and_then(|()| graph.references.target(schema))
                .map_err(|problem| graph.unfit(at, problem))?;
            referring += usize::from(target.is_some());
            if referring > REFERENCES_MAX {
                return Err(graph.unfit(at, Problem::References));
            }
            for (step, value) in same(schema)
                .chain(parts(schema))
                .chain(target.map(|target| (Step::Referred, target)))
            {
                if seen.insert(address(value)) {
                    graph.found.push(FoundSchema {
                        value,
                        parent: at,
                        step,
                    });
                }
            }
        }
        Ok(graph)
    }

    /// Checks how many schemas apply to one value, from every starting schema.
    pub(super) fn check(&self) -> Result<(), Unfit> {
        let mut known = HashMap::new();
        for (at, found) in self.found.iter().enumerate() {
            self.expand(found.value, 1, &mut known)
                .map_err(|problem| self.unfit(at, problem))?;
        }
        Ok(())
    }

    /// Counts the schemas that apply to a value with this one, each with its own keywords, literals
    /// and names. It also counts the longest chain of schemas within or behind each other, up to
    /// [`CHAIN_MAX`].
    fn expand(
        &self,
        value: &'a Value,
        depth: usize,
        known: &mut HashMap<usize, Option<Expanded>>,
    ) -> Result<Expanded, Problem> {
        match known.get(&address(value)) {
            Some(Some(expanded)) if depth + expanded.chain > CHAIN_MAX + 1 => {
                return Err(Problem::Chain);
            }
            Some(Some(expanded)) => return Ok(*expanded),
            Some(None) => return Err(Problem::Endless),
            None => {}
        }
        if depth > CHAIN_MAX {
            return Err(Problem::Chain);
        }
        let mut expanded = Expanded { parts: 1, chain: 1 };
        if let Value::Object(schema) = value {
            expanded.parts = expanded.parts.saturating_add(own(schema));
            known.insert(address(value), None);
            let target = self.references.target(schema)?;
            for within in same(schema).map(|(_, value)| value).chain(target) {
                let within = self.expand(within, depth + 1, known)?;
                expanded.parts = expanded
                    .parts
                    .saturating_add(within.parts.saturating_mul(inspections(schema)));
                expanded.chain = expanded.chain.max(within.chain + 1);
            }
        }
        if expanded.parts > EXPANDED_MAX {
            return Err(Problem::Expanded);
        }
        known.insert(address(value), Some(expanded));
        Ok(expanded)
    }

    /// The fault of a schema, with the path to it.
    fn unfit(&self, at: usize, problem: Problem) -> Unfit {
        let mut steps = Vec::new();
        let mut at = at;
        while let Some(found) = self.found.get(at) {
            match found.step {
                Step::Root => break,
                Step::Keyword(keyword) => steps.push(keyword.to_owned()),
                Step::Item(keyword, index) => steps.push(format!("{keyword}/{index}")),
                Step::Named(keyword, name) => steps.push(format!("{keyword}/{}", shown(name))),
                Step::Referred => steps.push("$ref".to_owned()),
            }
            at = found.parent;
        }
        // A path of a thousand references says no more than its end.
        let place = steps
            .iter()
            .take(PLACE_STEPS_MAX)
            .rev()
            .fold(String::new(), |place, step| place + "/" + step);
        Unfit {
            place: if steps.len() > PLACE_STEPS_MAX {
                format!("…{place}")
            } else {
                place
            },
            problem,
        }
    }
}

/// The counts of the schemas that apply to one value.
#[derive(Debug, Clone, Copy)]
struct Expanded {
    /// The schemas, with the keywords, literals and names of each.
    parts: u64,
    chain: usize,
}

/// The references of a schema, to be resolved.
pub(super) struct References<'a> {
    root: &'a Value,
    /// None for a name that two schemas share.
    anchors: HashMap<&'a str, Option<&'a Value>>,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let mut anchors = HashMap::new();
        for value in all(root) {
            for name in ["$anchor", "$dynamicAnchor"]
                .iter()
                .filter_map(|keyword| value.get(keyword)?.as_str())
            {
                anchors
                    .entry(name)
                    .and_modify(|there| *there = None)
                    .or_insert(Some(value));
            }
        }
        Self { root, anchors }
    }

    /// Returns the schema that a schema refers to, if any.
    pub(super) fn target(&self, schema: &Map<String, Value>) -> Result<Option<&'a Value>, Problem> {
        if ["$dynamicRef", "$recursiveRef"]
            .iter()
            .any(|keyword| schema.get(*keyword).is_some_and(Value::is_string))
        {
            return Err(Problem::Outside);
        }
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return Ok(None);
        };
        if reference.len() > REFERENCE_BYTES_MAX {
            return Err(Problem::Reference(reference.len()));
        }
        let fragment = reference.strip_prefix('#').ok_or(Problem::Outside)?;
        let fragment = decoded(fragment).ok_or(Problem::Missing)?;
        if fragment.is_empty() {
            return Ok(Some(self.root));
        }
        if !fragment.starts_with('/') {
            return self
                .anchors
                .get(&*fragment)
                .copied()
                .flatten()
                .map(Some)
                .ok_or(Problem::Missing);
        }
        let mut target = self.root;
        for (above, step) in fragment.split('/').skip(1).enumerate() {
            // A subschema with its own id is a separate document: no path leads into it.
            if above > 0
                && target
                    .as_object()
                    .is_some_and(|schema| self.is_embedded(schema, true))
            {
                return Err(Problem::Embedded);
            }
            target = target
                .pointer(&format!("/{step}"))
                .ok_or(Problem::Missing)?;
        }
        if is_schema(target) {
            Ok(Some(target))
        } else {
            Err(Problem::Missing)
        }
    }

    /// Returns whether a part of the schema declares itself a separate document.
    fn is_embedded(&self, schema: &Map<String, Value>, old_ids: bool) -> bool {
        let says = |keyword: &str| schema.get(keyword).is_some_and(Value::is_string);
        let other = schema
            .get("$schema")
            .is_some_and(|dialect| self.root.get("$schema").is_some_and(|own| own != dialect));
        says("$id") || (old_ids && says("id")) || other
    }
}

/// Returns whether `id` may act as `$id` in some part of it.
fn declares_old_ids(root: &Value) -> bool {
    all(root).any(|value| {
        value
            .get("$schema")
            .and_then(Value::as_str)
            .is_some_and(|dialect| dialect.contains("draft-04"))
    })
}

/// The patterns found so far in a schema.
#[derive(Debug, Default)]
struct Patterns {
    count: usize,
    states: u64,
}

impl Patterns {
    fn add(&mut self, schema: &Map<String, Value>) -> Result<(), Problem> {
        for pattern in own_patterns(schema) {
            self.count += 1;
            if self.count > PATTERNS_MAX {
                return Err(Problem::Patterns);
            }
            if pattern.len() > PATTERN_BYTES_MAX {
                return Err(Problem::Pattern(pattern.len()));
            }
            self.states = self.states.saturating_add(states(pattern));
            if self.states > PATTERN_STATES_MAX {
                return Err(Problem::PatternStates(self.states));
            }
        }
        Ok(())
    }
}

/// The patterns of a schema itself, without those of its subschemas.
fn own_patterns(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let names = schema
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys);
    pattern.into_iter().chain(names.map(String::as_str))
}

/// The patterns of a schema and all its subschemas.
pub(super) fn patterns(root: &Value) -> impl Iterator<Item = &str> {
    all(root)
        .filter_map(Value::as_object)
        .flat_map(own_patterns)
}

/// A fragment with its percent escapes decoded; none if the result is not text.
fn decoded(fragment: &str) -> Option<Cow<'_, str>> {
    if !fragment.contains('%') {
        return Some(Cow::Borrowed(fragment));
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let high = digit(rest.next())?;
        let low = digit(rest.next())?;
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The beginning of a name, without characters that break a line or control a terminal.
fn shown(name: &str) -> String {
    name.chars()
        .take(SHOWN_CHARS_MAX)
        .flat_map(char::escape_default)
        .collect()
}

/// Returns the address of a value in memory. It is the same for the same part of a schema, by
/// whichever path it was reached.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
