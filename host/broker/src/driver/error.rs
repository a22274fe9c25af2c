//! The reasons why a driver cannot do something just now.

use domain::refusal::Refusal;
use store::{Clash, CommitError, ReadError};

/// The reason why something could not be done just now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
    #[error("the store could not be read")]
    Read(#[from] ReadError),
    #[error("nothing could be recorded")]
    Commit(#[from] CommitError),
    #[error("a run's events do not fit together")]
    Corrupt(#[from] domain::run::Corrupt),
    #[error("refused")]
    Refused(#[from] Refusal),
    #[error("{0} is missing")]
    Missing(String),
    #[error("the runtime has no free place")]
    Busy,
}

impl DriverError {
    /// Returns whether another writer was first, so that the store has to be read again.
    pub(crate) fn is_overtaken(&self) -> bool {
        matches!(self, Self::Commit(CommitError::Conflict(conflict)) if conflict.clash != Clash::Row)
    }
}
