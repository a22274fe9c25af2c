//! Rebuild of the projections while the store is in use: rows that differ from the events are
//! replaced, and all others stay untouched.
//!
//! The events are folded into a side database while commits go on. Then all rows are compared as of
//! one position, while the writer notes which rows it changes. Rows that differ, and rows changed
//! since, are checked once more between two commits and replaced in one transaction. Commits wait
//! only for that, however much is stored, and reads wait for nothing. After a crash at any point
//! the rows are either unchanged or correct, and the side database is removed when the store is
//! next opened.
//!
//! The rest of the store knows only [`Rebuilds`], a field of the open store. This file and its
//! folder (935 lines together) can be deleted with that field and four names in `fault.rs`. Then
//! only a migration folds projections again. Two routes, a command and their tests go too.

mod compare;
mod replace;
mod run;
mod touched;

use crate::scratch;
use crate::sql::Source;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Result of a rebuild, which folds all events again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    /// Events that were folded.
    pub events: u64,
    /// Tables that differed from the events; none when no table did.
    pub replaced: Vec<Replaced>,
    /// True if the full-text index was replaced.
    pub index_replaced: bool,
    /// Time for which commits waited: nothing was stored meanwhile.
    pub paused: Duration,
}

/// A table that differed from the events and was corrected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The table.
    pub table: &'static str,
    /// Number of rows with other values.
    pub changed: u64,
    /// Rows that were not there.
    pub missing: u64,
    /// Rows that should not have been there.
    pub superfluous: u64,
}

/// Stage of a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RebuildStage {
    /// Events are folded.
    Folding,
    /// The result of the fold is compared with the tables in use.
    Comparing,
    /// Rows that differ are replaced; commits wait.
    Replacing,
}

/// Progress of a rebuild.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RebuildState {
    /// No rebuild was requested since the store was opened.
    #[default]
    Never,
    /// A rebuild is in progress.
    Running {
        /// The current stage.
        stage: RebuildStage,
        /// Events that were folded so far.
        events: u64,
        /// Events that there were when it began.
        of: u64,
    },
    /// The last rebuild finished with this result.
    Done(Rebuilt),
    /// The last rebuild failed, and changed nothing.
    Failed {
        /// The reason, with its causes.
        reason: String,
    },
}

/// Reason why nothing was rebuilt. The store is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// A rebuild is in progress already.
    #[error("a rebuild is going on already")]
    Running,
    /// A purge is running: the fold could restore data that is about to be erased.
    #[error("something is being purged")]
    Purging,
    /// The store was closed before or meanwhile.
    #[error("the store was closed")]
    Closed,
    /// The side database could not be created.
    #[error("`{}` cannot be written", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// An event could not be read, or a database operation failed.
    #[error("the events could not be folded again")]
    Database {
        /// The cause.
        #[source]
        source: Source,
    },
}

/// The rebuilds of one open store: the last one's progress or result.
#[derive(Debug)]
pub(crate) struct Rebuilds(Arc<watch::Sender<RebuildState>>);

impl Rebuilds {
    /// Removes the remnants of a rebuild that a crash ended. The database is not open yet.
    pub(crate) fn new(database: &Path) -> Self {
        scratch::remove(database, replace::NAME);
        Self(Arc::default())
    }
}
