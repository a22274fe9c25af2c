//! The failure of a command: its exit code, the error, and advice with commands to run.

use crate::config::document::Loaded;
use crate::config::locations::locate;
use crate::terminal::quoted;
use serde_json::{Value, json};
use std::path::Path;
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

/// A command of this program, called as it was called now, for the host of a configuration and of
/// the data folder that the command line named.
pub(crate) fn command(loaded: &Loaded, words: &str) -> String {
    let command = command_for(&loaded.file, words);
    match &loaded.data {
        Some(data) => format!("{command} --data {}", quoted(data)),
        None => command,
    }
}

/// The same, for the host of a config file and its own data folder.
pub(crate) fn command_for(file: &Path, words: &str) -> String {
    // The file that is found without being named need not be named.
    let is_found = locate(None).is_ok_and(|found| found == file);
    line(
        std::env::args_os().next().as_deref().map(Path::new),
        (!is_found).then_some(file),
        words,
    )
}

/// The same, for a config file that is yet to be named.
pub(crate) fn command_with(config: &str, words: &str) -> String {
    line(
        std::env::args_os().next().as_deref().map(Path::new),
        Some(Path::new(config)),
        words,
    )
}

fn line(called: Option<&Path>, config: Option<&Path>, words: &str) -> String {
    // A name without a folder was found on the PATH, under which name ever.
    let called = called
        .filter(|called| called.components().nth(1).is_some())
        .map_or_else(|| "agent-host".to_owned(), quoted);
    let config = config
        .map(|file| format!(" --config {}", quoted(file)))
        .unwrap_or_default();
    format!("{called} {words}{config}")
}

#[cfg(test)]
mod tests {
    use super::{command, line};
    use crate::config::{Config, Loaded};
    use std::path::Path;

    #[test]
    fn a_command_that_is_told_names_the_data_folder_of_the_command_line() {
        let mut loaded = Loaded {
            config: Config::default(),
            file: "/etc/a.toml".into(),
            written: "".into(),
            data: None,
            trusts_address: false,
            overlaid: Vec::new(),
        };
        let reported = command(&loaded, "chat");
        assert!(
            reported.ends_with(" chat --config /etc/a.toml"),
            "{reported}"
        );
        loaded.data = Some("/srv/my data".into());
        let reported = command(&loaded, "chat");
        let expected = " chat --config /etc/a.toml --data '/srv/my data'";
        assert!(reported.ends_with(expected), "{reported}");
    }

    #[test]
    fn a_command_that_is_told_can_be_typed_as_it_stands() {
        for (called, config, expected) in [
            ("agent-host", None, "agent-host chat"),
            ("./agent-host", None, "./agent-host chat"),
            (
                "/opt/my host/agent-host",
                Some("/etc/a.toml"),
                "'/opt/my host/agent-host' chat --config /etc/a.toml",
            ),
            (
                "target/debug/agent-host",
                Some("/it's/a.toml"),
                r"target/debug/agent-host chat --config '/it'\''s/a.toml'",
            ),
        ] {
            assert_eq!(
                line(Some(Path::new(called)), config.map(Path::new), "chat"),
                expected
            );
        }
        assert_eq!(line(None, None, "chat"), "agent-host chat");
    }
}
