//! Lists of names and patterns: entries that are none, those of components that match nothing that
//! is configured, and confirmations of destructive tools where there are none.

use super::finding::{Finding, error, warning};
use super::key::closest;
use super::unmatched::matches_any;
use domain::confirm::Confirm;
use domain::grant::PatternList;
use domain::grant::capability::{self, Buckets};
use domain::tool::ToolDefinition;
use llm::ModelConfig;
use std::collections::{BTreeMap, BTreeSet};

/// Entries that can never match because of how they are written.
pub(super) fn entries(key: &str, list: Option<&PatternList>) -> Vec<Finding> {
    let entries = list.into_iter().flat_map(|list| &list.0).enumerate();
    let wrong = entries.filter_map(|(index, entry)| {
        let message = match entry.trim() {
            "" => "it is empty and matches nothing; take it out".to_owned(),
            trimmed if trimmed != entry => {
                format!("`{entry}` has blanks around it, which no name has; write `{trimmed}`")
            }
            _ => return None,
        };
        Some(error(format!("{key}[{index}]"), message))
    });
    wrong.collect()
}

/// Entries without a `*` that are the name of no capability: in a deny list they deny nothing.
pub(super) fn capabilities(key: &str, list: Option<&PatternList>) -> Vec<Finding> {
    let entries = list.into_iter().flat_map(|list| &list.0).enumerate();
    let wrong = entries
        .filter(|(_, entry)| !entry.contains('*') && entry.trim() == *entry && !entry.is_empty())
        .filter_map(|(index, entry)| {
            let unknown = capability::check(entry, Buckets::Imported).err()?;
            let message = format!(
                "`{entry}` is no capability of this host; the nearest is `{}`",
                unknown.nearest
            );
            Some(error(format!("{key}[{index}]"), message))
        });
    wrong.collect()
}

/// A warning for each entry that matches no alias of a configured model.
pub(super) fn models(
    key: &str,
    list: Option<&PatternList>,
    models: &BTreeMap<String, ModelConfig>,
) -> Vec<Finding> {
    let known: BTreeSet<&str> = models.keys().map(String::as_str).collect();
    nothing(key, list, "model", &known)
}

/// A warning for each entry that matches none of the names.
pub(super) fn nothing(
    key: &str,
    list: Option<&PatternList>,
    what: &str,
    known: &BTreeSet<&str>,
) -> Vec<Finding> {
    let entries = list.into_iter().flat_map(|list| &list.0).enumerate();
    let unmatched = entries
        .filter(|(_, pattern)| !matches_any(pattern, known))
        .map(|(index, pattern)| {
            let nearest = match closest(pattern, known.iter().copied()) {
                Some(nearest) => format!("the nearest is `{nearest}`"),
                None => "there is none".to_owned(),
            };
            warning(
                format!("{key}[{index}]"),
                format!("`{pattern}` matches no {what}; {nearest}"),
            )
        });
    unmatched.collect()
}

/// A warning where tools that declare themselves destructive are to be confirmed and there are
/// none.
pub(super) fn none_destructive<'a>(
    key: &str,
    confirm: &Confirm,
    what: &str,
    tools: impl IntoIterator<Item = &'a ToolDefinition>,
) -> Option<Finding> {
    let is_any = tools.into_iter().any(|tool| tool.destructive);
    (confirm.destructive && !is_any).then(|| {
        let message = format!(
            "it asks about nothing: no {what} declares itself destructive; list the tools to be \
             confirmed, such as [\"delete_*\"]"
        );
        warning(key, message)
    })
}
