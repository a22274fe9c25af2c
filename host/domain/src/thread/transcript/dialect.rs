//! The dialects of JSON lines, and how a file's dialect is detected.
//!
//! Each is a file and a folder that can go without the other, pi's with 1,020 lines and aix's with
//! 440. With one go its variant of [`Dialect`], its arms below, and the API's name for it; what
//! both share stays in `blocks.rs`.

pub mod aix;
mod blocks;
pub mod pi;

use super::fault::{TranscriptFault, Unwritable};
use super::line;
use super::{Adoption, Reading, Transcript};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Lines from the start of a file that are read to detect its dialect.
pub const DETECTION_LINES_MAX: usize = 16;

/// A dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Entries of a tree, as pi's sessions are stored, version 3.
    Pi,
    /// Lines of users and assistants, one after the other, as aix reads them.
    Aix,
}

impl Dialect {
    /// Writes a transcript in this dialect.
    ///
    /// # Errors
    /// It is inconsistent, or the dialect cannot express it: see [`Unwritable`].
    pub fn write(self, transcript: &Transcript) -> Result<Vec<u8>, Unwritable> {
        match self {
            Self::Pi => pi::write(transcript),
            Self::Aix => aix::write(transcript),
        }
    }

    /// Reads a file in this dialect, whether written by this host or by another program.
    ///
    /// # Errors
    /// The first invalid element.
    pub fn read(self, file: &[u8], adoption: &Adoption) -> Result<Reading, TranscriptFault> {
        match self {
            Self::Pi => pi::read(file, adoption),
            Self::Aix => aix::read(file, adoption),
        }
    }
}

/// Detects the dialect of a file from its first lines.
///
/// In pi's dialect the session's line has a number as its version and every other line is an entry
/// of a tree. In aix's dialect the version is a text or missing, and messages are in lines of the
/// type `user` or `assistant`. Lines that are not JSON objects are skipped.
///
/// # Errors
/// The first lines do not identify a dialect.
pub fn detect(file: &[u8]) -> Result<Dialect, TranscriptFault> {
    let mut untold = None;
    let mut wrong = None;
    for (number, text) in line::split(file)?.into_iter().take(DETECTION_LINES_MAX) {
        let line = match text.and_then(|text| line::parse(number, text, line::OWN_DEPTH_MAX)) {
            Ok(line) => line,
            Err(fault) => {
                wrong = wrong.or(Some(fault));
                continue;
            }
        };
        let fields = line.fields();
        match fields.text("type").unwrap_or_default() {
            Some("session") if fields.value("version").is_some_and(Value::is_number) => {
                return Ok(Dialect::Pi);
            }
            Some("session") if fields.value("version").is_some_and(Value::is_string) => {
                return Ok(Dialect::Aix);
            }
            Some("user" | "assistant") => return Ok(Dialect::Aix),
            Some("message" | "custom_message" | "compaction" | "branch_summary") => {
                return Ok(Dialect::Pi);
            }
            _ => untold = untold.or(Some(number)),
        }
    }
    let message = "neither it nor the lines after it tell the dialect: pi's session line has \
                   `\"version\":3`, aix's has lines of the type \
                   `user` and `assistant`";
    Err(wrong.unwrap_or_else(|| TranscriptFault::line(untold.unwrap_or(1), message)))
}
