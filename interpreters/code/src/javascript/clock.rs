//! The clock of a program: real time, and the time that its timers would have waited.

use crate::request::Allowance;
use boa_engine::context::time::{Clock, JsInstant};
use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Steps that a program may make however long a busy machine takes for them. An idle one takes less
/// than half a second, unless they are long ones.
pub(super) const STEPS_MIN: u64 = 10_000_000;
/// Steps that count for a job or a timer, which may be over before its first slice is.
pub(super) const STEPS_PER_JOB: u64 = 1_000;
/// Steps that count for an iteration of a loop which has no slices.
pub(super) const STEPS_PER_TICK: u64 = 100;

/// A clock that skips what nobody has to wait for.
#[derive(Debug)]
pub(super) struct ProgramClock {
    started: Instant,
    allowance: Allowance,
    skipped_ms: Cell<u64>,
    steps: Cell<u64>,
}

impl ProgramClock {
    /// A clock of a program that has so much time, which begins now.
    pub(super) fn new(allowance: Allowance) -> Self {
        Self {
            started: Instant::now(),
            allowance,
            skipped_ms: Cell::new(0),
            steps: Cell::new(0),
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

    /// Counts steps of the program, as the engine weighs them.
    pub(super) fn count(&self, steps: u64) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    /// Returns true if the program's time is up: that of its computing, or that in all, skipped
    /// time included. The time of its computing is the clock's, which runs on while the machine
    /// does something else, so it is up only after as many steps as every program may make.
    pub(super) fn is_over(&self) -> bool {
        let skipped = Duration::from_millis(self.skipped_ms.get());
        let ran = self.started.elapsed();
        let has_computed = ran >= self.allowance.computing && self.steps.get() >= STEPS_MIN;
        has_computed || ran.saturating_add(skipped) >= self.allowance.whole
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

#[cfg(test)]
mod tests {
    use super::{ProgramClock, STEPS_MIN};
    use crate::request::Allowance;
    use std::time::Duration;

    #[test]
    fn the_time_to_compute_is_up_only_after_the_steps_that_every_program_may_make() {
        let late = ProgramClock::new(Allowance {
            whole: Duration::from_secs(600),
            computing: Duration::ZERO,
        });
        assert!(!late.is_over());
        late.count(STEPS_MIN - 1);
        assert!(!late.is_over());
        late.count(1);
        assert!(late.is_over());

        let early = ProgramClock::new(Allowance {
            whole: Duration::from_secs(600),
            computing: Duration::from_secs(600),
        });
        early.count(STEPS_MIN);
        assert!(!early.is_over());
        early.skip_to(600_000);
        assert!(early.is_over());
    }
}
