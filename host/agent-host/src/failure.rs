//! The failure of a command: its exit code, the error, and advice.

use serde_json::{Value, json};
use std::process::ExitCode;

/// The exit codes of the program. 2 is also the exit code of the command line's parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Something went wrong.
    Failed = 1,
    /// The command or the configuration makes no sense.
    Usage = 2,
    /// The host or a rule refused.
    Refused = 3,
    /// No host is running.
    Unreachable = 4,
}

/// A failure. Not an error itself, so that every error can become one.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code of the program.
    pub(crate) exit: Exit,
    /// The error, with its causes.
    pub(crate) error: anyhow::Error,
    /// Advice on how to fix it.
    pub(crate) advice: Option<String>,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            exit: Exit::Failed,
            error: error.into(),
            advice: None,
        }
    }
}

impl Failure {
    /// Makes a failure with another exit code.
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit,
            error: error.into(),
            advice: None,
        }
    }

    /// The same, with what to do about it.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Returns the error, its causes and the advice, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("error: {}", self.error)];
        lines.extend(
            self.error
                .chain()
                .skip(1)
                .map(|cause| format!("  because: {cause}")),
        );
        lines.extend(self.advice.iter().map(|advice| format!("  try: {advice}")));
        lines
    }

    /// The same as a document.
    pub(crate) fn document(&self) -> Value {
        let causes: Vec<String> = self
            .error
            .chain()
            .skip(1)
            .map(ToString::to_string)
            .collect();
        json!({ "error": { "message": self.error.to_string(), "causes": causes, "advice": self.advice, "exit": self.exit as u8 } })
    }

    /// Returns the exit code for the shell.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}
