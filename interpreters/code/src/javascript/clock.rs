//! The clock of a program: real time, and the time that its timers would have waited.

use crate::request::Allowance;
use boa_engine::context::time::{Clock, JsInstant};
use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock that skips what nobody has to wait for.
#[derive(Debug)]
pub(super) struct ProgramClock {
    started: Instant,
    allowance: Allowance,
    skipped_ms: Cell<u64>,
}

impl ProgramClock {
    /// A clock of a program that has so much time, which begins now.
    pub(super) fn new(allowance: Allowance) -> Self {
        Self {
            started: Instant::now(),
            allowance,
            skipped_ms: Cell::new(0),
        }
    }

    /// Milliseconds that the program has run.
    pub(super) fn run_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The program's time, in milliseconds from its start.
    pub(super) fn now_ms(&self) -> u64 {
        self.run_ms().saturating_add(self.skipped_ms.get())
    }

    /// Skips to a time, if it is not past.
    pub(super) fn skip_to(&self, at_ms: u64) {
        let ahead_ms = at_ms.saturating_sub(self.now_ms());
        self.skipped_ms
            .set(self.skipped_ms.get().saturating_add(ahead_ms));
    }

    /// Returns true if the program's time is up: that of its computing, or that in all, skipped
    /// time included.
    pub(super) fn is_over(&self) -> bool {
        let skipped = Duration::from_millis(self.skipped_ms.get());
        let ran = self.started.elapsed();
        ran >= self.allowance.computing || ran.saturating_add(skipped) >= self.allowance.whole
    }
}

impl Clock for ProgramClock {
    fn now(&self) -> JsInstant {
        let now = Duration::from_millis(self.now_ms());
        JsInstant::new(now.as_secs(), now.subsec_nanos())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a program asks for the date as of now, and this is the only clock that it has"
    )]
    fn system_time_millis(&self) -> i64 {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let skipped = Duration::from_millis(self.skipped_ms.get());
        i64::try_from(now.saturating_add(skipped).as_millis()).unwrap_or(i64::MAX)
    }
}
