//! Labels that a client puts on a message for itself: the host stores and shows them, and agents do
//! not see them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Labels of one message.
pub const LABELS_MAX: usize = 16;
/// Bytes of a label's name.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes of a label's value.
pub const VALUE_BYTES_MAX: usize = 256;

/// The labels of a message, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageLabels(pub BTreeMap<String, String>);

impl MessageLabels {
    /// Returns whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks number and length of the labels. A name consists of `a-z`, `A-Z`, `0-9`, `.`, `-`,
    /// `_` and `/`.
    ///
    /// # Errors
    /// The first fault, with the allowed values.
    pub fn check(&self) -> Result<(), String> {
        if self.0.len() > LABELS_MAX {
            return Err(format!(
                "a message has {LABELS_MAX} labels at most, and this one has {}",
                self.0.len()
            ));
        }
        let is_name = |name: &str| {
            (1..=NAME_BYTES_MAX).contains(&name.len())
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b".-_/".contains(&byte))
        };
        for (name, value) in &self.0 {
            if !is_name(name) {
                let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
                return Err(format!(
                    "`{shown}` is no name of a label: 1 to {NAME_BYTES_MAX} of letters, digits, \
                     `.`, `-`, `_` and `/`"
                ));
            }
            if value.len() > VALUE_BYTES_MAX {
                return Err(format!(
                    "the label `{name}` has {} bytes; at most {VALUE_BYTES_MAX} are taken",
                    value.len()
                ));
            }
        }
        Ok(())
    }

    /// Returns whether a filter selects the labels: `name`, or `name=value`.
    #[must_use]
    pub fn matches(&self, filter: &str) -> bool {
        match filter.split_once('=') {
            Some((name, value)) => self.0.get(name).is_some_and(|there| there == value),
            None => self.0.contains_key(filter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> MessageLabels {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        MessageLabels(pairs.collect())
    }

    #[test]
    fn labels_are_few_and_short_and_have_plain_names() {
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        for (given, is_taken) in [
            (labels(&[]), true),
            (labels(&[("team/topic-1.a_b", "über"), ("empty", "")]), true),
            (labels(&[("", "x")]), false),
            (labels(&[("a b", "x")]), false),
            (labels(&[("a=b", "x")]), false),
            (labels(&[("a", &long)]), false),
            (labels(&[(&long[..NAME_BYTES_MAX + 1], "x")]), false),
        ] {
            assert_eq!(given.check().is_ok(), is_taken, "{given:?}");
        }
        let many = (0..=LABELS_MAX).map(|n| (n.to_string(), String::new()));
        assert!(MessageLabels(many.collect()).check().is_err());
    }

    #[test]
    fn a_filter_selects_by_name_or_by_name_and_value() {
        let given = labels(&[("topic", "a=b")]);
        for (filter, selects) in [
            ("topic", true),
            ("topic=a=b", true),
            ("topic=a", false),
            ("other", false),
        ] {
            assert_eq!(given.matches(filter), selects, "{filter}");
        }
    }
}
