//! The result of an analysis.

use super::Analysis;
use crate::task::reply;
use agent_host_sdk::Step;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The sum of the files of one language.
#[derive(Default)]
struct Total {
    files: u64,
    lines: u64,
    bytes: u64,
}

impl Analysis {
    /// Everything that was found.
    pub(super) fn data(&self) -> Value {
        let mut totals: BTreeMap<&str, Total> = BTreeMap::new();
        for file in &self.files {
            let total = totals.entry(file.language.as_str()).or_default();
            total.files += 1;
            total.lines += file.lines;
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

    /// The reply, with a summary if there is one.
    pub(super) fn reported(&self, summary: Option<String>) -> Step {
        let mut data = self.data();
        if let Some(fields) = data.as_object_mut() {
            fields.insert("summary".to_owned(), summary.into());
        }
        reply(&data)
    }
}
