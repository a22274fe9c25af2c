//! Errors: the fault of a file on reading, and the reason why a transcript is not written.

use super::{LINE_BYTES_MAX, PASSED_OVER_MAX, Unsound};
use crate::values::id::TurnId;
use std::fmt;

/// A fault in a file: the whole file is refused, or the line is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFault {
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// The element at fault in it, as a JSON pointer: `/message/role`. Empty for the whole line.
    pub field: String,
    /// The fault, and how to correct it.
    pub message: String,
}

impl TranscriptFault {
    /// Something wrong with a whole line.
    pub(super) fn line(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            field: String::new(),
            message: message.into(),
        }
    }
}

/// The skipped lines of another program's file, by their faults.
#[derive(Debug, Default)]
pub(super) struct PassedOver(Vec<TranscriptFault>);

impl PassedOver {
    /// Skips a line, unless it was skipped before.
    ///
    /// # Errors
    /// Too many lines are skipped.
    pub(super) fn add(&mut self, fault: TranscriptFault) -> Result<(), TranscriptFault> {
        if self.0.iter().any(|known| known.line == fault.line) {
            return Ok(());
        }
        if self.0.len() == PASSED_OVER_MAX {
            let message = format!(
                "more than {PASSED_OVER_MAX} lines cannot be read, so that it is no such file; the \
                 last of them, line {}: {}",
                fault.line, fault.message
            );
            return Err(TranscriptFault::line(0, message));
        }
        self.0.push(fault);
        Ok(())
    }

    /// Returns the faults in the order of their lines.
    pub(super) fn into_faults(mut self) -> Vec<TranscriptFault> {
        self.0.sort_by_key(|fault| fault.line);
        self.0
    }
}

impl fmt::Display for TranscriptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.field.as_str()) {
            (0, _) => write!(f, "the file: {}", self.message),
            (line, "") => write!(f, "line {line}: {}", self.message),
            (line, field) => write!(f, "line {line}, {field}: {}", self.message),
        }
    }
}

impl std::error::Error for TranscriptFault {}

/// The reason why a transcript cannot be written in a dialect. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// It is inconsistent, so it could not be read back.
    #[error("the transcript is not sound")]
    Unsound(#[from] Unsound),
    /// The dialect has one thread, and this transcript is a tree.
    #[error(
        "turn {turn} does not follow the turn before it, and this dialect has one thread: cut \
             the thread of one turn first"
    )]
    Forked {
        /// The first turn of a second thread.
        turn: TurnId,
    },
    /// A line would be longer than the limit for reading.
    #[error(
        "{what} makes a line of {bytes} bytes and {LINE_BYTES_MAX} is the most: keep what is \
             long in it as a blob"
    )]
    TooLong {
        /// The content of the line, such as `message 5 of turn 3fa…`.
        what: String,
        /// The length that it would have.
        bytes: usize,
    },
    /// A line would be nested deeper than the limit for reading.
    #[error("{what} is nested deeper than {max} levels of lists and objects", max = super::line::OWN_DEPTH_MAX)]
    TooDeep {
        /// The content of the line.
        what: String,
    },
    /// A number would change to its neighbour on reading.
    #[error("{what} has a number with more digits than what is read: round it, or keep it as text")]
    Number {
        /// The content of the line.
        what: String,
    },
    /// It has more lines, or more bytes, than the limit for reading.
    #[error("it has more than {max} {unit}: export its threads one by one")]
    TooMuch {
        /// The most.
        max: usize,
        /// The unit of the limit: lines or bytes.
        unit: &'static str,
    },
}
