//! Keys of the configuration in errors: their places, and the keys that were probably meant.

use super::elsewhere;
use super::wording::reword;
use serde_path_to_error::{Path, Segment};
use std::fmt::Write as _;

/// Maximum distance at which an unknown key counts as a typing error of a known one. It is the
/// number of edits, in percent of the longer key's length.
const SLIP_PERCENT_MAX: usize = 40;

/// An error at one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyError {
    /// The key, such as `agents[2].toolAllowlist`; empty for the whole file.
    pub(crate) key: String,
    /// A description of the fault.
    pub(crate) message: String,
}

impl KeyError {
    /// Makes a fault from the parser's message about a key. The text is serde's, with the nearest
    /// known name added.
    pub(crate) fn new(path: &Path, message: &str) -> Self {
        let key = text(path);
        let mut quoted = message.split('`').skip(1).step_by(2);
        let named = quoted.next().unwrap_or_default();
        let known: Vec<&str> = quoted.collect();
        if message.starts_with("unknown field") {
            let parent = key
                .strip_suffix(named)
                .map_or(key.as_str(), |parent| parent.trim_end_matches('.'));
            let place = if parent.is_empty() {
                String::new()
            } else {
                format!(" in `{parent}`")
            };
            let hint = elsewhere::of_key(parent, named)
                .map_or_else(|| hint(named, &known), |reported| format!("; {reported}"));
            return Self {
                message: format!("unknown key `{named}`{place}{hint}"),
                key,
            };
        }
        if message.starts_with("unknown variant") {
            return Self {
                message: format!("`{named}` is not one of its values{}", hint(named, &known)),
                key,
            };
        }
        if message.starts_with("missing field") {
            return Self {
                message: format!("the key `{named}` is missing"),
                key,
            };
        }
        let mut message = reword(message);
        if key.ends_with(".sha256") {
            message.push_str("; `agent-host component inspect` prints them");
        }
        Self { key, message }
    }
}

fn hint(named: &str, known: &[&str]) -> String {
    match (nearest(named, known), known) {
        (Some(nearest), _) => format!("; did you mean `{nearest}`?"),
        (None, []) => String::new(),
        (None, known) => format!(
            "; known are {}",
            known
                .iter()
                .map(|known| format!("`{known}`"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// The known name that looks most like the one given, if any looks like it at all. `tool_allowlist`
/// is as good as `toolAllowlist`.
pub(crate) fn nearest<'a>(named: &str, known: &[&'a str]) -> Option<&'a str> {
    let best = closest(named, known.iter().copied())?;
    let longest = plain(named).len().max(best.len());
    (distance(named, best) * 100 <= longest * SLIP_PERCENT_MAX).then_some(best)
}

/// The known name that looks most like the one given, however little that is.
pub(crate) fn closest<'a>(
    named: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known.into_iter().min_by_key(|known| distance(named, known))
}

fn distance(named: &str, known: &str) -> usize {
    strsim::damerau_levenshtein(&plain(named), &plain(known))
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_ascii_lowercase()
}

fn text(path: &Path) -> String {
    let mut text = String::new();
    for segment in path.iter() {
        // Writing to a string cannot fail.
        let _ = match segment {
            Segment::Seq { index } => write!(text, "[{index}]"),
            Segment::Map { key } | Segment::Enum { variant: key } if text.is_empty() => {
                write!(text, "{key}")
            }
            Segment::Map { key } | Segment::Enum { variant: key } => write!(text, ".{key}"),
            Segment::Unknown => Ok(()),
        };
    }
    text
}
