//! The active time of a run: the awake time in which models or tools worked for it.
//!
//! Work side by side counts once.

use egress::awake::Instant;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Measures the active time of one run while this process drives it.
///
/// It runs while any work is active, and not while work waits for its place. Measured time is no
/// part of the run until it is recorded with an outcome. Time in which the host is down, or its
/// process is stopped, is never measured.
#[derive(Debug, Clone)]
pub(crate) struct Stopwatch {
    measured: Arc<Mutex<Measured>>,
    now: fn() -> Instant,
}

impl Default for Stopwatch {
    fn default() -> Self {
        Self {
            measured: Arc::default(),
            now: Instant::now,
        }
    }
}

#[derive(Debug, Default)]
struct Measured {
    at_work: usize,
    /// The start of the present stretch; none while nothing is at work.
    since: Option<Instant>,
    /// The time measured before that, without the recorded time.
    before: Duration,
    /// The unrecorded time at the last progress of the work.
    progress: Duration,
    /// The unrecorded time up to which each piece of quiet work counts as coming further.
    quiet: BTreeMap<u64, Duration>,
    /// The number of the next piece of quiet work.
    next_quiet: u64,
}

impl Measured {
    /// Returns the time that is measured and not recorded.
    fn unrecorded(&self, now: Instant) -> Duration {
        let running = self
            .since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.before + running
    }
}

impl Stopwatch {
    /// Counts one more piece of work, until the guard is dropped.
    pub(crate) fn start(&self) -> AtWork {
        let mut measured = self.measured();
        measured.at_work += 1;
        measured.since.get_or_insert_with(self.now);
        AtWork {
            stopwatch: self.clone(),
            quiet: None,
        }
    }

    /// Counts one more piece of work, as [`Self::start`] does. It shows no progress while it is
    /// active and has a time limit of its own: until that is over, the run is not idle.
    pub(crate) fn start_quiet(&self, limit_ms: u64) -> AtWork {
        let mut at_work = self.start();
        let mut measured = self.measured();
        let until = measured
            .unrecorded((self.now)())
            .saturating_add(Duration::from_millis(limit_ms));
        let number = measured.next_quiet;
        measured.next_quiet += 1;
        measured.quiet.insert(number, until);
        at_work.quiet = Some(number);
        at_work
    }

    /// Returns the milliseconds that are measured and not recorded.
    pub(crate) fn unrecorded_ms(&self) -> u64 {
        let unrecorded = self.measured().unrecorded((self.now)());
        u64::try_from(unrecorded.as_millis()).unwrap_or(u64::MAX)
    }

    /// Records progress: active work is not idle.
    pub(crate) fn progressed(&self) {
        let mut measured = self.measured();
        measured.progress = measured.unrecorded((self.now)());
    }

    /// Returns the milliseconds measured since the last record or progress. Quiet work counts as
    /// progressing until its time limit is over.
    pub(crate) fn idle_ms(&self) -> u64 {
        let measured = self.measured();
        let progress = measured.quiet.values().copied();
        let progress = progress.fold(measured.progress, Duration::max);
        let idle = measured.unrecorded((self.now)()).saturating_sub(progress);
        u64::try_from(idle.as_millis()).unwrap_or(u64::MAX)
    }

    /// Notes that so many of the measured milliseconds are recorded.
    pub(crate) fn recorded(&self, ms: u64) {
        let mut measured = self.measured();
        if let Some(since) = &mut measured.since {
            let now = (self.now)();
            let running = now.saturating_duration_since(*since);
            *since = now;
            measured.before += running;
        }
        let recorded = Duration::from_millis(ms);
        measured.before = measured.before.saturating_sub(recorded);
        measured.progress = measured.progress.saturating_sub(recorded);
        for until in measured.quiet.values_mut() {
            *until = until.saturating_sub(recorded);
        }
    }

    fn stop(&self, quiet: Option<u64>) {
        let mut measured = self.measured();
        if let Some(until) = quiet.and_then(|number| measured.quiet.remove(&number)) {
            let ended = until.min(measured.unrecorded((self.now)()));
            measured.progress = measured.progress.max(ended);
        }
        measured.at_work = measured.at_work.saturating_sub(1);
        if measured.at_work == 0
            && let Some(since) = measured.since.take()
        {
            measured.before += (self.now)().saturating_duration_since(since);
        }
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard for work of the run. The work counts until it is dropped.
#[derive(Debug)]
pub(crate) struct AtWork {
    stopwatch: Stopwatch,
    /// Its number, if it is quiet work.
    quiet: Option<u64>,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.stopwatch.stop(self.quiet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static SHOWS: std::cell::Cell<Instant> = std::cell::Cell::new(Instant::now());
    }

    fn pass(ms: u64) {
        SHOWS.set(SHOWS.get() + Duration::from_millis(ms));
    }

    fn stopwatch() -> Stopwatch {
        Stopwatch {
            now: || SHOWS.get(),
            ..Stopwatch::default()
        }
    }

    #[test]
    fn work_side_by_side_counts_once_and_waiting_not_at_all() {
        let stopwatch = stopwatch();
        pass(1_000);
        let first = stopwatch.start();
        pass(10);
        let second = stopwatch.start();
        pass(20);
        drop(first);
        pass(5);
        assert_eq!(
            stopwatch.unrecorded_ms(),
            35,
            "it tells what it has measured while it runs"
        );
        drop(second);
        pass(1_000);
        assert_eq!(stopwatch.unrecorded_ms(), 35);
    }

    #[test]
    fn recorded_time_is_not_recorded_again() {
        let stopwatch = stopwatch();
        let working = stopwatch.start();
        pass(30);
        let first = stopwatch.unrecorded_ms();
        pass(4);
        stopwatch.recorded(first);
        assert_eq!(stopwatch.unrecorded_ms(), 4);
        pass(6);
        drop(working);
        assert_eq!((first, stopwatch.unrecorded_ms()), (30, 10));
    }

    #[test]
    fn idle_time_begins_anew_with_progress_and_stands_still_while_nothing_is_at_work() {
        let stopwatch = stopwatch();
        let working = stopwatch.start();
        pass(30);
        assert_eq!(stopwatch.idle_ms(), 30);
        stopwatch.progressed();
        pass(7);
        assert_eq!((stopwatch.idle_ms(), stopwatch.unrecorded_ms()), (7, 37));
        drop(working);
        pass(1_000);
        assert_eq!(stopwatch.idle_ms(), 7);
        stopwatch.recorded(37);
        let working = stopwatch.start();
        pass(5);
        drop(working);
        assert_eq!(stopwatch.idle_ms(), 5);
    }

    #[test]
    fn quiet_work_is_idle_only_once_its_own_time_limit_is_over() {
        let stopwatch = stopwatch();
        let working = stopwatch.start_quiet(100);
        pass(30);
        assert_eq!(stopwatch.idle_ms(), 0);
        stopwatch.recorded(30);
        pass(70);
        assert_eq!(stopwatch.idle_ms(), 0);
        pass(20);
        assert_eq!((stopwatch.idle_ms(), stopwatch.unrecorded_ms()), (20, 90));
        let beside = stopwatch.start_quiet(u64::MAX);
        pass(1_000);
        assert_eq!(stopwatch.idle_ms(), 0, "one of them has time left");
        drop((working, beside));
        let working = stopwatch.start();
        pass(7);
        drop(working);
        assert_eq!(stopwatch.idle_ms(), 7, "what has ended has no time left");
    }
}
