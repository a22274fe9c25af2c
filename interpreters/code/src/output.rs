//! The result of a program: its two streams, bounded while they are written, and its ending.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes that are kept of each stream.
pub(crate) const STREAM_BYTES_MAX: usize = 256 << 10;
/// Bytes of a value, as JSON or as text.
pub(crate) const VALUE_BYTES_MAX: usize = 64 << 10;

/// The way in which a program came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It ran to its end.
    Completed,
    /// It threw, cannot be read, or awaits what never comes.
    Failed,
    /// Its time was up.
    TimedOut,
    /// It asked for memory that there is not.
    OutOfMemory,
}

/// An error of the program's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thrown {
    /// Its name, such as `TypeError`.
    pub name: String,
    /// Its message.
    pub message: String,
    /// The line of the program, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The functions that were running, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// Something that may help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// The way in which it ended.
    pub status: Ending,
    /// Its language.
    pub language: String,
    /// The value of its last expression, where it has a form in JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The same value as text, where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered: Option<String>,
    /// The text that it printed.
    pub stdout: String,
    /// The text that it printed as warnings and errors.
    pub stderr: String,
    /// The reason that it did not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Thrown>,
    /// Milliseconds that it took.
    pub duration_ms: u64,
}

/// A stream of a program's. What is over its limit is counted and not kept.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    text: String,
    lines_dropped: u64,
    is_full: bool,
}

impl Stream {
    /// Returns true if nothing more is kept, and counts the line that is therefore not made.
    pub(crate) fn drops_line(&mut self) -> bool {
        if self.is_full {
            self.lines_dropped += 1;
        }
        self.is_full
    }

    /// Adds a line, or as much of it as there is room for.
    pub(crate) fn line(&mut self, line: &str) {
        if self.drops_line() {
            return;
        }
        let room = STREAM_BYTES_MAX.saturating_sub(self.text.len());
        if line.len() < room {
            self.text.push_str(line);
            self.text.push('\n');
            return;
        }
        let end = line.floor_char_boundary(room);
        self.text.push_str(line.get(..end).unwrap_or_default());
        self.is_full = true;
        if end < line.len() {
            self.lines_dropped += 1;
        }
    }

    /// The text, with a mark where it was cut.
    pub(crate) fn text(&self) -> String {
        if !self.is_full || self.lines_dropped == 0 {
            return self.text.clone();
        }
        format!(
            "{}\n[cut here: {STREAM_BYTES_MAX} bytes are kept; lines left out or cut: {}]",
            self.text, self.lines_dropped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{STREAM_BYTES_MAX, Stream};

    #[test]
    fn a_stream_keeps_its_beginning_and_counts_the_lines_that_it_drops() {
        let mut stream = Stream::default();
        stream.line("one");
        assert_eq!(stream.text(), "one\n");
        stream.line(&"é".repeat(STREAM_BYTES_MAX));
        for _ in 0..3 {
            stream.line("more");
        }
        let text = stream.text();
        assert!(text.starts_with("one\né"), "{}", text.len());
        assert!(text.len() < STREAM_BYTES_MAX + 100, "{}", text.len());
        assert!(text.ends_with("lines left out or cut: 4]"), "{text:.0}");
    }
}
