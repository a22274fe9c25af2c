//! A call's arguments: the language, and the time that its program has.

use crate::CODE_BYTES_MAX;
use agent_host_sdk::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Milliseconds before the call's end at which a program is stopped, so that its output returns.
const MARGIN_MS: u64 = 250;
/// Milliseconds of a program in a call without a deadline, such as one in a test.
const TIME_MS_MAX: u64 = 600_000;

/// The languages by the names that a call may use, the first of each being its own.
const LANGUAGES: [(Language, &[&str]); 1] =
    [(Language::JavaScript, &["javascript", "js", "ecmascript"])];

/// A language whose interpreter is in this component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    JavaScript,
}

/// The arguments of `execute_code`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The program.
    code: String,
    /// Its language; `javascript` if omitted.
    language: Option<String>,
    /// Milliseconds after which it is stopped. The operator's limit applies when it is shorter.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
}

/// Arguments that passed every check.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) code: String,
    pub(crate) language: Language,
    /// The time of the program, below that of the call.
    pub(crate) time: Duration,
}

impl Arguments {
    /// Checks the arguments of a call that the host stops after so many milliseconds.
    pub(crate) fn check(self, deadline_ms: u32) -> Result<Request, ToolError> {
        if self.code.trim().is_empty() {
            return Err(ToolError::invalid("code", "must not be empty"));
        }
        if self.code.len() > CODE_BYTES_MAX {
            let bytes = self.code.len();
            return Err(ToolError::invalid(
                "code",
                format_args!("has {bytes} bytes; {CODE_BYTES_MAX} is the most"),
            ));
        }
        if self.timeout == Some(0) {
            return Err(ToolError::invalid("timeout", "must be 1 ms or more"));
        }
        let language = self.language.as_deref().unwrap_or("javascript");
        Ok(Request {
            language: language_of(language)?,
            time: time(self.timeout, deadline_ms),
            code: self.code,
        })
    }
}

/// Returns the time of a program: what the call asks for, within what the host leaves.
fn time(timeout_ms: Option<u64>, deadline_ms: u32) -> Duration {
    let host_ms = match u64::from(deadline_ms) {
        0 => TIME_MS_MAX,
        ms => ms.saturating_sub(MARGIN_MS.min(ms / 10)).max(1),
    };
    Duration::from_millis(timeout_ms.unwrap_or(host_ms).min(host_ms))
}

fn language_of(name: &str) -> Result<Language, ToolError> {
    let wanted = name.trim().to_lowercase();
    let found = LANGUAGES
        .iter()
        .find(|(_, names)| names.contains(&wanted.as_str()));
    found.map(|(language, _)| *language).ok_or_else(|| {
        let installed: Vec<&str> = LANGUAGES
            .iter()
            .filter_map(|(_, names)| names.first().copied())
            .collect();
        ToolError::invalid(
            "language",
            format_args!(
                "is `{name}`, which is not installed; installed: {}",
                installed.join(", ")
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::time;
    use std::time::Duration;

    #[test]
    fn a_program_ends_before_its_call_does() {
        for (timeout, deadline, expected) in [
            (None, 30_000, 29_750),
            (Some(100), 30_000, 100),
            (Some(60_000), 30_000, 29_750),
            (None, 100, 90),
            (Some(5), 0, 5),
        ] {
            assert_eq!(
                time(timeout, deadline),
                Duration::from_millis(expected),
                "{timeout:?} of {deadline}"
            );
        }
    }
}
