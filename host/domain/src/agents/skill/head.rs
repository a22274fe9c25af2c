//! Heads of files in YAML: the texts at the top of a mapping. Nested values are skipped.

use crate::values::shown::escaped;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};
use std::collections::BTreeMap;

/// Bytes of a head.
const BYTES_MAX: usize = 16 << 10;
/// Mappings and lists in each other.
const DEPTH_MAX: usize = 16;
/// The line before and after a head.
const FENCE: &str = "---";

/// The reason why a head cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadFault {
    /// It is too long.
    #[error("is longer than {BYTES_MAX} bytes; leave some out")]
    TooLong,
    /// It is nested too deep.
    #[error("is nested deeper than {DEPTH_MAX} levels; leave some out")]
    TooDeep,
    /// It is no YAML.
    #[error("is no YAML, in line {line}: {said}; put texts with `: ` or ` #` in them in quotes")]
    Malformed {
        /// The line of the file.
        line: usize,
        /// The parser's message.
        said: String,
    },
    /// It is no mapping, or one of its keys is no text.
    #[error("is no list of fields such as `name: notes`")]
    NoFields,
    /// It contains an alias.
    #[error("has an alias (`*…`); write the text itself in its place")]
    Alias,
    /// A field occurs twice.
    #[error("has the field `{0}` twice; leave one out")]
    Twice(String),
    /// A text field is a list or a mapping.
    #[error("has a `{0}` that is no text; write it as one")]
    NoText(String),
}

/// Returns the head of a file with the line before it; none if the file has no head.
pub(super) fn head_of(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut end = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_fence = line.trim_end() == FENCE;
        match (number, is_fence) {
            (0, false) => return None,
            (0, true) | (_, false) => end += line.len(),
            (_, true) => return text.get(..end),
        }
    }
    None
}

/// Reads the fields of a head. Line ends and runs of spaces in a text become one space, and a blank
/// field is left out.
///
/// # Errors
/// It is too long, too deep or no YAML, a field occurs twice, or one of `texts` is no text.
pub(super) fn fields_of(head: &str, texts: &[&str]) -> Result<BTreeMap<String, String>, HeadFault> {
    if head.len() > BYTES_MAX {
        return Err(HeadFault::TooLong);
    }
    let mut reading = Reading::default();
    for event in Parser::new_from_str(head) {
        let (event, _) = event.map_err(|error| malformed(&error))?;
        reading.take(event, texts)?;
    }
    let said = reading.fields.into_iter();
    Ok(said.filter(|(_, value)| !value.is_empty()).collect())
}

/// A head during reading.
#[derive(Default)]
struct Reading {
    depth: usize,
    /// The key whose value is next.
    key: Option<String>,
    fields: BTreeMap<String, String>,
}

