//! The way in to a provider: at most so many calls at a time, none while it wants to be left alone,
//! few while it fails.

use crate::failure::{Failure, Reason};
use crate::fair_semaphore::{FairSemaphore, Party, Permit};
use crate::peer::Peer;
use domain::delegate::Priority;
use egress::awake::{Instant, sleep_until};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Milliseconds for which a model is left alone at most, whatever its provider asks for. Then one
/// call goes out to see.
const HOLD_MS_MAX: u64 = 600_000;

/// The state that all calls of one provider share.
#[derive(Debug)]
pub(crate) struct Gate {
    semaphore: Arc<FairSemaphore>,
    breaker: Mutex<Breaker>,
    /// The times until which models are not asked, because the provider said so.
    holds: Mutex<HashMap<String, Instant>>,
    /// The calls before which others can be put.
    urgent: watch::Sender<UrgentCalls>,
    born: Instant,
}

/// The calls at a provider, in it and in the queue for it, that are more urgent than the least.
#[derive(Debug, Clone, Copy, Default)]
struct UrgentCalls {
    present: usize,
    last_left: Option<Instant>,
}

/// One of them, until it is dropped.
struct Urgent<'a>(&'a watch::Sender<UrgentCalls>);

impl<'a> Urgent<'a> {
    fn enter(calls: &'a watch::Sender<UrgentCalls>) -> Self {
        calls.send_modify(|calls| calls.present += 1);
        Self(calls)
    }
}

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|calls| {
            calls.present = calls.present.saturating_sub(1);
            calls.last_left = Some(Instant::now());
        });
    }
}

/// The limits within which a call gives way to others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct YieldLimits {
    /// Time without any of the others after which it goes: a turn asks again soon.
    pub(crate) quiet: Duration,
    /// Time after which it goes all the same.
    pub(crate) longest: Duration,
}

impl Gate {
    pub(crate) fn new(concurrent_max: u32, breaker: Breaker) -> Self {
        Self {
            semaphore: FairSemaphore::new(usize::try_from(concurrent_max).unwrap_or(1)),
            breaker: Mutex::new(breaker),
            holds: Mutex::new(HashMap::new()),
            urgent: watch::Sender::default(),
            born: Instant::now(),
        }
    }

    /// Waits for a permit, in the turns of a party. The wait takes nothing of the call's time: the
    /// deadline is moved by as much. It ends all the same, because everybody before it has a
    /// deadline too.
    ///
    /// Fails at once when the breaker is open, and when the provider wants the model left alone for
    /// longer than `patience_ms` or until the deadline.
    pub(crate) async fn enter(
        &self,
        peer: Peer<'_>,
        party: Party,
        patience_ms: u64,
        deadline: &mut Instant,
    ) -> Result<Pass<'_>, Failure> {
        while let Some(until) = self.leased(peer.model) {
            let left_ms = millis(until.saturating_duration_since(Instant::now()));
            if left_ms > patience_ms || until >= *deadline {
                return Err(peer.rate_limited(Some(left_ms), "the provider asked to be left alone"));
            }
            sleep_until(until).await;
        }
        let urgent = (party.priority > Priority::Low).then(|| Urgent::enter(&self.urgent));
        let asked = Instant::now();
        let permit = self.semaphore.enter(party).await;
        *deadline = *deadline + asked.elapsed();
        if !lock(&self.breaker).admits(self.now_ms()) {
            return Err(peer.unavailable(Reason::CircuitOpen, ""));
        }
        Ok(Pass {
            gate: self,
            _permit: permit,
            _urgent: urgent,
            settled: false,
        })
    }

    /// Waits while calls are here that are more urgent than the least, and until none came for a
    /// while.
    pub(crate) async fn give_way(&self, limits: YieldLimits) {
        let mut calls = self.urgent.subscribe();
        let latest = Instant::now() + limits.longest;
        loop {
            let UrgentCalls { present, last_left } = *calls.borrow_and_update();
            let until = match last_left {
                _ if present > 0 => latest,
                Some(left) => latest.min(left + limits.quiet),
                None => return,
            };
            if Instant::now() >= until {
                return;
            }
            tokio::select! {
                _ = calls.changed() => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Lets no call of this model in for a while. Returns for how many milliseconds.
    pub(crate) fn hold(&self, model: &str, ms: u64) -> u64 {
        let ms = ms.min(HOLD_MS_MAX);
        let until = Instant::now() + Duration::from_millis(ms);
        let mut holds = lock(&self.holds);
        let entry = holds.entry(model.to_owned()).or_insert(until);
        *entry = until.max(*entry);
        ms
    }

    fn leased(&self, model: &str) -> Option<Instant> {
        let mut holds = lock(&self.holds);
        let until = *holds.get(model)?;
        if until <= Instant::now() {
            holds.remove(model);
            return None;
        }
        Some(until)
    }

    fn now_ms(&self) -> u64 {
        millis(self.born.elapsed())
    }
}

/// A call that is let in at a provider. Dropped without a result, it counts as given up.
pub(crate) struct Pass<'a> {
    gate: &'a Gate,
    _permit: Permit,
    _urgent: Option<Urgent<'a>>,
    settled: bool,
}

impl Pass<'_> {
    /// Records that the provider answered.
    pub(crate) fn succeeded(mut self) {
        self.settled = true;
        lock(&self.gate.breaker).succeeded();
    }

    /// Records that the provider, or the way to it, failed.
    pub(crate) fn failed(mut self, provider: &str) {
        self.settled = true;
        let mut breaker = lock(&self.gate.breaker);
        if breaker.failed(self.gate.now_ms()) {
            tracing::warn!(
                llm.provider = provider,
                open_ms = breaker.open_ms(),
                "a model provider failed several times in a row and is left alone for a while"
            );
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.settled {
            lock(&self.gate.breaker).abandoned(self.gate.now_ms());
        }
    }
}

/// Locks a mutex, also one that is poisoned. Its value stays right whatever panics: every change is
/// one assignment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

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
mod tests;
