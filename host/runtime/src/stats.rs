//! The counters and gauges of a runtime.

use std::sync::atomic::{AtomicU64, Ordering};

/// The state of a runtime in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Stats {
    /// Components that were compiled.
    pub compiled: u64,
    /// Components whose code came from the cache.
    pub loaded_from_cache: u64,
    /// Cache entries that could not be used.
    pub cache_damaged: u64,
    /// Components that were asked what they are.
    pub described: u64,
    /// Steps, trigger runs, and calls of tools and connectors that have ended, refused ones
    /// included.
    pub calls: u64,
    /// Guests that run now.
    pub in_flight: u64,
    /// Calls that wait for a permit now.
    pub waiting: u64,
    /// Permits that are free now.
    pub permits_free: u64,
    /// Bytes of all guests' memories and tables now.
    pub memory_bytes: u64,
}

/// The counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) compiled: AtomicU64,
    pub(crate) loaded_from_cache: AtomicU64,
    pub(crate) cache_damaged: AtomicU64,
    pub(crate) described: AtomicU64,
    pub(crate) calls: AtomicU64,
}

impl Counts {
    /// Returns the counters; the gauges are left at zero.
    pub(crate) fn read(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            compiled: read(&self.compiled),
            loaded_from_cache: read(&self.loaded_from_cache),
            cache_damaged: read(&self.cache_damaged),
            described: read(&self.described),
            calls: read(&self.calls),
            ..Stats::default()
        }
    }
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
