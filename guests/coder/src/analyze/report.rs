//! The result of an analysis.

use super::Analysis;
use crate::task::{REPLY_BYTES_MAX, reply};
use agent_host_sdk::Step;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bytes of an analysis between two steps, of the 256 KiB of a session's state.
const STATE_BYTES_MAX: usize = 200 << 10;
/// The note on what did not fit.
const SHRUNK: &str = "not all symbols, hits and files are here: there was no room for more";

/// The sum of the files of one language.
#[derive(Default)]
struct Total {
    files: u64,
    lines: u64,
    bytes: u64,
}

impl Analysis {
    /// The sums of all files that were read, by language.
    pub(super) fn languages(&self) -> Value {
        let mut totals: BTreeMap<&str, Total> = BTreeMap::new();
        for file in &self.files {
            let Some(lines) = file.lines else {
                continue;
            };
            let total = totals.entry(file.language.as_str()).or_default();
            total.files += 1;
            total.lines += lines;
            total.bytes += file.bytes;
        }
        let languages: BTreeMap<&str, Value> = totals
            .into_iter()
            .map(|(language, total)| {
                let value = json!({
                    "files": total.files, "lines": total.lines, "bytes": total.bytes,
                });
                (language, value)
            })
            .collect();
        json!(languages)
    }

    /// Everything that was found.
    pub(super) fn data(&self, languages: &Value) -> Value {
        json!({
            "operation": "analyze_code",
            "path": self.path,
            "languages": languages,
            "otherFiles": self.others,
            "patterns": self.patterns,
            "files": self.files,
            "notes": self.notes,
        })
    }

    /// The reply, with a summary if there is one. It has as much of what was found as there is room
    /// for.
    pub(super) fn reported(mut self, summary: Option<&str>) -> Step {
        let languages = self.languages();
        loop {
            let mut data = self.data(&languages);
            if let Some(fields) = data.as_object_mut() {
                fields.insert("summary".to_owned(), json!(summary));
            }
            if data.to_string().len() <= REPLY_BYTES_MAX || !self.shrink() {
                return reply(&data);
            }
        }
    }

    /// Makes it small enough for the session's state.
    pub(super) fn fit_state(&mut self) {
        while json!(self).to_string().len() > STATE_BYTES_MAX && self.shrink() {}
    }

    /// Leaves out an eighth of the longest lists of hits and symbols, or of the files when there
    /// are none, and says so. Returns whether there was anything to leave out.
    fn shrink(&mut self) -> bool {
        let hits = self.patterns.iter().map(|pattern| pattern.hits.len());
        let symbols = self.files.iter().map(|file| file.symbols.len());
        let longest = hits.chain(symbols).max().unwrap_or(0);
        let room = longest - longest.div_ceil(8);
        if longest > 0 {
            for pattern in &mut self.patterns {
                pattern.hits.truncate(room);
            }
            for file in &mut self.files {
                file.cut |= file.symbols.len() > room;
                file.symbols.truncate(room);
            }
        } else if self.files.is_empty() {
            return false;
        } else {
            let count = self.files.len();
            self.files.truncate(count - count.div_ceil(8));
        }
        if !self.notes.iter().any(|note| note == SHRUNK) {
            self.notes.push(SHRUNK.to_owned());
        }
        true
    }
}