impl Reading {
    fn take(&mut self, event: Event<'_>, texts: &[&str]) -> Result<(), HeadFault> {
        match event {
            Event::Alias(_) => return Err(HeadFault::Alias),
            Event::Scalar(value, style, ..) => match (self.depth, self.key.take()) {
                (0, _) => return Err(HeadFault::NoFields),
                (1, None) => self.key = Some(value.into_owned()),
                (1, Some(key)) => self.set(key, &text_of(&value, style))?,
                (_, key) => self.key = key,
            },
            Event::MappingStart(..) => self.deeper(self.depth == 0, texts)?,
            Event::SequenceStart(..) => self.deeper(false, texts)?,
            Event::MappingEnd | Event::SequenceEnd => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        Ok(())
    }

    /// Enters a mapping or a list: the head itself, or the value of a field.
    fn deeper(&mut self, is_head: bool, texts: &[&str]) -> Result<(), HeadFault> {
        if self.depth >= DEPTH_MAX {
            return Err(HeadFault::TooDeep);
        }
        if self.depth <= 1 && !is_head {
            let key = self.key.take().ok_or(HeadFault::NoFields)?;
            if texts.contains(&key.as_str()) {
                return Err(HeadFault::NoText(key));
            }
            self.set(key, "")?;
        }
        self.depth += 1;
        Ok(())
    }

    fn set(&mut self, key: String, value: &str) -> Result<(), HeadFault> {
        if self.fields.contains_key(&key) {
            return Err(HeadFault::Twice(escaped(&key)));
        }
        self.fields.insert(key, value.to_owned());
        Ok(())
    }
}

/// The text of a scalar; empty for the words that YAML reads as null.
fn text_of(value: &str, style: ScalarStyle) -> String {
    let is_null = matches!(value, "~" | "null" | "Null" | "NULL");
    if style == ScalarStyle::Plain && is_null {
        return String::new();
    }
    let words: Vec<&str> = value.split_whitespace().collect();
    words.join(" ")
}

fn malformed(error: &ScanError) -> HeadFault {
    HeadFault::Malformed {
        line: error.marker().line(),
        said: escaped(error.info()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<BTreeMap<String, String>, HeadFault> {
        fields_of(head, &["name", "description"])
    }

    #[test]
    fn a_head_is_what_stands_between_two_fences() {
        for (text, head) in [
            ("---\na: b\n---\nBody", Some("---\na: b\n")),
            ("\u{feff}---\r\na: b\r\n--- \r\n", Some("---\r\na: b\r\n")),
            ("---\n---\n", Some("---\n")),
            ("---\na: b\n", None),
            ("# A\n---\n", None),
            ("", None),
        ] {
            assert_eq!(head_of(text), head, "{text:?}");
        }
    }

    #[test]
    fn fields_are_read_as_yaml_has_them() {
        for (head, value) in [
            ("house-style  # the name", "house-style"),
            ("> # folded\n  How we\n  write", "How we write"),
            ("|-\n  How we\n\n  write\n", "How we write"),
            (">+\n  How we write\n\n", "How we write"),
            ("How we\n  write", "How we write"),
            ("\"A: \\u00e9 \\\"b\\\"\"", "A: é \"b\""),
            ("'it''s # no comment'", "it's # no comment"),
            ("a#b", "a#b"),
            ("https://a.example/b", "https://a.example/b"),
            ("!!str 12", "12"),
            ("&it 12", "12"),
            ("yes", "yes"),
        ] {
            let head =
                format!("---\nmetadata: {{ name: x, list: [1, {{ a: b }}] }}\nname: {head}\n");
            let fields = read(&head).unwrap();
            assert_eq!(fields["name"], value, "{head}");
            assert_eq!(fields.len(), 1, "{head}");
        }
        for nothing in ["", "~", "null", "\"\"", "# nothing"] {
            let fields = read(&format!("---\nname: {nothing}\n")).unwrap();
            assert!(fields.is_empty(), "{nothing}: {fields:?}");
        }
    }

    #[test]
    fn a_head_that_is_no_plain_list_of_fields_is_refused() {
        let deep = format!("---\na: {}1{}\n", "[".repeat(17), "]".repeat(17));
        let long = format!("---\na: {}\n", "x".repeat(BYTES_MAX));
        for (head, expected) in [
            ("---\na: b: c\n", "in line 2"),
            ("---\na: \"b\n", "is no YAML"),
            ("---\na: &b [x]\nc: *b\n", "has an alias"),
            ("---\nname: a\nname: b\n", "`name` twice"),
            ("---\nname: [a]\n", "`name` that is no text"),
            (
                "---\ndescription:\n  a: b\n",
                "`description` that is no text",
            ),
            ("---\n- a\n", "no list of fields"),
            ("---\na\n", "no list of fields"),
            ("---\n? [a]\n: b\n", "no list of fields"),
            (deep.as_str(), "deeper than 16"),
            (long.as_str(), "longer than 16384"),
        ] {
            let fault = read(head).unwrap_err().to_string();
            assert!(fault.contains(expected), "{head}: {fault}");
        }
    }
}
