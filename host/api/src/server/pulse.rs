//! The activity of a connection and the time since it began, so that each phase has its own
//! deadline.

use super::limits::Limits;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::time::{Duration, Instant};

/// The phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A request's headers are awaited or under way. Leads to `Busy`.
    Head,
    /// A request is being answered. Leads to `Idle`. The body and the response have deadlines of
    /// their own.
    Busy,
    /// The last response is complete. The next byte leads to `Head`.
    Idle,
    /// The connection ends and waits for the rest of a request that was answered early. Leads to
    /// nothing.
    Lingering,
}

/// The phase of one connection, shared by its socket, its service and the future that drives it.
/// All three run in one task, so relaxed atomics are enough; they are there because the task may
/// move between threads.
#[derive(Debug)]
pub(crate) struct Pulse {
    start: Instant,
    /// Milliseconds since `start`, shifted left by two, and the phase.
    phase: AtomicU64,
    /// One more than the milliseconds since `start` at which writing stopped making progress; 0
    /// while it makes progress.
    stalled: AtomicU64,
    /// True if the last answered request may not have arrived in full.
    owing: AtomicBool,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            phase: AtomicU64::new(Phase::Head as u64),
            stalled: AtomicU64::new(0),
            owing: AtomicBool::new(false),
        }
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX >> 2)
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase
            .store(self.ms() << 2 | phase as u64, Ordering::Relaxed);
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) & 3 {
            0 => Phase::Head,
            1 => Phase::Busy,
            2 => Phase::Idle,
            _ => Phase::Lingering,
        }
    }

    /// Bytes arrived.
    pub(crate) fn heard(&self) {
        if self.phase() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Records whether a body is still to come.
    pub(crate) fn owes(&self, owing: bool) {
        self.owing.store(owing, Ordering::Relaxed);
    }

    /// Returns whether the peer may still be sending bytes that are not going to be read.
    pub(crate) fn is_owing(&self) -> bool {
        self.owing.load(Ordering::Relaxed)
    }

    /// Writing made progress, or there was nothing to write.
    pub(crate) fn wrote(&self) {
        if self.stalled.load(Ordering::Relaxed) != 0 {
            self.stalled.store(0, Ordering::Relaxed);
        }
    }

    /// The peer takes no bytes at this moment.
    pub(crate) fn stalls(&self) {
        if self.stalled.load(Ordering::Relaxed) == 0 {
            self.stalled.store(self.ms() + 1, Ordering::Relaxed);
        }
    }

    /// Returns the time at which the connection is closed if nothing happens before; none while a
    /// request is being answered.
    pub(crate) fn deadline(&self, limits: &Limits) -> Option<Instant> {
        let since = self.phase.load(Ordering::Relaxed) >> 2;
        let phase = match self.phase() {
            Phase::Head => Some(since + limits.header_ms_max),
            Phase::Busy => None,
            Phase::Idle => Some(since + limits.idle_ms_max),
            Phase::Lingering => Some(since + limits.linger_ms_max),
        };
        let write = match self.stalled.load(Ordering::Relaxed) {
            0 => None,
            since => Some(since + limits.write_ms_max),
        };
        let ms = phase.into_iter().chain(write).min()?;
        Some(self.start + Duration::from_millis(ms))
    }
}
