//! State of the writer and of reads, which any thread may read at any time without waiting for the
//! writer.

use crate::sql::{self, Error, Failure};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Mutex;

/// Time that the writer may spend on one thing before it counts as stalled, in milliseconds. It is
/// longer than the wait for a lock of another process, which ends with a failure of its own.
const STALLED_MS: u64 = 10_000;

/// Milliseconds after a read that failed during which reads count as failing.
const READ_FAILED_MS: u64 = 5_000;

/// State of the writer: whether commits are accepted at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = StoreHealth)]
pub enum Health {
    /// Commits are taken.
    Well,
    /// The disk is full, or so nearly that commits will soon be refused.
    Full,
    /// The last transaction failed as a whole and none has become durable since. The writer tries
    /// one every second until it succeeds.
    Failing,
    /// The writer has been at one transaction for more than ten seconds: the disk does not respond.
    /// New requests are refused as busy; earlier ones may still become durable.
    Stalled,
}

/// State that the writer reports of itself.
#[derive(Debug)]
pub(crate) struct Vitals {
    epoch: Instant,
    full: AtomicBool,
    failing: AtomicBool,
    /// Milliseconds from the epoch to the start of the writer's current work, plus one. It is 0
    /// while the writer is idle.
    since: AtomicU64,
    /// The same of the last read that failed; 0 while none has.
    read_failed: AtomicU64,
    /// The same for the last read that failed because of the disk rather than the content of the
    /// file.
    disk_failed: AtomicU64,
    pub(crate) probe: Probe,
}

/// Results of probes; see `probe.rs`.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    pub(crate) last: Mutex<Option<LastProbe>>,
    /// A read that a probe gave up still waits for a thread.
    pub(crate) is_under_way: Arc<AtomicBool>,
}

/// The probe that was made last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastProbe {
    pub(crate) at: Instant,
    pub(crate) is_readable: bool,
    /// The number of this probe.
    pub(crate) number: u64,
}

impl Vitals {
    pub(crate) fn new(full: bool) -> Self {
        Self {
            epoch: Instant::now(),
            full: AtomicBool::new(full),
            failing: AtomicBool::new(false),
            since: AtomicU64::new(0),
            read_failed: AtomicU64::new(0),
            disk_failed: AtomicU64::new(0),
            probe: Probe::default(),
        }
    }

    /// Returns the writer's state. A stalled writer takes precedence, because all other states are
    /// then uncertain.
    pub(crate) fn health(&self) -> Health {
        if self.is_stalled() {
            Health::Stalled
        } else if self.full.load(Ordering::Relaxed) {
            Health::Full
        } else if self.is_failing() {
            Health::Failing
        } else {
            Health::Well
        }
    }

    pub(crate) fn is_stalled(&self) -> bool {
        stalled(self.since.load(Ordering::Relaxed), self.ms())
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Records the result of a read, if the result indicates the state of the disk.
    pub(crate) fn note_read<T>(&self, read: &sql::Result<T>) {
        let failure = read.as_ref().err().and_then(Error::failure);
        if matches!(
            failure,
            Some(Failure::Io | Failure::Corrupt | Failure::NotADatabase | Failure::CannotOpen)
        ) {
            self.read_failed.store(self.ms() + 1, Ordering::Relaxed);
        }
        if matches!(failure, Some(Failure::Io | Failure::CannotOpen)) {
            self.disk_failed.store(self.ms() + 1, Ordering::Relaxed);
        }
    }

    /// Returns whether a read met a disk or a file that fails, a moment ago.
    pub(crate) fn has_failed_to_read(&self) -> bool {
        self.was_a_moment_ago(&self.read_failed)
    }

    /// Returns whether the disk failed a read, a moment ago.
    pub(crate) fn has_disk_failed(&self) -> bool {
        self.was_a_moment_ago(&self.disk_failed)
    }

    fn was_a_moment_ago(&self, at: &AtomicU64) -> bool {
        let at = at.load(Ordering::Relaxed);
        at > 0 && self.ms().saturating_sub(at - 1) < READ_FAILED_MS
    }

    /// Records that the writer begins some work.
    pub(crate) fn begins(&self) {
        self.since.store(self.ms() + 1, Ordering::Relaxed);
    }

    /// Records that the writer is idle.
    pub(crate) fn rests(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Sets whether there is no space, and returns the previous value.
    pub(crate) fn set_full(&self, full: bool) -> bool {
        self.full.swap(full, Ordering::Relaxed)
    }

    /// Sets whether transactions fail, and returns the previous value.
    pub(crate) fn set_failing(&self, failing: bool) -> bool {
        self.failing.swap(failing, Ordering::Relaxed)
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }
}

fn stalled(since: u64, now_ms: u64) -> bool {
    since > 0 && now_ms.saturating_sub(since - 1) > STALLED_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_held_up_when_it_has_been_at_one_thing_for_too_long() {
        assert!(!stalled(0, u64::MAX), "it waits for something to do");
        assert!(!stalled(1, STALLED_MS));
        assert!(stalled(1, STALLED_MS + 1));
        assert!(!stalled(5_000, 100), "a clock read by two threads");
    }

    #[test]
    fn what_is_wrong_is_said_and_then_no_longer() {
        let vitals = Vitals::new(true);
        assert_eq!(vitals.health(), Health::Full);
        assert!(!vitals.set_failing(true) && vitals.set_full(false));
        assert_eq!(vitals.health(), Health::Failing);
        vitals.begins();
        assert!(vitals.set_failing(false));
        assert_eq!(vitals.health(), Health::Well);
    }

    #[test]
    fn a_disk_that_fails_is_distinguished_from_a_file_that_is_malformed() {
        let vitals = Vitals::new(false);
        let failed =
            |failure| -> sql::Result<()> { Err(Error::failed(failure, "a test wants it so")) };
        vitals.note_read(&failed(Failure::Corrupt));
        assert!(vitals.has_failed_to_read() && !vitals.has_disk_failed());
        vitals.note_read(&failed(Failure::Io));
        assert!(vitals.has_disk_failed());
    }
}
