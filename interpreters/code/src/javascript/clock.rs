//! The clock of a program: real time, and the time that its timers would have waited.

use crate::request::Allowance;
use boa_engine::context::time::{Clock, JsInstant};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time of its own that a program has in any case, however busy the machine is.
const OWN_MIN: Duration = Duration::from_millis(200);
/// The longest gap between two polls at the clock that surely is the program's own.
const GAP_MAX: Duration = Duration::from_millis(5);
/// Steps from one longer gap to the next, if the machine did something else meanwhile: it takes a
/// program for at least a millisecond. Gaps that follow each other faster are long instructions.
const APART_MIN: u32 = 400;
/// Gaps that are too short for fewer steps from one inspection of the clock to the next.
const GAP_MIN: Duration = Duration::from_millis(1);
/// The most steps from one inspection of the clock to the next.
const STEPS_PER_POLL_MAX: u32 = 8;

/// A clock that skips what nobody has to wait for.
#[derive(Debug)]
pub(super) struct ProgramClock {
    started: Instant,
    allowance: Allowance,
    skipped_ms: Cell<u64>,
    readings: RefCell<ClockReadings>,
}

impl ProgramClock {
    /// A clock of a program that has so much time, which begins now.
    pub(super) fn new(allowance: Allowance) -> Self {
        Self {
            started: Instant::now(),
            allowance,
            skipped_ms: Cell::new(0),
            readings: RefCell::new(ClockReadings::new()),
        }
    }

    /// The time that the program has.
    pub(super) fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// Milliseconds that the program has run.
    pub(super) fn run_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Milliseconds that the program's timers skipped.
    pub(super) fn skipped_ms(&self) -> u64 {
        self.skipped_ms.get()
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
        self.readings.borrow_mut().due = 1;
    }

    /// Returns true if the program's time is up after one more step of it: that of its computing,
    /// or that in all, skipped time included. The time of its computing is the clock's, which runs
    /// on while the machine does something else, so it is up only after some that is its own.
    pub(super) fn is_over(&self) -> bool {
        let mut readings = self.readings.borrow_mut();
        if !readings.is_due() {
            return false;
        }
        let ran = self.started.elapsed();
        readings.inspect(ran);
        let skipped = Duration::from_millis(self.skipped_ms.get());
        let has_computed = ran >= self.allowance.computing && readings.own >= OWN_MIN;
        let is_over = has_computed || ran.saturating_add(skipped) >= self.allowance.whole;
        if is_over {
            // Whoever asks next is told the same.
            readings.due = 1;
        }
        is_over
    }
}

/// Looks at the clock, and the time between them that was the program's own.
///
/// A component has no clock of its computing. But the machine that turns to something else leaves
/// a gap between two polls now and then, and long instructions leave one at each.
#[derive(Debug)]
struct ClockReadings {
    /// The time at the last one, from the program's start on.
    last: Duration,
    own: Duration,
    /// Steps since the last one.
    steps: u32,
    /// Steps after which the next one is due.
    due: u32,
    /// Steps since the last long gap.
    apart: u32,
}

impl ClockReadings {
    fn new() -> Self {
        Self {
            last: Duration::ZERO,
            own: Duration::ZERO,
            steps: 0,
            due: 1,
            apart: APART_MIN,
        }
    }

    /// Counts a step, and returns true if an inspection of the clock is due.
    fn is_due(&mut self) -> bool {
        self.steps += 1;
        self.steps >= self.due
    }

    /// Notes the time that an inspection of the clock found.
    fn inspect(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.last);
        self.last = now;
        self.apart = self.apart.saturating_add(self.steps);
        self.steps = 0;
        self.own += if gap > GAP_MAX && self.apart >= APART_MIN {
            GAP_MAX
        } else {
            gap
        };
        if gap > GAP_MAX {
            self.apart = 0;
        }
        self.due = if gap < GAP_MIN {
            STEPS_PER_POLL_MAX.min(self.due * 2)
        } else {
            1
        };
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
    use super::{ClockReadings, OWN_MIN, ProgramClock};
    use crate::request::Allowance;
    use std::time::Duration;

    /// Returns the time at which a program whose steps take so many microseconds, over and over,
    /// has had what it has in any case.
    fn until_own(steps_us: impl IntoIterator<Item = u64, IntoIter: Clone>) -> Duration {
        let mut readings = ClockReadings::new();
        let mut now = Duration::ZERO;
        for step_us in steps_us.into_iter().cycle() {
            now += Duration::from_micros(step_us);
            if readings.is_due() {
                // The clock of the sandbox has whole milliseconds.
                readings.inspect(Duration::from_millis(now.as_millis() as u64));
            }
            if readings.own >= OWN_MIN {
                break;
            }
        }
        now
    }

    #[test]
    fn what_a_program_computes_is_its_own_however_long_its_steps_are() {
        for (steps_us, at_most) in [
            (vec![3], 201),
            (vec![400], 201),
            (vec![9_000], 220),
            (vec![20, 60_000], 320),
            // Pauses for the memory of a large heap.
            ([vec![3; 13_000], vec![50_000]].concat(), 600),
            ([vec![3; 500], vec![20_000]].concat(), 800),
        ] {
            let first: Vec<u64> = steps_us.iter().take(2).copied().collect();
            let until = until_own(steps_us);
            assert!(
                until <= Duration::from_millis(at_most),
                "{first:?}: {until:?}"
            );
        }
    }

    #[test]
    fn what_the_machine_does_meanwhile_is_not_a_programs_own() {
        // For 2.5 ms of the program the machine does something else for 200.
        let steps_us = [vec![3; 830], vec![200_000]].concat();
        let until = until_own(steps_us);
        assert!(until > Duration::from_secs(5), "{until:?}");
    }

    #[test]
    fn skipped_time_ends_a_program_at_once() {
        let clock = ProgramClock::new(Allowance {
            whole: Duration::from_secs(600),
            computing: Duration::from_secs(600),
        });
        for _ in 0..100 {
            assert!(!clock.is_over());
        }
        clock.skip_to(600_000);
        for _ in 0..3 {
            assert!(clock.is_over());
        }
    }
}
