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

/// Milliseconds that a program runs unless its call says otherwise: less than the second of
/// computing that a component has by default, after which the host ends the call and what was
/// printed is lost. They are the clock's, since a component cannot see how much it has computed.
const COMPUTING_MS: u64 = 800;

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
    code: String,
    #[schemars(extend("examples" = ["javascript"]))]
    language: Option<String>,
    /// Milliseconds; 800 by default.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
}

/// The time that a program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Its time in all, what its timers skip included. Below that of the call.
    pub(crate) whole: Duration,
    /// The time that it may run for, what its timers skip left out.
    pub(crate) computing: Duration,
}

/// Arguments that passed every check.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) code: String,
    pub(crate) language: Language,
    pub(crate) allowance: Allowance,
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
            allowance: allowance(self.timeout, deadline_ms),
            code: self.code,
        })
    }
}

/// Returns the time of a program: what the call asks for, within what the host leaves.
fn allowance(timeout_ms: Option<u64>, deadline_ms: u32) -> Allowance {
    let host_ms = match u64::from(deadline_ms) {
        0 => TIME_MS_MAX,
        ms => ms.saturating_sub(MARGIN_MS.min(ms / 10)).max(1),
    };
    let within = |ms: u64| Duration::from_millis(ms.min(host_ms));
    Allowance {
        whole: within(timeout_ms.unwrap_or(host_ms)),
        computing: within(timeout_ms.unwrap_or(COMPUTING_MS)),
    }
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
    use super::allowance;
    use std::time::Duration;

    #[test]
    fn a_program_ends_before_its_call_does() {
        for (timeout, deadline, whole, computing) in [
            (None, 30_000, 29_750, 800),
            (Some(100), 30_000, 100, 100),
            (Some(60_000), 30_000, 29_750, 29_750),
            (None, 100, 90, 90),
            (Some(5), 0, 5, 5),
        ] {
            let allowed = allowance(timeout, deadline);
            let case = format!("{timeout:?} of {deadline}");
            assert_eq!(allowed.whole, Duration::from_millis(whole), "{case}");
            assert_eq!(
                allowed.computing,
                Duration::from_millis(computing),
                "{case}"
            );
        }
    }
}
