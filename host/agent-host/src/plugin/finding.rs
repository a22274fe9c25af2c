//! Findings of a test of a plugin: what is wrong, where, and how to fix it.

use serde::Serialize;

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// A host refuses it, or a conversation fails by it.
    Error,
    /// It works, and hardly as it was meant.
    Warning,
    /// Something to know.
    Note,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }

    fn counted(self, count: usize) -> String {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", self.as_str())
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// The part of the plugin.
    #[serde(rename = "where")]
    pub(crate) place: String,
    pub(crate) what: String,
    pub(crate) fix: String,
    /// The last lines that the guest wrote to stderr, when it trapped.
    pub(crate) stderr: Vec<String>,
}

impl Finding {
    pub(crate) fn error(
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Error, place, what, fix)
    }

    pub(crate) fn warning(
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Warning, place, what, fix)
    }

    pub(crate) fn note(
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Note, place, what, fix)
    }

    pub(crate) fn new(
        severity: Severity,
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            place: place.into(),
            what: what.into(),
            fix: fix.into(),
            stderr: Vec::new(),
        }
    }

    /// Adds what the guest wrote to stderr.
    pub(crate) fn with_stderr(mut self, lines: &[String]) -> Self {
        self.stderr = lines.to_vec();
        self
    }

    /// Returns the line for people.
    pub(crate) fn line(&self) -> String {
        let Self {
            severity,
            place,
            what,
            fix,
            ..
        } = self;
        format!("{:<8} {place}: {what}; {fix}", severity.as_str())
    }

    /// Returns that line, and those of stderr below it.
    pub(crate) fn lines(&self) -> Vec<String> {
        let stderr = self.stderr.iter().map(|line| format!("  stderr   {line}"));
        std::iter::once(self.line()).chain(stderr).collect()
    }
}

/// Returns how many findings there are of each weight, in words.
pub(crate) fn summary(findings: &[Finding]) -> String {
    [Severity::Error, Severity::Warning, Severity::Note]
        .map(|severity| severity.counted(count(findings, severity)))
        .join(", ")
}

/// Returns the number of findings of a weight.
pub(crate) fn count(findings: &[Finding], severity: Severity) -> usize {
    findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .count()
}

#[cfg(test)]
mod tests {
    use super::{Finding, summary};

    #[test]
    fn a_finding_is_a_line_with_what_where_and_the_fix() {
        let finding = Finding::error("tool `t`", "it traps", "return `failed` instead");
        let line = "error    tool `t`: it traps; return `failed` instead";
        assert_eq!(finding.lines(), [line]);
        let finding = finding.with_stderr(&["TypeError: text".to_owned()]);
        assert_eq!(finding.lines(), [line, "  stderr   TypeError: text"]);
        let document = serde_json::json!(finding);
        assert_eq!(document["stderr"][0], "TypeError: text");
        assert_eq!(document["where"], "tool `t`");
        assert_eq!(
            summary(&[finding, Finding::note("a", "b", "c")]),
            "1 error, 0 warnings, 1 note"
        );
    }
}
