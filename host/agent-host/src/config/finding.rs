//! The findings of the configuration's checks: a key, a message, and how bad it is; with the keys
//! and names that were probably meant, and the wording of a reader's complaints.

use super::elsewhere;
use domain::trigger::SpecFault;
use serde::{Deserialize, Serialize};
use serde_path_to_error::{Path, Segment};
use std::fmt;
use std::fmt::Write as _;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// The host does not start.
    Error,
    /// The host starts, but an operator should look at it.
    Warning,
}

/// One thing that a check of the configuration has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) key: String,
    /// The fault and its fix.
    pub(crate) message: String,
}

impl Finding {
    /// Returns the key and the message.
    pub(crate) fn without_severity(&self) -> String {
        format!("{}: {}", self.key, self.message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}", self.without_severity())
    }
}

/// Makes a finding because of which the host does not start.
pub(crate) fn error(key: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Error,
        key: key.into(),
        message: message.into(),
    }
}

/// Makes a finding that an operator should look at.
pub(crate) fn warning(key: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Warning,
        key: key.into(),
        message: message.into(),
    }
}

/// Returns the names of those that are said.
pub(super) fn said_of<const N: usize>(keys: [(&'static str, bool); N]) -> Vec<&'static str> {
    let said = keys.into_iter().filter(|(_, is_said)| *is_said);
    said.map(|(name, _)| name).collect()
}

/// Makes errors of the faults in a section.
pub(super) fn faults_within(
    section: &str,
    faults: impl IntoIterator<Item = SpecFault>,
) -> impl Iterator<Item = Finding> {
    faults.into_iter().map(move |fault| {
        let message = format!("{}; {}", fault.message, fault.fix);
        error(format!("{section}.{}", fault.field), message)
    })
}

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
    /// Makes the complaint about all that was read.
    pub(super) fn of_all(message: &str) -> Self {
        Self {
            key: String::new(),
            message: message.to_owned(),
        }
    }

    /// Makes a fault from the parser's message about a key. The text is serde's, with the nearest
    /// known name added.
    pub(crate) fn new(path: &Path, message: &str) -> Self {
        let key = text(path);
        let mut quoted = message.split('`').skip(1).step_by(2);
        let named = quoted.next().unwrap_or_default();
        let known: Vec<&str> = quoted.collect();
        let message = if message.starts_with("unknown field") {
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
            format!("unknown key `{named}`{place}{hint}")
        } else if message.starts_with("unknown variant") {
            format!("`{named}` is not one of its values{}", hint(named, &known))
        } else if message.starts_with("missing field") {
            format!("the key `{named}` is missing")
        } else if key.ends_with(".sha256") {
            format!(
                "{}; `agent-host component inspect` prints them",
                reword(message)
            )
        } else {
            reword(message)
        };
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

/// Returns the question after the known name that was probably meant; `otherwise` where none was.
pub(crate) fn meant(named: &str, known: &[&str], otherwise: impl FnOnce() -> String) -> String {
    match nearest(named, known) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => otherwise(),
    }
}

/// The same, with all known names where none was meant; `nothing` where there is none.
pub(super) fn meant_of(named: &str, known: &[&str], nothing: impl FnOnce() -> String) -> String {
    meant(named, known, || match known {
        [] => nothing(),
        known => format!("there are `{}`", known.join("`, `")),
    })
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

/// Adds to a fault in a TOML file what its brackets should have been. `line` is the line of the
/// fault.
pub(super) fn hinted(fault: KeyError, line: &str) -> KeyError {
    let message = match table(line) {
        Some(table) => message(&fault, table),
        None => None,
    };
    match message {
        Some(message) => KeyError { message, ..fault },
        None => fault,
    }
}

/// Returns the name in a line such as `[agents.reader]`; none for a line with two brackets.
fn table(line: &str) -> Option<&str> {
    let inner = line.trim().strip_prefix('[')?;
    let name = inner.split(']').next()?.trim();
    (!name.starts_with('[')).then_some(name)
}

fn message(fault: &KeyError, table: &str) -> Option<String> {
    let KeyError { key, message } = fault;
    // `[agents]` or `[agents.reader]`, and nothing else.
    if message == "a table is not a list" && (table == key || is_below(table, key)) {
        return Some(format!(
            "it is a list, and `[{table}]` makes it a table: write `[[{key}]]` before each \
             entry{}",
            named(key, table)
        ));
    }
    // `[agents.reader]` beside `[[agents]]` belongs to the entry above.
    let list = key.split('[').next()?;
    let is_unknown = message.starts_with("unknown key");
    (is_unknown && key.starts_with(&format!("{list}[")) && is_below(table, list)).then(|| {
        format!(
            "`[{table}]` is a part of the entry of `[[{list}]]` above it, which has no such key: \
             write `[[{list}]]` for another entry{}",
            named(list, table)
        )
    })
}

/// Returns true if a table is in another, such as `agents.reader` in `agents`.
fn is_below(table: &str, of: &str) -> bool {
    table
        .strip_prefix(of)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// Returns where the name of an entry belongs, if it was written into the brackets.
fn named(list: &str, table: &str) -> String {
    let name = table
        .strip_prefix(list)
        .and_then(|rest| rest.strip_prefix('.'))
        .map(|name| name.trim_matches(['"', '\'']));
    let key = match list {
        "agents" => "agentId",
        "personas" => "id",
        _ => return String::new(),
    };
    name.map(|name| format!(", and {key} = \"{name}\" in it"))
        .unwrap_or_default()
}

/// Returns a message about a value of a wrong type in the words of the configuration; any other
/// message as it is.
pub(super) fn reword(message: &str) -> String {
    let parts = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "));
    match parts {
        Some((found, expected)) => format!("{} is not {}", value(found), kind(expected)),
        None => message.to_owned(),
    }
}

/// Returns a value that was found, such as `integer 7` between backticks, as it is written.
fn value(found: &str) -> String {
    match found {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit value" | "Option value" => "nothing".to_owned(),
        _ => match found.split_once([' ', '`']) {
            // A text comes with its quotes.
            Some(("string", text)) => format!("the text {text}"),
            Some(("integer" | "boolean", value)) => value.to_owned(),
            Some(("floating", rest)) => rest.trim_start_matches("point ").to_owned(),
            Some(_) | None => found.to_owned(),
        },
    }
}

/// Returns a type that was expected in the words of the configuration.
fn kind(expected: &str) -> String {
    let named = match expected {
        "a sequence" => "a list",
        "a map" | "map" => "a table",
        "a string" | "a character" | "path string" | "str" => "a text in quotes",
        "a boolean" => "`true` or `false`",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" | "isize" | "i128" => "a whole number",
        "f32" | "f64" => "a number",
        _ if expected.starts_with("struct ") => "a table",
        _ if expected.starts_with("enum ") => "one of its values",
        _ if expected.starts_with("a nonzero ") => "a whole number from 1 on",
        _ => expected,
    };
    named.to_owned()
}

#[cfg(test)]
mod tests {
    use super::{KeyError, hinted, reword};

    #[test]
    fn brackets_that_mean_something_else_are_told_with_those_that_were_meant() {
        let fault = |key: &str, message: &str| KeyError {
            key: key.to_owned(),
            message: message.to_owned(),
        };
        let reported =
            |key: &str, message: &str, line: &str| hinted(fault(key, message), line).message;
        assert_eq!(
            reported("agents", "a table is not a list", "[agents.reader]"),
            "it is a list, and `[agents.reader]` makes it a table: write `[[agents]]` before each \
             entry, and agentId = \"reader\" in it"
        );
        assert!(reported("agents", "a table is not a list", "[agents]").ends_with("each entry"));
        assert_eq!(
            reported(
                "agents[0].x",
                "unknown key `x` in `agents[0]`; known are",
                "[agents.x]"
            ),
            "`[agents.x]` is a part of the entry of `[[agents]]` above it, which has no such key: \
             write `[[agents]]` for another entry, and agentId = \"x\" in it"
        );
        for (key, message, line) in [
            ("agents[0].x", "unknown key `x` in `agents[0]`", "x = 5"),
            ("server.x", "unknown key `x` in `server`", "[server.x]"),
            ("agents", "`5` is not a list", "agents = 5"),
        ] {
            assert_eq!(reported(key, message, line), message);
        }
    }

    #[test]
    fn no_message_about_a_type_has_a_name_of_rust() {
        for (message, expected) in [
            (
                "invalid value: integer `-1`, expected u32",
                "`-1` is not a whole number from 0 to 4294967295",
            ),
            (
                "invalid type: integer `7`, expected a string",
                "`7` is not a text in quotes",
            ),
            (
                "invalid type: map, expected a sequence",
                "a table is not a list",
            ),
            (
                "invalid type: string \"5\", expected u64",
                "the text \"5\" is not a whole number from 0 on",
            ),
            (
                "invalid type: floating point `1.5`, expected u64",
                "`1.5` is not a whole number from 0 on",
            ),
            (
                "invalid type: boolean `true`, expected struct GuestLimits",
                "`true` is not a table",
            ),
            (
                "invalid value: string \"x\", expected 64 hexadecimal digits",
                "the text \"x\" is not 64 hexadecimal digits",
            ),
            (
                "unclosed table, expected `]`",
                "unclosed table, expected `]`",
            ),
        ] {
            assert_eq!(reword(message), expected);
        }
    }
}
