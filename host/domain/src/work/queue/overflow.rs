//! The record of dropped inputs: their number, a line of each, and the notice for the agent and its
//! user.

use super::{EXCERPT_CHARS_MAX, OVERFLOW_LINES_MAX};
use crate::thread::speaker::Speaker;
use crate::values::text::wrapped_text;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The beginning of a notice, up to the number.
const BEGINS: &str = "[Queue overflow] Dropped ";
/// The prefix of each of its lines.
const LINE: &str = "\n- ";

/// The dropped inputs of a session that no turn has reported yet. It is a row of the session, and
/// empty once a turn has reported them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Overflow {
    dropped: u64,
    lines: Vec<String>,
}

/// The text about dropped messages, with which a turn begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OverflowNotice(String);

impl Overflow {
    /// Returns how many inputs were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// One line for each of the last messages that were dropped with a line, oldest first.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Counts one more message, dropped without a line.
    pub(super) fn count(&mut self) {
        self.dropped = self.dropped.saturating_add(1);
    }

    /// Counts one more message, dropped with a line. Beyond this many lines the oldest lines are
    /// lost; they still count.
    pub(super) fn summarize(&mut self, line: &str, lines_max: usize) {
        self.count();
        self.lines.push(line.to_owned());
        self.lines
            .drain(..self.lines.len().saturating_sub(lines_max));
    }

    /// These, followed by later ones. The first lines are lost beyond [`OVERFLOW_LINES_MAX`].
    #[must_use]
    pub fn and(mut self, later: Self) -> Self {
        self.dropped = self.dropped.saturating_add(later.dropped);
        self.lines.extend(later.lines);
        self.lines
            .drain(..self.lines.len().saturating_sub(OVERFLOW_LINES_MAX));
        self
    }

    /// Returns the notice with which a turn begins; none if nothing was dropped.
    #[must_use]
    pub fn notice(&self) -> Option<OverflowNotice> {
        if self.dropped == 0 {
            return None;
        }
        let plural = if self.dropped == 1 { "" } else { "s" };
        let mut text = format!("{BEGINS}{} message{plural} due to cap.", self.dropped);
        if !self.lines.is_empty() {
            text.push_str("\nSummary:");
        }
        for line in &self.lines {
            text.push_str(LINE);
            text.push_str(line);
        }
        Some(OverflowNotice(text))
    }
}

wrapped_text!(OverflowNotice);

impl OverflowNotice {
    /// Returns the overflow that it reports, for another report. The turn that began with it was
    /// never committed.
    #[must_use]
    pub fn untold(&self) -> Overflow {
        let number: String = self
            .0
            .strip_prefix(BEGINS)
            .unwrap_or_default()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        // A line contains no line break.
        let lines = self.0.split(LINE).skip(1).map(str::to_owned).collect();
        Overflow {
            dropped: number.parse().unwrap_or(1),
            lines,
        }
    }
}

/// Returns the line for dropped words: a user's words as they are, anybody else's with their
/// source.
///
/// The host shows the line as its own text or before a user's. So it contains no words that rest on
/// content from outside.
#[must_use]
pub fn line<'a>(speaker: Option<&Speaker>, untrusted: bool, text: &'a str) -> Cow<'a, str> {
    if untrusted {
        let label = speaker.map_or_else(|| "elsewhere".to_owned(), Speaker::label);
        return Cow::Owned(format!("[from {label}, untrusted: left out]"));
    }
    match speaker.filter(|speaker| !speaker.is_user()) {
        Some(speaker) => Cow::Owned(format!("[from {}] {text}", speaker.label())),
        None => Cow::Borrowed(text),
    }
}

/// A text on one line: blanks and line ends in a row become one blank. A text of more than
/// [`EXCERPT_CHARS_MAX`] letters is cut and ends in `…`.
#[must_use]
pub fn excerpt(text: &str) -> String {
    let words = text.split_whitespace().enumerate();
    let letters =
        words.flat_map(|(index, word)| (index > 0).then_some(' ').into_iter().chain(word.chars()));
    // Reads at most one letter too many: a text may have a million of them.
    let line: String = letters.take(EXCERPT_CHARS_MAX + 1).collect();
    match line.char_indices().nth(EXCERPT_CHARS_MAX - 1) {
        Some((last, letter)) if last + letter.len_utf8() < line.len() => {
            format!("{}…", line.get(..last).unwrap_or_default().trim_end())
        }
        Some(_) | None => line,
    }
}
