//! The error of every command: refused by a rule, or not recorded.

use super::quota::passed_limit;
use crate::refusals::{busy, key_reused, not_storable};
use domain::error_code::ErrorCode;
use domain::refusal::Refusal;
use store::{CommitError, ReadError};

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

/// Returns the error for a request of which one field is invalid.
pub(super) fn invalid(message: impl Into<String>, field: &str) -> Error {
    Refusal::new(ErrorCode::Invalid, message).at(field).into()
}
