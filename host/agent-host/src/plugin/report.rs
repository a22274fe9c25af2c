//! The report of a test: what was run, and what that used.

use super::expected::shown;
use domain::operation::CallUsage;
use serde_json::{Value, json};

/// One call or one scripted conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    label: String,
    ended: String,
    /// The text of its error; empty without one.
    why: String,
    usage: Option<CallUsage>,
}

impl Run {
    pub(crate) fn new(
        label: impl Into<String>,
        ended: impl Into<String>,
        usage: Option<&CallUsage>,
    ) -> Self {
        Self {
            label: label.into(),
            ended: ended.into(),
            why: String::new(),
            usage: usage.copied(),
        }
    }

    /// The same, with the text of its error.
    pub(crate) fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// Returns the line for people.
    pub(crate) fn line(&self) -> String {
        let usage = self.usage.as_ref().map(used);
        let usage = usage.map_or_else(String::new, |usage| format!(", {usage}"));
        let why = if self.why.is_empty() {
            String::new()
        } else {
            format!(" ({})", shown(&self.why))
        };
        format!("  ran      {}: {}{why}{usage}", self.label, self.ended)
    }

    /// Returns the document for programs.
    pub(crate) fn document(&self) -> Value {
        json!({
            "run": self.label, "ended": self.ended, "why": self.why,
            "wall_us": self.usage.map(|usage| usage.wall_us),
            "memory_bytes_peak": self.usage.map(|usage| usage.memory_bytes_peak),
        })
    }
}

/// Returns the time and the memory that a call used.
pub(crate) fn used(usage: &CallUsage) -> String {
    let ms = usage.wall_us.div_ceil(100);
    format!(
        "{}.{} ms, {}",
        ms / 10,
        ms % 10,
        mebibytes(usage.memory_bytes_peak)
    )
}

/// Returns bytes as people read them.
pub(crate) fn mebibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::{Run, mebibytes};
    use domain::operation::CallUsage;

    #[test]
    fn a_run_is_a_line_with_its_time_and_its_memory() {
        let usage = CallUsage {
            wall_us: 1_234,
            memory_bytes_peak: 1_200_000,
            ..CallUsage::default()
        };
        assert_eq!(
            Run::new("t", "done", Some(&usage)).line(),
            "  ran      t: done, 1.3 ms, 1.2 MiB"
        );
        assert_eq!(Run::new("t", "done", None).line(), "  ran      t: done");
        assert_eq!(
            Run::new("t", "failed", None).because("no host").line(),
            "  ran      t: failed (\"no host\")"
        );
        assert_eq!(mebibytes(0), "0.0 MiB");
    }
}
