//! Reasons why a commit does not land, and whose affair an error of the database is.

use crate::commit::{CommitError, Conflict};
use crate::sql::{self, Failure, Source};
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
    Storage(sql::Error),
}

impl From<sql::Error> for Refused {
    fn from(error: sql::Error) -> Self {
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
pub(super) fn concerns_all(error: &sql::Error) -> bool {
    match error.failure() {
        // Contradictions with what is stored, and values that do not fit.
        Some(Failure::Constraint | Failure::Unfit) => false,
        Some(_) => true,
        // Not the database's: something that could not be read or written as what it should be.
        None => false,
    }
}

/// Returns whether the data to be written is at fault, and not the stored data.
pub(super) fn is_unstorable(error: &sql::Error) -> bool {
    matches!(error, sql::Error::Unwritable { .. }) || error.failure() == Some(Failure::Unfit)
}

pub(super) fn is_full(error: &sql::Error) -> bool {
    error.failure() == Some(Failure::Full)
}

pub(super) fn is_io(error: &sql::Error) -> bool {
    error.failure() == Some(Failure::Io)
}

pub(super) fn failed(error: &Arc<sql::Error>) -> CommitError {
    if is_full(error) {
        CommitError::Full
    } else {
        CommitError::Unavailable {
            source: Source::from(Arc::clone(error)),
        }
    }
}
