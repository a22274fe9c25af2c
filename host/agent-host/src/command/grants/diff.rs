//! The differences between two sets of grants: entries of lists as wholes, single values with their
//! former ones.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(crate) enum Change {
    /// An entry that was added.
    Added { key: String, value: String },
    /// An entry that was removed.
    Removed { key: String, value: String },
    /// A value that was changed.
    Changed {
        key: String,
        before: String,
        after: String,
    },
}

impl Change {
    fn added(key: &str, value: &Value) -> Self {
        Self::Added {
            key: key.to_owned(),
            value: value.to_string(),
        }
    }

    fn removed(key: &str, value: &Value) -> Self {
        Self::Removed {
            key: key.to_owned(),
            value: value.to_string(),
        }
    }

    /// Returns the line for people.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Added { key, value } => format!("+ {key} = {value}"),
            Self::Removed { key, value } => format!("- {key} = {value}"),
            Self::Changed { key, before, after } => format!("~ {key}: {before} -> {after}"),
        }
    }
}

/// Returns all differences, by key. The order of a list does not matter.
pub(crate) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", Some(before), Some(after), &mut changes);
    changes
}

fn compare(key: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let key = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                compare(&key, before.get(name), after.get(name), changes);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            let removed = before.iter().filter(|entry| !after.contains(entry));
            changes.extend(removed.map(|entry| Change::removed(key, entry)));
            let added = after.iter().filter(|entry| !before.contains(entry));
            changes.extend(added.map(|entry| Change::added(key, entry)));
        }
        (Some(before), Some(after)) if before == after => {}
        (Some(before), Some(after)) => {
            changes.push(Change::Changed {
                key: key.to_owned(),
                before: before.to_string(),
                after: after.to_string(),
            });
        }
        (Some(before), None) => changes.push(Change::removed(key, before)),
        (None, Some(after)) => changes.push(Change::added(key, after)),
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, changes};
    use serde_json::json;

    #[test]
    fn what_was_added_removed_and_changed_is_told_by_its_key() {
        let files = |first: &str, second: &str, ms: u64| json!({ "directories": [{ "at": first }, { "at": second }], "limits": { "cpuMsMax": ms } });
        let before = json!({ "components": { "files": files("/a", "/b", 1), "old": {} } });
        let after = json!({ "components": { "files": files("/b", "/c", 2), "web": {} } });
        let reported: Vec<String> = changes(&before, &after).iter().map(Change::line).collect();
        assert_eq!(
            reported,
            [
                "- components.files.directories = {\"at\":\"/a\"}",
                "+ components.files.directories = {\"at\":\"/c\"}",
                "~ components.files.limits.cpuMsMax: 1 -> 2",
                "- components.old = {}",
                "+ components.web = {}",
            ]
        );
        assert!(changes(&before, &before).is_empty());
    }
}
