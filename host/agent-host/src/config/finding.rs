//! The findings of the configuration's checks: a key, a message, and how bad it is.

use domain::trigger::SpecFault;
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

/// Makes errors of the faults in a section.
pub(super) fn faults_within(
    section: &str,
    faults: impl IntoIterator<Item = SpecFault>,
) -> impl Iterator<Item = Finding> {
    faults.into_iter().map(move |fault| {
        let message = format!("{}; {}", fault.message, fault.fix);
        error(format!("{section}.{}", fault.field), message)
    })
}
