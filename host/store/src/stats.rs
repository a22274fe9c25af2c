//! Counters of the writer's work and of reads, for tests, the bench and the operator.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the store's work since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Commits requested, whatever their outcome.
    pub commits: u64,
    /// Commits that were refused because the queue was full.
    pub busy: u64,
    /// Commits that met a conflict.
    pub conflicts: u64,
    /// Commits that were answered from their idempotency key.
    pub replayed: u64,
    /// Transactions that became durable with at least one change: one sync of the disk each.
    pub transactions: u64,
    /// Events in them.
    pub events: u64,
    /// The largest number of commits in one transaction.
    pub largest_batch: u64,
    /// Transactions that failed as a whole.
    pub failures: u64,
    /// Checkpoints: each syncs the disk up to twice more.
    pub checkpoints: u64,
    /// Reads that were handed to a thread.
    pub reads: u64,
}

macro_rules! counters {
    ($($name:ident)*) => {
        /// The live counters behind [`Stats`].
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: AtomicU64,)* }

        impl Counters {
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    commits busy conflicts replayed transactions events largest_batch failures checkpoints reads
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}
