//! The files of an analysis, read part by part, as far as the limits go.

use super::{Analysis, FilePart, HIT_BYTES_MAX, PATH_BYTES_MAX, STEPS_MIN, plain};
use crate::listing::{self, Part};
use crate::symbols::{Symbol, symbol_of};
use crate::task::text_from;
use agent_host_sdk::{Operation, Outcome, Settlement, Turn, shortened};
use serde_json::json;

/// Parts of one file that are read.
const PARTS_MAX: u32 = 6;
/// Bytes of all files that are read.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Symbols of one file, and of all files.
const FILE_SYMBOLS_MAX: usize = 150;
const SYMBOLS_MAX: usize = 800;
/// Reads that run at the same time.
const READS_AT_ONCE: usize = 8;
/// Notes on files that could not be read.
const NOTES_MAX: usize = 20;

impl Analysis {
    /// Takes parts of files in.
    ///
    /// # Errors
    /// The path that was asked for is no folder and cannot be read.
    pub(super) fn take_parts(
        &mut self,
        turn: Turn<'_>,
        settled: &[Settlement],
    ) -> Result<(), String> {
        let mut reading = std::mem::take(&mut self.reading);
        for settlement in settled {
            let Some(file_part) = reading.remove(&settlement.key) else {
                continue;
            };
            match text_from(turn, settlement) {
                Ok(text) => self.take_part(file_part, &text),
                // What was asked for is neither a folder nor a file.
                Err(reason) if !self.is_folder => return Err(self.untold(settlement, reason)),
                Err(reason) => {
                    let reason = shortened(&plain(&reason), HIT_BYTES_MAX);
                    let verb = if file_part.part == 0 {
                        "was not read"
                    } else {
                        "was not read to its end"
                    };
                    self.note_cut(file_part.file, &format!("{verb}: {reason}"));
                }
            }
        }
        Ok(())
    }

    /// The reason why the task fails, with what it was about where no tool says so in its words.
    fn untold(&self, settlement: &Settlement, reason: String) -> String {
        if matches!(settlement.outcome, Outcome::Failed(_) | Outcome::Parts(_)) {
            return reason;
        }
        let path = shortened(&plain(&self.path), PATH_BYTES_MAX);
        format!("`analyze_code` of `{path}`: {reason}")
    }

    fn take_part(&mut self, file_part: FilePart, text: &str) {
        let Some(file) = self.files.get_mut(file_part.file) else {
            return;
        };
        let Part { text, next } = match listing::part(text) {
            Ok(part) => part,
            Err(bytes) => {
                file.bytes = bytes;
                self.note_cut(
                    file_part.file,
                    &format!("was not read: it is not text; it has {bytes} bytes"),
                );
                return;
            }
        };
        let mut open = file_part.open;
        let mut number = file_part.offset;
        for line in text.lines() {
            number += 1;
            let Some(symbol) = symbol_of(file.language, line, &mut open) else {
                continue;
            };
            if self.symbols == SYMBOLS_MAX || file.symbols.len() == FILE_SYMBOLS_MAX {
                file.cut = true;
            } else {
                self.symbols += 1;
                file.symbols.push(Symbol {
                    line: number,
                    ..symbol
                });
            }
        }
        file.lines = file.lines.max(Some(number));
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.read_bytes = self.read_bytes.saturating_add(bytes);
        if file.bytes == 0 && next.is_none() && file_part.part == 0 {
            file.bytes = bytes;
        }
        match next {
            Some(offset) if file_part.part + 1 < PARTS_MAX && offset > file_part.offset => {
                self.waiting.push(FilePart {
                    offset,
                    part: file_part.part + 1,
                    open,
                    ..file_part
                });
            }
            Some(_) => {
                let why = format!(
                    "was read up to line {number}: {PARTS_MAX} parts of a file are the most"
                );
                self.note_cut(file_part.file, &why);
            }
            None => {}
        }
    }

    /// Marks a file that was not read, or not to its end, with a note on it.
    fn note_cut(&mut self, file: usize, what: &str) {
        let Some(file) = self.files.get_mut(file) else {
            return;
        };
        file.cut = true;
        if self.notes.len() < NOTES_MAX {
            let path = shortened(&plain(&file.path), PATH_BYTES_MAX);
            self.notes.push(format!("`{path}` {what}"));
        }
    }

    /// The reads that are due, as far as the turn's budget and the limits of an analysis go. They
    /// are one step's, which the host takes when the last of them has ended.
    pub(super) fn next_reads(&mut self, turn: Turn<'_>) -> Vec<Operation> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        if let Some(limit) = self.limit_met(turn) {
            self.leave_out(&limit);
            return Vec::new();
        }
        let calls = usize::try_from(turn.left().tool_calls).unwrap_or(usize::MAX);
        let mut reads = Vec::new();
        for _ in 0..calls.min(READS_AT_ONCE) {
            let Some(file_part) = self.waiting.pop() else {
                break;
            };
            let Some(file) = self.files.get(file_part.file) else {
                continue;
            };
            let key = format!("read-{}-{}", file_part.file, file_part.part);
            let read = json!({ "path": file.path, "offset": file_part.offset });
            reads.push(Operation::tool(key.clone(), "read_file", read));
            self.reading.insert(key, file_part);
        }
        reads
    }

    /// Returns the limit that leaves no room for another read, if one does.
    fn limit_met(&self, turn: Turn<'_>) -> Option<String> {
        let left = turn.left();
        if self.read_bytes >= READ_BYTES_MAX {
            Some(format!("{READ_BYTES_MAX} bytes of all files are the most"))
        } else if left.tool_calls == 0 {
            Some("no tool calls are left of this task's share (toolCallsMax)".to_owned())
        } else if left.steps < STEPS_MIN {
            Some("too few steps are left of this task (stepsMax)".to_owned())
        } else {
            None
        }
    }

    /// Gives up what waits to be read, and says so with the limit that was met.
    fn leave_out(&mut self, limit: &str) {
        let waiting = std::mem::take(&mut self.waiting);
        let unread = waiting
            .iter()
            .filter(|file_part| file_part.part == 0)
            .count();
        let partly = waiting.len() - unread;
        for file_part in waiting {
            if let Some(file) = self.files.get_mut(file_part.file) {
                file.cut = true;
            }
        }
        let to_end = if partly > 0 {
            format!(", and {partly} not to their end")
        } else {
            String::new()
        };
        self.notes
            .push(format!("{unread} files were not read{to_end}: {limit}"));
    }
}
