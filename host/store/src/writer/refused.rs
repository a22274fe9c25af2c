//! Reasons why a commit does not land, and whose affair an error of the database is.

use crate::commit::{CommitError, Conflict};
use crate::sql::Source;
use rusqlite::ErrorCode;
use std::sync::Arc;

/// Reason why a commit does not land.
#[derive(Debug)]
pub(super) enum Refused {
    Conflict(Conflict),
    Replayed(Vec<u8>),
    KeyReused,
    /// The database takes no such values, whatever it holds, or what follows from an event cannot
    /// be worked out.
    Unstorable(Source),
    /// A stored row that it rests on cannot be read.
    Unreadable(Source),
    /// The writer has not looked yet whose affair it is.
    Storage(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error)
    }
}

impl Refused {
    pub(super) fn into_error(self) -> CommitError {
        match self {
            Self::Conflict(conflict) => CommitError::Conflict(conflict),
            Self::Replayed(reply) => CommitError::Replayed { reply },
            Self::KeyReused => CommitError::KeyReused,
            Self::Unstorable(source) => CommitError::Unstorable { source },
            Self::Unreadable(source) => CommitError::Unreadable { source },
            Self::Storage(error) => failed(&Arc::new(error)),
        }
    }
}

/// Returns whether an error concerns the whole transaction, and not only the request that met it.
pub(super) fn concerns_all(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        // Contradictions with what is stored, and values that do not fit.
        Some(
            ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::TooBig
            | ErrorCode::ParameterOutOfRange,
        ) => false,
        Some(_) => true,
        // Not the database's: something that could not be read or written as what it should be.
        None => false,
    }
}

/// Returns whether the data to be written is at fault, and not the stored data.
pub(super) fn is_unstorable(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::ToSqlConversionFailure(_))
        || matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::TooBig | ErrorCode::TypeMismatch | ErrorCode::ParameterOutOfRange)
        )
}

pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    let shared_memory = error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
    shared_memory || error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

pub(super) fn is_io(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}

pub(super) fn failed(error: &Arc<rusqlite::Error>) -> CommitError {
    if is_full(error) {
        CommitError::Full
    } else {
        CommitError::Unavailable {
            source: Source::from(Arc::clone(error)),
        }
    }
}
