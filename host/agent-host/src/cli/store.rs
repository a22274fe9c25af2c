//! The commands about stored data: checks, backups.

use clap::Args;
use std::path::PathBuf;

/// The destination of a backup.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// A file that is not there yet
    pub(crate) file: PathBuf,
}

/// Options for checking the stored data.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Do the same as `rebuild` first
    #[arg(long)]
    pub(crate) rebuild: bool,
}

/// The backup to restore, and its destination.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup
    pub(crate) file: PathBuf,
    /// A folder that is empty or not there yet
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: PathBuf,
}
