//! Guards inside the writer's transaction: their questions answered from its cache or the rows,
//! their judgement heard.

use super::cache::Cache;
use crate::commit::{Clash, CommitError, Conflict};
use crate::guard::{AcceptanceStatus, Answers, Guard, Question, TriggerStatus};
use crate::query::{Row, Rows, Value};
use crate::sql::{self, Failure, Source, Sql, args};
use crate::user_storage::{self, stored_bytes_query, stored_bytes_with_query};
use domain::limits::IDEMPOTENCY_MS;
use domain::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Passes, or returns a description of the actual state.
pub(super) fn check(sql: &Sql<'_>, cache: &mut Cache, guard: &Guard) -> Result<(), Refused> {
    let mut answers = Answers::default();
    for (question, rows) in guard.questions().iter().zip(&mut answers) {
        if let Some(question) = question {
            *rows = answer(sql, cache, question)?;
        }
    }
    match guard.judge(&answers)? {
        None => Ok(()),
        Some(detail) => Err(Refused::Conflict(Conflict {
            clash: Clash::Guard(guard.clone()),
            detail,
        })),
    }
}

fn answer(sql: &Sql<'_>, cache: &mut Cache, question: &Question<'_>) -> sql::Result<Rows> {
    match question {
        Question::AcceptanceStatus(session) => {
            let session_status = cache.session_status(sql, *session)?;
            Ok(session_status.map(AcceptanceStatus::to_row).into())
        }
        Question::Role { agent, user } => {
            let role = cache.role(sql, *agent, user)?;
            Ok(role
                .map(|role| Row::new([Value::text(role.as_str())]))
                .into())
        }
        Question::StoredBytes(user) => {
            // The bytes stored in this transaction are not in the row yet.
            let stored = sql.ask(&stored_bytes_query(user))?.number()?;
            let bytes = Value::number(stored + cache.brought(user));
            Ok(Some(Row::new([bytes])).into())
        }
        Question::StoredBytesWith(key) => {
            let stored = sql.ask(&stored_bytes_with_query(key))?.number()?;
            let bytes = Value::number(stored + cache.brought_with(key));
            Ok(Some(Row::new([bytes])).into())
        }
        Question::TriggerStatus(trigger) => {
            let session_status = cache.trigger(sql, trigger)?;
            Ok(session_status.map(TriggerStatus::to_row).into())
        }
        Question::Other(query) => sql.ask(query),
    }
}

/// Milliseconds between two prunings.
const PAUSE_MS: u64 = 1_000;
/// Number of keys pruned for each key added since the last pruning, so that their number falls.
const PRUNED_FOR_EACH: u64 = 2;
/// Keys that go at once.
const PRUNED_MAX: u64 = 4_096;

/// The time since which idempotency keys are remembered, when they are kept for so many
/// milliseconds longer.
pub(crate) fn keys_since(now: Timestamp, kept_longer_ms: &AtomicU64) -> Timestamp {
    Timestamp(
        now.0
            .saturating_sub(IDEMPOTENCY_MS)
            .saturating_sub(kept_longer_ms.load(Ordering::Relaxed)),
    )
}

/// The course of pruning.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Time at which keys were last pruned.
    pruned: Option<Instant>,
    /// Keys that were stored since then.
    remembered: u64,
}

impl Keys {
    /// A key was stored.
    pub(super) fn remembered(&mut self) {
        self.remembered += 1;
    }

    /// Prunes keys from before a time, if keys were added since the last pruning and it is due.
    pub(super) fn prune_if_due(&mut self, sql: &Sql<'_>, before: Timestamp) -> sql::Result<()> {
        let is_due = self
            .pruned
            .is_none_or(|pruned| pruned.elapsed() >= Duration::from_millis(PAUSE_MS));
        if self.remembered == 0 || !is_due {
            return Ok(());
        }
        let most = (self.remembered * PRUNED_FOR_EACH).min(PRUNED_MAX);
        let text = "DELETE FROM idempotency WHERE (source, key) IN (SELECT source, key FROM \
                    idempotency WHERE time < ?1 ORDER BY time LIMIT ?2) RETURNING source, \
                    length(reply), brought_with";
        user_storage::erases_replies(sql, text, args![before, most])?;
        *self = Self {
            pruned: Some(Instant::now()),
            remembered: 0,
        };
        Ok(())
    }
}

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
