//! The lines of a file, one JSON object each, and their fields with their places.

use super::{
    FILE_BYTES_MAX, LINE_BYTES_MAX, LINES_MAX, TranscriptFault, Unwritable, WORD_BYTES_MAX,
};
use crate::values::fields::{self, FieldFault, kind};
use crate::values::json::{self, DEPTH_MAX};
use crate::values::time::Timestamp;
use serde_json::{Map, Value};

/// Levels of lists and objects in a line that this host wrote: those of a message, and its
/// envelope.
pub(super) const OWN_DEPTH_MAX: usize = DEPTH_MAX + 16;

/// A line of a file.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Its number, counted from 1.
    pub(super) number: usize,
    /// Its object.
    pub(super) map: Map<String, Value>,
    /// Its bytes.
    pub(super) bytes: usize,
}

/// The treatment of this host's records in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Records {
    /// A file of another program has no records.
    Refused,
    /// Records no longer match the visible content of the file.
    LeftOut,
}

impl Records {
    /// The most levels of lists and objects in a line.
    fn depth_max(self) -> usize {
        match self {
            Self::Refused => DEPTH_MAX,
            Self::LeftOut => OWN_DEPTH_MAX,
        }
    }
}

/// A line of a file as text, with its number from 1.
pub(super) type Numbered<'a> = (usize, Result<&'a str, TranscriptFault>);

/// The non-empty lines of a file, as text. A line may end with a carriage return.
///
/// # Errors
/// A line is not valid text.
pub(super) fn texts(file: &[u8]) -> Result<Vec<(usize, &str)>, TranscriptFault> {
    let lines = split(file)?.into_iter();
    lines
        .map(|(number, text)| text.map(|text| (number, text)))
        .collect()
}

/// The non-empty lines of a file.
///
/// # Errors
/// The file as a whole is invalid.
pub(super) fn split(file: &[u8]) -> Result<Vec<Numbered<'_>>, TranscriptFault> {
    if file.len() > FILE_BYTES_MAX {
        let message = format!(
            "it has {} bytes and {FILE_BYTES_MAX} is the most: divide it",
            file.len()
        );
        return Err(TranscriptFault::line(0, message));
    }
    let mut lines = Vec::new();
    for (number, bytes) in (1_usize..).zip(file.split(|byte| *byte == b'\n')) {
        if number > LINES_MAX {
            return Err(TranscriptFault::line(
                number,
                format!("{LINES_MAX} lines are the most: divide the file"),
            ));
        }
        let text = text(number, bytes);
        if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        lines.push((number, text));
    }
    if lines.is_empty() {
        Err(TranscriptFault::line(
            0,
            "it has no lines, and a session has one at least",
        ))
    } else {
        Ok(lines)
    }
}

/// One line as text.
fn text(number: usize, bytes: &[u8]) -> Result<&str, TranscriptFault> {
    if bytes.len() > LINE_BYTES_MAX {
        let message = format!(
            "it has {} bytes and {LINE_BYTES_MAX} is the most: keep what is long in it elsewhere",
            bytes.len()
        );
        return Err(TranscriptFault::line(number, message));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = format!(
            "it is not UTF-8 from byte {} on: write the file in UTF-8",
            error.valid_up_to()
        );
        TranscriptFault::line(number, message)
    })?;
    if text.starts_with('\u{feff}') {
        let message = "it begins with a byte order mark: take that out";
        return Err(TranscriptFault::line(number, message));
    }
    Ok(text)
}

/// One line as an object.
pub(super) fn parse(number: usize, text: &str, depth_max: usize) -> Result<Line, TranscriptFault> {
    let trimmed = text.trim();
    // Checked before parsing: the error of a parser that gives up is less exact.
    if json::depth(trimmed.as_bytes()) > depth_max {
        let message = format!(
            "it is nested deeper than {depth_max} levels of lists and objects: keep what \
                     is in it as text"
        );
        return Err(TranscriptFault::line(number, message));
    }
    match serde_json::from_str(trimmed) {
        Ok(Value::Object(map)) => Ok(Line {
            number,
            map,
            bytes: trimmed.len(),
        }),
        Ok(other) => Err(TranscriptFault::line(
            number,
            format!(
                "every line is a JSON object, and this one is {}",
                kind(&other)
            ),
        )),
        Err(error) => {
            let column = error.column();
            Err(TranscriptFault::line(
                number,
                format!(
                    "it is not JSON at column {column} ({error}): mend the line, or take it out"
                ),
            ))
        }
    }
}

