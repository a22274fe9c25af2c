//! A circuit breaker: a provider that failed several times in a row is left alone for a while, then
//! tried with one call.

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Calls go through. After the limit of failures in a row: open.
    Closed {
        /// Failures since the last success.
        failures: u32,
    },
    /// No call goes through until a time; the first one after it is a probe and half-opens.
    Open {
        /// Milliseconds of the caller's clock.
        until_ms: u64,
    },
    /// One call is out to see. It succeeds: closed. It fails: open. It is abandoned: open, and due
    /// at once.
    HalfOpen,
}

/// A breaker; time comes in as milliseconds of any clock that does not go back.
#[derive(Debug)]
pub(crate) struct Breaker {
    failures_max: u32,
    open_ms: u64,
    state: State,
}

impl Breaker {
    pub(crate) fn new(failures_max: u32, open_ms: u64) -> Self {
        Self {
            failures_max,
            open_ms,
            state: State::Closed { failures: 0 },
        }
    }

    /// Milliseconds for which it stays open.
    pub(crate) fn open_ms(&self) -> u64 {
        self.open_ms
    }

    /// Returns whether a call may go through now. If it may, one of the three methods below must
    /// follow.
    pub(crate) fn admits(&mut self, now_ms: u64) -> bool {
        match self.state {
            State::Closed { .. } => true,
            State::Open { until_ms } if now_ms >= until_ms => {
                self.state = State::HalfOpen;
                true
            }
            State::Open { .. } | State::HalfOpen => false,
        }
    }

    /// A call came back with an answer, whatever it was.
    pub(crate) fn succeeded(&mut self) {
        self.state = State::Closed { failures: 0 };
    }

    /// A call failed by the provider's or the network's fault. Tells whether that opened the
    /// breaker.
    pub(crate) fn failed(&mut self, now_ms: u64) -> bool {
        let open = State::Open {
            until_ms: now_ms.saturating_add(self.open_ms),
        };
        self.state = match self.state {
            State::Closed { failures } if failures + 1 < self.failures_max => State::Closed {
                failures: failures + 1,
            },
            State::Closed { .. } | State::HalfOpen => open,
            // A call that began before the breaker opened says nothing new.
            State::Open { .. } => return false,
        };
        self.state == open
    }

    /// A call was given up by its caller.
    pub(crate) fn abandoned(&mut self, now_ms: u64) {
        if self.state == State::HalfOpen {
            self.state = State::Open { until_ms: now_ms };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_open_it_and_one_probe_closes_it() {
        let mut breaker = Breaker::new(3, 100);
        assert!(!breaker.failed(0) && !breaker.failed(0));
        breaker.succeeded();
        assert!(!breaker.failed(0) && !breaker.failed(0) && breaker.admits(0));
        assert!(breaker.failed(0));
        assert!(!breaker.admits(99));
        assert!(breaker.admits(100), "the probe");
        assert!(!breaker.admits(100), "only one");
        breaker.succeeded();
        assert!(breaker.admits(100) && breaker.admits(100));
    }

    #[test]
    fn a_failed_probe_opens_it_again_and_an_abandoned_one_is_replaced() {
        let mut breaker = Breaker::new(1, 100);
        assert!(breaker.failed(0));
        assert!(breaker.admits(100));
        assert!(breaker.failed(100));
        assert!(!breaker.admits(150));
        assert!(breaker.admits(200));
        breaker.abandoned(200);
        assert!(breaker.admits(200));
    }
}
