//! The comparison of what a call did with what a file expects of it.

use super::buckets::BucketTexts;
use super::cases::{Ending, Expected};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Letters that are shown of a text that is not as expected.
const SHOWN_CHARS_MAX: usize = 120;

/// The visible result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisibleResult {
    pub(crate) ending: Ending,
    /// The text of the result, or of the error.
    pub(crate) text: String,
}

/// The files and buckets after a call.
#[derive(Debug)]
pub(crate) struct Left {
    /// The files that were asked for, as far as they are there.
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) buckets: BucketTexts,
}

impl Left {
    /// These buckets, before any file is read back.
    pub(crate) fn new(buckets: BucketTexts) -> Self {
        Self {
            files: BTreeMap::new(),
            buckets,
        }
    }
}

impl Expected {
    /// Returns everything that differs; nothing when the call did as expected.
    pub(crate) fn differences(&self, seen: &VisibleResult, left: &Left) -> Vec<String> {
        let shown = shown(&seen.text);
        if self.outcome != seen.ending {
            return vec![format!(
                "it ends as `{}` instead of `{}`: {shown}",
                seen.ending.as_str(),
                self.outcome.as_str()
            )];
        }
        let mut differences = Vec::new();
        if let Some(text) = self.text.as_ref().filter(|text| **text != seen.text) {
            differences.push(format!("it says {shown} instead of {text:?}"));
        }
        let missing = self
            .contains
            .iter()
            .filter(|part| !seen.text.contains(*part));
        differences.extend(missing.map(|part| format!("{part:?} is not in {shown}")));
        if let Some(expected) = &self.json {
            let difference = match serde_json::from_str::<Value>(&seen.text) {
                Ok(found) => difference("", expected, &found),
                Err(_) => Some(format!("{shown} is not JSON")),
            };
            differences.extend(difference);
        }
        for (path, text) in &self.files {
            match left.files.get(path) {
                None => differences.push(format!("there is no file `{path}` afterwards")),
                Some(found) if found != text => differences.push(format!(
                    "the file `{path}` holds {} instead of {text:?}",
                    self::shown(found)
                )),
                Some(_) => {}
            }
        }
        differences.extend(self.bucket_differences(&left.buckets));
        differences
    }

    /// Compares all of each bucket that is named: what was to be deleted must be gone.
    fn bucket_differences(&self, left: &BucketTexts) -> Vec<String> {
        let nothing = BTreeMap::new();
        let mut differences = Vec::new();
        for (bucket, expected) in &self.buckets {
            let found = left.get(bucket).unwrap_or(&nothing);
            let keys: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            for key in keys {
                match (expected.get(key), found.get(key)) {
                    (Some(_), None) => differences.push(format!(
                        "there is no key `{key}` in the bucket `{bucket}` afterwards"
                    )),
                    (None, Some(found)) => differences.push(format!(
                        "the bucket `{bucket}` has the key `{key}` afterwards, with {}",
                        shown(found)
                    )),
                    (Some(expected), Some(found)) if expected != found => {
                        differences.push(format!(
                            "the key `{key}` of the bucket `{bucket}` holds {} instead of \
                             {expected:?}",
                            shown(found)
                        ));
                    }
                    (Some(_), Some(_)) | (None, None) => {}
                }
            }
        }
        differences
    }
}

/// Returns the first place at which a document lacks a part that is expected.
fn difference(place: &str, expected: &Value, found: &Value) -> Option<String> {
    let at = |part: &dyn std::fmt::Display| format!("{place}/{part}");
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected
                .iter()
                .find_map(|(key, value)| match found.get(key) {
                    Some(there) => difference(&at(key), value, there),
                    None => Some(format!("the result has no {}", at(key))),
                })
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => expected
            .iter()
            .zip(found)
            .enumerate()
            .find_map(|(index, (expected, found))| difference(&at(&index), expected, found)),
        _ if expected == found => None,
        _ => Some(format!(
            "the result has {} at {} instead of {expected}",
            shown(&found.to_string()),
            if place.is_empty() { "its root" } else { place },
        )),
    }
}

/// Returns the beginning of a text, in quotation marks.
pub(crate) fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    let rest = if beginning.len() < text.len() {
        "…"
    } else {
        ""
    };
    format!("{beginning:?}{rest}")
}

#[cfg(test)]
mod tests {
    use super::{Expected, Left, VisibleResult};
    use crate::plugin::cases::Ending;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn differences(expected: Value, text: &str) -> Vec<String> {
        let expected: Expected = serde_json::from_value(expected).unwrap();
        let seen = VisibleResult {
            ending: Ending::Done,
            text: text.to_owned(),
        };
        let entries = BTreeMap::from([("a".to_owned(), "x".to_owned())]);
        let left = Left {
            files: entries.clone(),
            buckets: BTreeMap::from([("notes".to_owned(), entries)]),
        };
        expected.differences(&seen, &left)
    }

    #[test]
    fn a_part_of_the_outcome_is_enough() {
        let result = r#"{"words": 2, "list": [{"a": 1, "b": 2}]}"#;
        for expected in [
            json!({}),
            json!({ "contains": ["words", "2"] }),
            json!({ "json": { "words": 2 } }),
            json!({ "json": { "list": [{ "a": 1 }] } }),
            json!({ "text": result, "files": { "a": "x" } }),
            json!({ "buckets": { "notes": { "a": "x" }, "other": {} } }),
        ] {
            assert_eq!(differences(expected, result), Vec::<String>::new());
        }
    }

    #[test]
    fn what_differs_is_told_with_its_place() {
        let result = r#"{"words": 2, "list": [1]}"#;
        for (expected, reported) in [
            (
                json!({ "outcome": "denied" }),
                "ends as `done` instead of `denied`",
            ),
            (json!({ "contains": ["three"] }), "\"three\" is not in"),
            (json!({ "text": "x" }), "instead of \"x\""),
            (
                json!({ "json": { "words": 3 } }),
                "has \"2\" at /words instead of 3",
            ),
            (json!({ "json": { "more": 1 } }), "the result has no /more"),
            (
                json!({ "json": { "list": [1, 2] } }),
                "at /list instead of [1,2]",
            ),
            (json!({ "files": { "b": "" } }), "there is no file `b`"),
            (
                json!({ "files": { "a": "y" } }),
                "holds \"x\" instead of \"y\"",
            ),
            (
                json!({ "buckets": { "notes": { "a": "y" } } }),
                "the key `a` of the bucket `notes` holds \"x\" instead of \"y\"",
            ),
            (
                json!({ "buckets": { "notes": {} } }),
                "the bucket `notes` has the key `a` afterwards, with \"x\"",
            ),
            (
                json!({ "buckets": { "other": { "b": "" } } }),
                "there is no key `b` in the bucket `other`",
            ),
        ] {
            let found = differences(expected, result);
            assert!(found.len() == 1 && found[0].contains(reported), "{found:?}");
        }
        let found = differences(json!({ "json": 1 }), "words");
        assert_eq!(found, ["\"words\" is not JSON"]);
    }
}
