//! Pruning of idempotency keys: those whose time is over go once in a while, with a transaction
//! that is under way.

use crate::sql::{self, Sql, args};
use crate::user_storage;
use domain::limits::IDEMPOTENCY_MS;
use domain::time::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
