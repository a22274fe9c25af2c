//! A budget of bytes that several requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that may still pass, in both directions together, heads included. Clones share what is
/// left.
#[derive(Debug, Clone)]
pub struct ByteBudget(Arc<AtomicU64>);

impl ByteBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// Returns the bytes that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes what has passed, down to nothing. False if nothing was left before: then it is spent.
    /// It can be overdrawn by one read or write for each request under way, at most 32 KiB.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                (left > 0).then(|| left.saturating_sub(bytes))
            });
        taken.is_ok()
    }
}
