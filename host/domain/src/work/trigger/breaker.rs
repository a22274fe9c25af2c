//! Failures of a trigger: when an operator is notified, when attempts pause for a while, and when
//! the trigger is paused.
//!
//! A failure is a failed attempt at a trigger event. An open breaker allows no attempt. After five
//! minutes it allows one, and opens again if that attempt fails.

use super::{
    ALERT_FAILURES, BREAKER_FAILURES, BREAKER_MS, DISABLE_FAILURES, DISABLE_SCHEDULE_ERRORS,
    RETRIES, RETRIES_MAX, RETRY_LATER_MS_MAX, WATCHDOG_MS,
};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The failures of a trigger since it last worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Failures {
    /// Attempts in a row that failed.
    pub in_a_row: u32,
    /// Times in a row that the next trigger event could not be computed.
    pub schedule_errors: u32,
    /// The time of the next attempt; none while the breaker is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_until: Option<Timestamp>,
}

/// A consequence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// An operator is notified.
    Alert,
    /// No attempt before a time.
    Open {
        /// The time.
        until: Timestamp,
    },
    /// The trigger is paused until somebody resumes it.
    Disable,
}

/// The reply of the breaker to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaker {
    /// Attempts are let through.
    Closed,
    /// No attempt is allowed before this time.
    Open(Timestamp),
    /// One attempt is allowed, as a trial.
    HalfOpen,
}

impl Failures {
    /// Returns the state of the breaker for an attempt now.
    #[must_use]
    pub fn breaker(&self, now: Timestamp) -> Breaker {
        match self.open_until {
            None => Breaker::Closed,
            Some(until) if now < until => Breaker::Open(until),
            Some(_) => Breaker::HalfOpen,
        }
    }

    /// Counts a failed attempt, and returns its consequences.
    pub fn after_failure(&mut self, now: Timestamp) -> Vec<Consequence> {
        self.in_a_row = self.in_a_row.saturating_add(1);
        let mut consequences = Vec::new();
        if self.in_a_row == ALERT_FAILURES {
            consequences.push(Consequence::Alert);
        }
        if self.in_a_row >= DISABLE_FAILURES {
            self.open_until = None;
            consequences.push(Consequence::Disable);
        } else if self.in_a_row >= BREAKER_FAILURES {
            let until = now.plus_ms(BREAKER_MS);
            self.open_until = Some(until);
            consequences.push(Consequence::Open { until });
        }
        consequences
    }

    /// Counts a next trigger event that could not be computed, and returns the consequences.
    pub fn after_schedule_error(&mut self) -> Vec<Consequence> {
        self.schedule_errors = self.schedule_errors.saturating_add(1);
        let mut consequences = Vec::new();
        if self.schedule_errors == ALERT_FAILURES {
            consequences.push(Consequence::Alert);
        }
        if self.schedule_errors >= DISABLE_SCHEDULE_ERRORS {
            consequences.push(Consequence::Disable);
        }
        consequences
    }

    /// Notes a successful attempt. Returns whether an operator was notified of failures before it.
    pub fn after_success(&mut self) -> bool {
        let was_reported = self.in_a_row >= ALERT_FAILURES;
        self.in_a_row = 0;
        self.open_until = None;
        was_reported
    }
}

/// Returns the time of the next attempt at a trigger event after this one failed; none when it is
/// given up. Attempts are counted from 1. A component may set the delay; otherwise each delay is
/// twice as long as the one before.
#[must_use]
pub fn retry_at(attempt: u32, later_ms: Option<u32>, now: Timestamp) -> Option<Timestamp> {
    if attempt >= RETRIES_MAX {
        return None;
    }
    let ms = match later_ms {
        Some(ms) => u64::from(ms).clamp(RETRIES.first_ms, RETRY_LATER_MS_MAX),
        None => RETRIES.pause_ms(attempt),
    };
    Some(now.plus_ms(ms))
}

/// Returns whether to report a trigger's turn as stuck.
#[must_use]
pub fn is_stuck(begun: Timestamp, now: Timestamp) -> bool {
    now.since_ms(begun) >= WATCHDOG_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_told_after_two_failures_and_the_trigger_paused_after_ten() {
        let mut failures = Failures::default();
        let mut reported = Vec::new();
        for attempt in 1..=10_u32 {
            let now = Timestamp(u64::from(attempt) * 1_000_000);
            reported.push((attempt, failures.after_failure(now)));
        }
        let open = |attempt: u64| Consequence::Open {
            until: Timestamp(attempt * 1_000_000 + BREAKER_MS),
        };
        let expected = vec![
            (1, vec![]),
            (2, vec![Consequence::Alert]),
            (3, vec![]),
            (4, vec![]),
            (5, vec![open(5)]),
            (6, vec![open(6)]),
            (7, vec![open(7)]),
            (8, vec![open(8)]),
            (9, vec![open(9)]),
            (10, vec![Consequence::Disable]),
        ];
        assert_eq!(reported, expected);
    }

    #[test]
    fn a_breaker_lets_one_attempt_through_after_five_minutes() {
        let mut failures = Failures::default();
        assert_eq!(failures.breaker(Timestamp(0)), Breaker::Closed);
        for _ in 0..5 {
            failures.after_failure(Timestamp(0));
        }
        let until = Timestamp(BREAKER_MS);
        assert_eq!(failures.breaker(Timestamp(0)), Breaker::Open(until));
        assert_eq!(failures.breaker(until), Breaker::HalfOpen);
        assert!(failures.after_success());
        assert_eq!(failures, Failures::default());
        assert!(!failures.after_success());
    }

    #[test]
    fn three_schedule_errors_in_a_row_pause_a_trigger() {
        let mut failures = Failures::default();
        assert_eq!(failures.after_schedule_error(), []);
        assert_eq!(failures.after_schedule_error(), [Consequence::Alert]);
        assert_eq!(failures.after_schedule_error(), [Consequence::Disable]);
    }

    #[test]
    fn a_trigger_event_is_tried_ten_times_ever_more_slowly() {
        for (attempt, later_ms, expected) in [
            (1, None, Some(1_000)),
            (2, None, Some(2_000)),
            (10, None, None),
            (1, Some(60_000), Some(60_000)),
            (1, Some(0), Some(1_000)),
            (1, Some(u32::MAX), Some(RETRY_LATER_MS_MAX)),
            (10, Some(1), None),
            (u32::MAX, None, None),
        ] {
            let at = retry_at(attempt, later_ms, Timestamp(0));
            assert_eq!(at, expected.map(Timestamp), "{attempt} {later_ms:?}");
        }
        assert!(is_stuck(Timestamp(0), Timestamp(WATCHDOG_MS)));
        assert!(!is_stuck(Timestamp(1), Timestamp(WATCHDOG_MS)));
    }
}
