//! Differences between two documents, identified by their keys and never by values.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most differences in a record.
pub const DIFFERENCES_MAX: usize = 256;
/// Levels of keys that are compared. A deeper difference is named by the key above it.
const DEPTH_MAX: usize = 8;
/// The value of a missing key.
static NOTHING: Value = Value::Null;
/// The fields that identify an entry of a list.
const IDS: [&str; 2] = ["agentId", "id"];

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The key was added.
    Added,
    /// The key was removed.
    Removed,
    /// The key has another value.
    Changed,
}

/// A key at which two documents differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The key, with dots between levels and the id of an entry of a list in brackets, such as
    /// `agents[assistant].toolDenylist`.
    pub key: String,
    /// The kind of the difference.
    pub change: Change,
}

/// Returns the differences between two documents, by their keys. Null counts as missing. A list
/// entry is identified by its `agentId` or `id` if all entries of its list have one.
#[must_use]
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut comparison = Comparison {
        depth: 0,
        found: Vec::new(),
    };
    comparison.compare("", before, after);
    comparison.found
}

/// The state of a comparison.
struct Comparison {
    depth: usize,
    found: Vec<Difference>,
}

impl Comparison {
    fn note(&mut self, key: &str, change: Change) {
        self.found.push(Difference {
            key: key.to_owned(),
            change,
        });
    }

    fn compare(&mut self, key: &str, before: &Value, after: &Value) {
        match (before, after) {
            _ if before == after => {}
            (Value::Null, _) => self.note(key, Change::Added),
            (_, Value::Null) => self.note(key, Change::Removed),
            _ => match (Entries::of(before), Entries::of(after)) {
                (Some(before), Some(after))
                    if before.is_list == after.is_list && self.depth < DEPTH_MAX =>
                {
                    self.depth += 1;
                    self.compare_entries(key, &before, &after);
                    self.depth -= 1;
                }
                _ => self.note(key, Change::Changed),
            },
        }
    }

    fn compare_entries(&mut self, key: &str, before: &Entries<'_>, after: &Entries<'_>) {
        let names: BTreeSet<&str> = before
            .by_name
            .keys()
            .chain(after.by_name.keys())
            .copied()
            .collect();
        for name in names {
            let inner = match (key, before.is_list) {
                (key, true) => format!("{key}[{name}]"),
                ("", false) => name.to_owned(),
                (key, false) => format!("{key}.{name}"),
            };
            self.compare(&inner, before.get(name), after.get(name));
        }
        let has_same_names = before.by_name.keys().eq(after.by_name.keys());
        if has_same_names && before.order != after.order {
            self.note(key, Change::Changed);
        }
    }
}

/// The entries of an object, or of a list whose entries all have ids.
struct Entries<'a> {
    by_name: BTreeMap<&'a str, &'a Value>,
    /// The ids of a list, in its order; empty for an object.
    order: Vec<&'a str>,
    is_list: bool,
}

impl<'a> Entries<'a> {
    /// Returns the entries; none for a value without entries.
    fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Object(fields) => Some(Self {
                by_name: fields
                    .iter()
                    .map(|(name, value)| (name.as_str(), value))
                    .collect(),
                order: Vec::new(),
                is_list: false,
            }),
            Value::Array(list) => {
                let known: Vec<(&str, &Value)> = list
                    .iter()
                    .filter_map(|entry| {
                        let id = IDS.iter().find_map(|id| entry.get(*id)?.as_str())?;
                        Some((id, entry))
                    })
                    .collect();
                let order = known.iter().map(|(id, _)| *id).collect();
                let by_name: BTreeMap<&str, &Value> = known.into_iter().collect();
                (by_name.len() == list.len()).then_some(Self {
                    by_name,
                    order,
                    is_list: true,
                })
            }
            _ => None,
        }
    }

    fn get(&self, name: &str) -> &'a Value {
        self.by_name.get(name).copied().unwrap_or(&NOTHING)
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, differences};
    use serde_json::{Value, json};

    fn reported(before: &Value, after: &Value) -> Vec<String> {
        differences(before, after)
            .into_iter()
            .map(|it| {
                let sign = match it.change {
                    Change::Added => '+',
                    Change::Removed => '-',
                    Change::Changed => '~',
                };
                format!("{sign}{}", it.key)
            })
            .collect()
    }

    #[test]
    fn each_difference_is_named_by_the_innermost_key_that_tells_it() {
        let agent = |id: &str, prompt: &str| json!({ "agentId": id, "systemPrompt": prompt });
        let table = [
            (json!({}), json!({}), vec![]),
            (
                json!({ "limits": { "a": 1, "b": 2 } }),
                json!({ "limits": { "a": 1, "b": 3 } }),
                vec!["~limits.b"],
            ),
            (
                json!({ "models": { "m": { "x": 1 } } }),
                json!({ "models": { "n": { "x": 1 } } }),
                vec!["-models.m", "+models.n"],
            ),
            (
                json!({ "agents": [agent("a", "one"), agent("b", "one")] }),
                json!({ "agents": [agent("b", "two"), agent("c", "one")] }),
                vec!["-agents[a]", "~agents[b].systemPrompt", "+agents[c]"],
            ),
            (
                json!({ "list": [1, 2] }),
                json!({ "list": [1] }),
                vec!["~list"],
            ),
            (json!({ "x": null }), json!({}), vec![]),
            (json!({ "x": null }), json!({ "x": [] }), vec!["+x"]),
            (json!({ "x": [] }), json!({ "x": null }), vec!["-x"]),
            (json!({ "x": 1 }), json!({ "x": { "y": 1 } }), vec!["~x"]),
            (
                json!({ "agents": [agent("a", "one"), agent("b", "one")] }),
                json!({ "agents": [agent("b", "one"), agent("a", "one")] }),
                vec!["~agents"],
            ),
            // Not every entry has an id of its own.
            (
                json!({ "x": [{ "id": "a" }, { "id": "a", "v": 1 }] }),
                json!({ "x": [{ "id": "a" }] }),
                vec!["~x"],
            ),
        ];
        for (before, after, expected) in table {
            assert_eq!(reported(&before, &after), expected, "{before} {after}");
        }
    }

    #[test]
    fn a_difference_has_no_value_however_deep_it_is() {
        let mut before = json!("old secret");
        let mut after = json!("new secret");
        for _ in 0..20 {
            before = json!({ "k": before });
            after = json!({ "k": after });
        }
        let found = differences(&before, &after);
        assert_eq!(found.len(), 1);
        assert!(!format!("{found:?}").contains("secret"), "{found:?}");
    }
}
