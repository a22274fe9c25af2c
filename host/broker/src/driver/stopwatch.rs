//! The active time of a run: how long models and tools were at work for it, by a monotonic clock, side by side counted once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Measures the active time of one run while this process drives it.
///
/// It runs while somebody is at work, and not while they wait for their place. What it has measured is no part of the run before it is
/// recorded with an outcome: time that passes while the host is down is never measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopwatch(Arc<Mutex<Measured>>);

#[derive(Debug, Default)]
struct Measured {
    at_work: usize,
    /// Since when it runs; none while nobody is at work.
    since: Option<Instant>,
    /// Until then, without what is recorded.
    before: Duration,
}

impl Stopwatch {
    /// Somebody goes to work, until the guard is dropped.
    pub(crate) fn start(&self) -> AtWork {
        let mut measured = self.measured();
        measured.at_work += 1;
        measured.since.get_or_insert_with(Instant::now);
        AtWork(self.clone())
    }

    /// Milliseconds that are measured and not recorded.
    pub(crate) fn unrecorded_ms(&self) -> u64 {
        let measured = self.measured();
        let running = measured.since.map_or(Duration::ZERO, |since| since.elapsed());
        u64::try_from((measured.before + running).as_millis()).unwrap_or(u64::MAX)
    }

    /// Notes that so many milliseconds are recorded, which it had measured.
    pub(crate) fn recorded(&self, ms: u64) {
        let mut measured = self.measured();
        if let Some(since) = &mut measured.since {
            let now = Instant::now();
            let running = now.saturating_duration_since(*since);
            *since = now;
            measured.before += running;
        }
        measured.before = measured.before.saturating_sub(Duration::from_millis(ms));
    }

    fn stop(&self) {
        let mut measured = self.measured();
        measured.at_work = measured.at_work.saturating_sub(1);
        if measured.at_work == 0
            && let Some(since) = measured.since.take()
        {
            measured.before += since.elapsed();
        }
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody is at work for the run.
#[derive(Debug)]
pub(crate) struct AtWork(Stopwatch);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn work_side_by_side_counts_once_and_waiting_not_at_all() {
        let stopwatch = Stopwatch::default();
        pass(1_000).await;
        let first = stopwatch.start();
        pass(10).await;
        let second = stopwatch.start();
        pass(20).await;
        drop(first);
        pass(5).await;
        assert_eq!(stopwatch.unrecorded_ms(), 35, "it tells what it has measured while it runs");
        drop(second);
        pass(1_000).await;
        assert_eq!(stopwatch.unrecorded_ms(), 35);
    }

    #[tokio::test(start_paused = true)]
    async fn recorded_time_is_not_recorded_again() {
        let stopwatch = Stopwatch::default();
        let working = stopwatch.start();
        pass(30).await;
        let first = stopwatch.unrecorded_ms();
        pass(4).await;
        stopwatch.recorded(first);
        assert_eq!(stopwatch.unrecorded_ms(), 4);
        pass(6).await;
        drop(working);
        assert_eq!((first, stopwatch.unrecorded_ms()), (30, 10));
    }
}
