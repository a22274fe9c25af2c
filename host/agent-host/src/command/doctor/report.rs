//! The findings of `doctor`.

use crate::failure::Failure;
use serde::Serialize;

/// The grade of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Grade {
    /// All is well.
    Ok,
    /// A host runs, but an operator should look at it.
    Warn,
    /// A host does not start, or does not do its work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The thing.
    pub(super) name: &'static str,
    pub(super) grade: Grade,
    pub(super) message: String,
    /// The way to mend it; none where the message says it, or nothing is wrong.
    pub(super) fix: Option<String>,
}

impl Grade {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Finding {
    pub(super) fn new(name: &'static str, grade: Grade, message: impl Into<String>) -> Self {
        Self {
            name,
            grade,
            message: message.into(),
            fix: None,
        }
    }

    /// The same with a fix.
    pub(super) fn mended_by(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }

    /// A failure that kept something from being looked at.
    pub(super) fn of_failure(name: &'static str, failure: &Failure) -> Self {
        let causes: Vec<String> = failure.error.chain().map(ToString::to_string).collect();
        Self {
            name,
            grade: Grade::Fail,
            message: causes.join(": "),
            fix: failure.advice.clone(),
        }
    }

    /// Returns its lines: the first says what it is, the second how to mend it.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { name, message, .. } = self;
        let grade = self.grade.as_str();
        let first = format!("{grade:<5} {name:<14} {message}");
        let fix = self.fix.iter().map(|fix| format!("{:<21}fix: {fix}", ""));
        std::iter::once(first).chain(fix).collect()
    }
}
