//! `keep-program` and `confine-program`.

use clap::Args;
use std::ffi::OsString;

/// The command that keeps a program in a model's place.
pub(crate) const KEEP_COMMAND: &str = "keep-program";
/// The command that confines itself and becomes such a program.
pub(crate) const CONFINE_COMMAND: &str = "confine-program";

/// The confinement of a program, and its command.
#[derive(Debug, Args)]
pub(crate) struct ConfineProgram {
    /// The confinement, as JSON
    pub(crate) confinement: String,
    /// The program's file and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
