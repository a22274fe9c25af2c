//! The errors of commands and of drivers: refused by a rule, or not recorded.

use super::guards::passed_limit;
use crate::refusals::{busy, key_reused, not_storable};
use domain::error_code::ErrorCode;
use domain::refusal::Refusal;
use store::{Clash, CommitError, ReadError};

/// The reason why a command did not succeed: refused by a rule, or not recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rule refused it; nothing has changed.
    #[error("refused")]
    Refused(#[from] Refusal),
    /// The disk is full; nothing has changed. Try again later.
    #[error("the disk is full: nothing was recorded")]
    DiskFull,
    /// The store cannot record just now; nothing has changed.
    #[error("the event store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The host is shutting down.
    #[error("the host is shutting down")]
    ShuttingDown,
}

impl Error {
    pub(crate) fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unavailable(Box::new(error))
    }

    /// Returns whether too many reads waited, so that the same may succeed in a moment.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Unavailable(source)
            if matches!(source.downcast_ref(), Some(ReadError::Busy)))
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::unavailable(error)
    }
}

impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Full => Self::DiskFull,
            CommitError::Closed => Self::ShuttingDown,
            CommitError::Busy => {
                busy("too much is being recorded at this moment; try again shortly").into()
            }
            CommitError::KeyReused => key_reused().into(),
            CommitError::Unstorable { source } => {
                tracing::warn!(
                    error = &*source as &dyn std::error::Error,
                    "what a client wants recorded can never be stored"
                );
                not_storable().into()
            }
            CommitError::Conflict(conflict) => match passed_limit(&conflict.clash) {
                Some(refusal) => refusal.into(),
                None => Self::unavailable(CommitError::Conflict(conflict)),
            },
            error => Self::unavailable(error),
        }
    }
}

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

impl From<DriverError> for Error {
    fn from(failure: DriverError) -> Self {
        match failure {
            DriverError::Refused(refusal) => refusal.into(),
            DriverError::Read(error) => error.into(),
            DriverError::Commit(error) => error.into(),
            failure => Self::unavailable(failure),
        }
    }
}

/// Returns the error for a request of which one field is invalid.
pub(crate) fn invalid(message: impl Into<String>, field: &str) -> Error {
    Refusal::new(ErrorCode::Invalid, message).at(field).into()
}
