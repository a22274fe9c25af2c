//! The state of a line that is carried out, and of a command that has ended.

use crate::meter::{Meter, Stop};
use crate::{Answered, Wanted};
use domain::skill::{COMMAND_CALLS_MAX, SkillSet};
use std::collections::BTreeMap;

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
    pub(crate) skills: &'a SkillSet,
    pub(crate) meter: Meter,
    answered: &'a [Answered],
    /// Number of calls that were made so far.
    made: usize,
    pub(crate) variables: BTreeMap<String, String>,
    /// Standard error of everything so far.
    pub(crate) err: String,
    /// The exit code of the last command.
    pub(crate) last: u8,
}

impl<'a> Line<'a> {
    pub(crate) fn new(skills: &'a SkillSet, answered: &'a [Answered]) -> Self {
        Self {
            skills,
            meter: Meter::new(),
            answered,
            made: 0,
            variables: BTreeMap::new(),
            err: String::new(),
            last: 0,
        }
    }

    /// Returns the value of a variable; nothing without one.
    pub(crate) fn variable(&self, name: &str) -> String {
        match name {
            "?" => self.last.to_string(),
            _ => self.variables.get(name).cloned().unwrap_or_default(),
        }
    }

    /// Returns a copy of the variables, for commands whose own ones are dropped with them.
    pub(crate) fn saved(&mut self) -> Result<BTreeMap<String, String>, Stop> {
        let sizes = self
            .variables
            .iter()
            .map(|(name, value)| name.len() + value.len());
        self.meter.work(sizes.sum())?;
        Ok(self.variables.clone())
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
        let Some(answered) = self.answered.get(self.made) else {
            return Err(Stop::Call(wanted));
        };
        if answered.tool != wanted.tool || answered.arguments != wanted.arguments {
            return Err(Stop::Over(
                "the skills changed while the line was carried out; the calls that it had made \
                 so far stand. Look at what they did before you go on"
                    .to_owned(),
            ));
        }
        self.made += 1;
        self.meter.work(answered.text.len())?;
        Ok(answered)
    }
}
