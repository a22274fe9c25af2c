//! The state of a line that is carried out, and of a command that has ended.

use crate::meter::{Meter, Stop};
use crate::{Answered, Stopped, Wanted};
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
    pub(crate) fn new(skills: &'a SkillSet, answered: &'a [Answered], stopped: Stopped) -> Self {
        Self {
            skills,
            meter: Meter::new(stopped),
            answered,
            made: 0,
            variables: BTreeMap::new(),
            err: String::new(),
            last: 0,
        }
    }

    /// Counts the value of a variable, and returns a copy; nothing without one.
    pub(crate) fn variable(&mut self, name: &str) -> Result<String, Stop> {
        if name == "?" {
            return Ok(self.last.to_string());
        }
        let value = self.variables.get(name).map_or("", String::as_str);
        self.meter.longer(0, value.len())?;
        Ok(value.to_owned())
    }

    /// Returns a copy of the variables, for commands whose own ones are dropped with them.
    pub(crate) fn saved(&mut self) -> Result<BTreeMap<String, String>, Stop> {
        let sizes = self
            .variables
            .iter()
            .map(|(name, value)| 128 + name.len() + value.len());
        self.meter.work(sizes.sum())?;
        Ok(self.variables.clone())
    }

    /// Returns the text that says which calls stand when a line does not go on; none without any.
    pub(crate) fn status(&self) -> String {
        match self.answered.len() {
            0 => String::new(),
            1 => "; the call that it made stands: look at what it did before you go on".to_owned(),
            calls => format!(
                "; the {calls} calls that it made stand: look at what they did before you go on"
            ),
        }
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
                "the skills changed while the line was carried out".to_owned(),
            ));
        }
        self.meter.repeat()?;
        self.made += 1;
        self.meter.work(answered.text.len())?;
        Ok(answered)
    }
}
