//! The state of a line that is carried out, and of a command that has ended.

use agent_host_sdk::log::{self, Level};
use agent_host_shell::{Answered, COMMAND_CALLS_MAX, CommandLine, Wanted};
use std::collections::BTreeMap;

/// Bytes that one command or one word may make.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The reason why a line does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A call is needed that has no result yet.
    Call(Wanted),
    /// A limit is met, or the line cannot go on: the reason, for people.
    Over(String),
}

/// Adds chunks to a text.
///
/// # Errors
/// It would get longer than one command or one word may make.
pub(crate) fn push(text: &mut String, chunks: &[&str]) -> Result<(), Stop> {
    for chunk in chunks {
        fits(text.len().saturating_add(chunk.len()))?;
        text.push_str(chunk);
    }
    Ok(())
}

/// Checks the bytes that one command or one word makes.
pub(crate) fn fits(bytes: usize) -> Result<(), Stop> {
    if bytes > TEXT_BYTES_MAX {
        return Err(Stop::Over(format!(
            "a text of more than {TEXT_BYTES_MAX} bytes would be made; narrow it"
        )));
    }
    Ok(())
}

/// The output of one command.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) exit: u8,
}

impl Ended {
    /// Returns the end of a command that fails.
    pub(crate) fn failed(exit: u8, err: impl Into<String>) -> Self {
        let mut err = err.into();
        if !err.ends_with('\n') {
            err.push('\n');
        }
        Self {
            exit,
            err,
            ..Self::default()
        }
    }

    /// Returns the end of a command that succeeds.
    pub(crate) fn printed(out: String) -> Self {
        Self {
            out,
            ..Self::default()
        }
    }
}

/// A line that is being carried out.
pub(crate) struct Line<'a> {
    pub(crate) given: &'a CommandLine<'a>,
    /// Number of commands that were begun so far.
    begun: usize,
    /// Number of calls that were made so far.
    made: usize,
    pub(crate) variables: BTreeMap<String, String>,
    /// Standard error of everything so far.
    pub(crate) err: String,
    /// The exit code of the last command.
    pub(crate) last: u8,
}

impl<'a> Line<'a> {
    pub(crate) fn new(given: &'a CommandLine<'a>) -> Self {
        Self {
            given,
            begun: 0,
            made: 0,
            variables: BTreeMap::new(),
            err: String::new(),
            last: 0,
        }
    }

    /// Begins a command, and notes that in the log: where the sandbox ends a command, the host has
    /// the line carried out again up to it.
    ///
    /// # Errors
    /// The line is to end before it.
    pub(crate) fn begin(&mut self) -> Result<(), Stop> {
        let cut = self.given.cut.as_ref();
        if let Some(cut) = cut.filter(|cut| cut.after == self.begun) {
            return Err(Stop::Over(cut.why.clone()));
        }
        self.begun += 1;
        log::write(Level::Trace, "a command begins");
        Ok(())
    }

    /// Returns the value of a variable; an empty one without it.
    pub(crate) fn variable(&self, name: &str) -> String {
        if name == "?" {
            return self.last.to_string();
        }
        self.variables.get(name).cloned().unwrap_or_default()
    }

    /// Returns the result of a call.
    ///
    /// # Errors
    /// [`Stop::Call`] when it has none yet.
    pub(crate) fn call(&mut self, wanted: Wanted) -> Result<&'a Answered, Stop> {
        if self.made >= COMMAND_CALLS_MAX {
            return Err(Stop::Over(format!(
                "the line makes more than {COMMAND_CALLS_MAX} calls; divide it"
            )));
        }
        let Some(answered) = self.given.answered.get(self.made) else {
            return Err(Stop::Call(wanted));
        };
        if answered.tool != wanted.tool || answered.arguments != wanted.arguments {
            return Err(Stop::Over(
                "the skills changed while the line was carried out".to_owned(),
            ));
        }
        self.made += 1;
        Ok(answered)
    }
}
