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
    /// The database never accepts such values, whatever it contains, or the consequences of an
    /// event cannot be computed.
    Unstorable(Source),
    /// A stored row that it depends on cannot be read.
    Unreadable(Source),
    /// The writer has not determined yet whether it concerns one request or all.
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
        // Contradictions with stored rows, and values that do not fit.
        Some(Failure::Constraint | Failure::Unfit) => false,
        Some(_) => true,
        // Not the database's fault: a value could not be read or written in its expected form.
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