/// Every line of another program's file, or its fault.
///
/// # Errors
/// The file as a whole is invalid.
pub(super) fn lines(
    file: &[u8],
    records: Records,
) -> Result<Vec<Result<Line, TranscriptFault>>, TranscriptFault> {
    let lines = split(file)?.into_iter();
    let depth_max = records.depth_max();
    let parsed = lines.map(|(number, text)| parse(number, text?, depth_max));
    Ok(parsed.collect())
}

impl Line {
    /// The line's own fields.
    pub(super) fn fields(&self) -> Fields<'_> {
        Fields::new(self.number, String::new(), &self.map)
    }
}

/// The fields of an object in a line.
pub(super) type Fields<'a> = fields::Fields<'a, TranscriptFault>;

impl FieldFault for TranscriptFault {
    const MISSING: &'static str =
        "it is missing, and every line of this type has it: add it, or take the line out";

    fn new(line: usize, field: String, message: String) -> Self {
        Self {
            line,
            field,
            message,
        }
    }
}

impl<'a> Fields<'a> {
    /// A required text.
    pub(super) fn text_needed(&self, name: &str) -> Result<&'a str, TranscriptFault> {
        self.needed(name, self.text(name)?)
    }

    /// A text of 1 to [`WORD_BYTES_MAX`] bytes.
    pub(super) fn short_text(&self, name: &str) -> Result<Option<&'a str>, TranscriptFault> {
        self.text_of(name, 1..=WORD_BYTES_MAX)
    }

    /// A required text of 1 to [`WORD_BYTES_MAX`] bytes.
    pub(super) fn word_needed(&self, name: &str) -> Result<&'a str, TranscriptFault> {
        self.needed(name, self.short_text(name)?)
    }

    /// A time in ISO 8601.
    pub(super) fn time(&self, name: &str) -> Result<Option<Timestamp>, TranscriptFault> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let time: Timestamp = text
            .parse()
            .map_err(|error: crate::values::time::NotATime| self.fault(name, error.to_string()))?;
        if time.0 > super::TIME_MS_MAX {
            return Err(self.fault(name, "it is later than the year 9998"));
        }
        Ok(Some(time))
    }

    /// A required time.
    pub(super) fn time_needed(&self, name: &str) -> Result<Timestamp, TranscriptFault> {
        self.needed(name, self.time(name)?)
    }

    /// A whole number, at least 0; 0 if it is missing.
    pub(super) fn count(&self, name: &str) -> Result<u64, TranscriptFault> {
        let count = self.typed(name, "a whole number from 0 on", Value::as_u64)?;
        Ok(count.unwrap_or_default())
    }

    /// A required object.
    pub(super) fn object_needed(&self, name: &str) -> Result<Self, TranscriptFault> {
        self.needed(name, self.object(name)?)
    }
}

/// A file in the making.
#[derive(Debug, Default)]
pub(super) struct Written {
    bytes: Vec<u8>,
    lines: usize,
}

impl Written {
    /// Adds a line, or reports why it could not be read back. `what` names its content.
    pub(super) fn push(
        &mut self,
        line: &Value,
        what: impl Fn() -> String,
    ) -> Result<(), Unwritable> {
        let text = line.to_string();
        if text.len() > LINE_BYTES_MAX {
            return Err(Unwritable::TooLong {
                what: what(),
                bytes: text.len(),
            });
        }
        if json::depth(text.as_bytes()) > OWN_DEPTH_MAX {
            return Err(Unwritable::TooDeep { what: what() });
        }
        // A reader that rounds a number with 17 digits to a neighbour would compute another digest.
        if has_fraction(line) && serde_json::from_str::<Value>(&text).ok().as_ref() != Some(line) {
            return Err(Unwritable::Number { what: what() });
        }
        self.lines += 1;
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'\n');
        // The empty rest after the last line break counts as a line on reading.
        if self.lines >= LINES_MAX {
            return Err(Unwritable::TooMuch {
                max: LINES_MAX,
                unit: "lines",
            });
        }
        if self.bytes.len() > FILE_BYTES_MAX {
            return Err(Unwritable::TooMuch {
                max: FILE_BYTES_MAX,
                unit: "bytes",
            });
        }
        Ok(())
    }

    /// The file.
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Returns whether it contains a fraction.
fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        _ => false,
    }
}
