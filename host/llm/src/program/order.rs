//! The order for one run of a program: what is started, with what, and within which limits. It goes
//! from the host to the supervisor, and its part about confinement on to the process that becomes
//! the program.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Open files of a program and of each process that it starts.
pub(crate) const OPEN_FILES_MAX: u64 = 4_096;

/// The first line of a supervisor's input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// The program's file.
    pub(crate) program: PathBuf,
    /// Its arguments. No shell reads them.
    pub(crate) arguments: Vec<String>,
    /// Its whole environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// Its working folder.
    pub(crate) folder: PathBuf,
    /// Its folder for temporary files, which the supervisor removes at its end.
    pub(crate) temporary: PathBuf,
    /// Processes at the same time.
    pub(crate) processes_max: u32,
    /// Bytes of memory of all of them.
    pub(crate) memory_bytes_max: u64,
    /// Milliseconds between the signal to end and the end.
    pub(crate) grace_ms: u64,
    /// The limits that it starts with.
    pub(crate) confinement: Confinement,
}

/// The limits that a process gives itself for good before it becomes the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confinement {
    /// The process that must be its parent.
    #[serde(default)]
    pub(crate) supervisor: u32,
    /// Files and folders that may be read and executed.
    pub(crate) read: Vec<PathBuf>,
    /// Files and folders that may also be written.
    pub(crate) write: Vec<PathBuf>,
    /// True if nothing is started where that cannot be enforced.
    pub(crate) is_required: bool,
    /// Seconds of computing of each process.
    pub(crate) cpu_s_max: u64,
    /// Bytes of each file.
    pub(crate) file_bytes_max: u64,
}

/// The end of a supervisor, as its exit code says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The program ended with success.
    Success,
    /// The program ended with anything else.
    Failure,
    /// Its folders cannot be enforced, and have to be.
    NotConfined,
    /// It could not be started.
    NotStarted,
    /// It had too many processes.
    Processes,
    /// It had too much memory.
    Memory,
    /// The host told it to end, or is gone.
    Instructed,
    /// Something that it started could not be ended.
    Left,
}

impl Exit {
    const ALL: [Self; 8] = [
        Self::Success,
        Self::Failure,
        Self::NotConfined,
        Self::NotStarted,
        Self::Processes,
        Self::Memory,
        Self::Instructed,
        Self::Left,
    ];

    /// Returns the exit code that stands for it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::NotConfined => 201,
            Self::NotStarted => 202,
            Self::Processes => 203,
            Self::Memory => 204,
            Self::Instructed => 205,
            Self::Left => 206,
        }
    }

    /// Returns the end that a code stands for. Any other code is a failure.
    pub(crate) fn from_code(code: i32) -> Self {
        Self::ALL
            .into_iter()
            .find(|exit| i32::from(exit.code()) == code)
            .unwrap_or(Self::Failure)
    }

    /// Returns the end of a supervisor whose program ended with this code; none for a signal.
    pub(crate) fn of_program(code: Option<i32>) -> Self {
        match code.map(Self::from_code) {
            Some(exit @ (Self::Success | Self::NotConfined | Self::NotStarted)) => exit,
            Some(
                Self::Failure | Self::Processes | Self::Memory | Self::Instructed | Self::Left,
            )
            | None => Self::Failure,
        }
    }
}

/// Returns the limit that was met, in words; none if it was no limit.
pub(crate) fn limit_of(exit: Exit) -> Option<&'static str> {
    match exit {
        Exit::Processes => Some("it had more processes than `limits.processesMax`"),
        Exit::Memory => Some("it took more memory than `limits.memoryBytesMax`"),
        Exit::Success
        | Exit::Failure
        | Exit::NotConfined
        | Exit::NotStarted
        | Exit::Instructed
        | Exit::Left => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn an_exit_code_means_what_the_supervisor_meant_by_it() {
        for exit in Exit::ALL {
            assert_eq!(Exit::from_code(i32::from(exit.code())), exit);
        }
        assert_eq!(Exit::from_code(77), Exit::Failure);
    }

    #[test]
    fn a_program_cannot_say_that_a_limit_ended_it() {
        for (code, exit) in [
            (Some(0), Exit::Success),
            (Some(1), Exit::Failure),
            (Some(3), Exit::Failure),
            (Some(204), Exit::Failure),
            (Some(205), Exit::Failure),
            (Some(206), Exit::Failure),
            (None, Exit::Failure),
            (Some(202), Exit::NotStarted),
        ] {
            assert_eq!(Exit::of_program(code), exit, "{code:?}");
        }
    }
}
