//! The findings of the configuration's checks: a key, a message, and how bad it is.

use serde::Serialize;
use std::fmt;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// The host does not start.
    Error,
    /// The host starts, but an operator should look at it.
    Warning,
}

/// One thing that a check of the configuration has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) key: String,
    /// The fault and its fix.
    pub(crate) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}: {}", self.key, self.message)
    }
}

/// Makes a finding because of which the host does not start.
pub(super) fn error(key: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Error,
        key: key.into(),
        message: message.into(),
    }
}

/// Makes a finding that an operator should look at.
pub(super) fn warning(key: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Warning,
        key: key.into(),
        message: message.into(),
    }
}

/// Makes an error of a text that begins with a field of a section: `field: what is wrong with it`.
/// A text without a field is about the section.
pub(super) fn error_within(section: &str, text: &str) -> Finding {
    let is_field = |field: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._[]-".contains(c);
        !field.is_empty() && field.chars().all(is_plain)
    };
    match text.split_once(": ").filter(|(field, _)| is_field(field)) {
        Some((field, message)) => error(format!("{section}.{field}"), message),
        None => error(section, text),
    }
}
