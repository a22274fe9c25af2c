//! Rates of those who have no credential of this host: each holder has one of its own.

use super::{HOLDERS_KEPT, Rate, SWEEP_MS};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many in a minute, and so many of them at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PerMinute {
    /// In a minute.
    pub(crate) max: u32,
    /// At once, after a quiet while.
    pub(crate) at_once: u32,
}

/// The rates of all holders of one kind.
#[derive(Debug)]
pub(crate) struct Rates<K> {
    allowed: PerMinute,
    of: Mutex<Kept<K>>,
}

#[derive(Debug)]
struct Kept<K> {
    rates: HashMap<K, Rate>,
    /// The time at which those that had nothing were forgotten last.
    swept: Option<Instant>,
}

impl<K: Eq + Hash> Rates<K> {
    /// Allows each holder so many.
    pub(crate) fn new(allowed: PerMinute) -> Self {
        Self {
            allowed,
            of: Mutex::new(Kept {
                rates: HashMap::new(),
                swept: None,
            }),
        }
    }

    /// Lets one more of a holder happen, or returns how long to wait instead.
    pub(crate) fn take(&self, holder: K) -> Result<(), Duration> {
        self.take_many(holder, 1)
    }

    /// Lets several more of a holder happen together, or returns how long to wait instead.
    pub(crate) fn take_many(&self, holder: K, number: u32) -> Result<(), Duration> {
        let now = Instant::now();
        let interval = self.interval();
        let burst = interval * self.allowed.at_once;
        let mut kept = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        kept.forget_idle(now);
        kept.rates
            .entry(holder)
            .or_default()
            .take(now, interval * number, burst)
    }

    /// Undoes what was let happen and did not.
    pub(crate) fn give_back(&self, holder: &K, number: u32) {
        let mut kept = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rate) = kept.rates.get_mut(holder) {
            rate.give_back(self.interval() * number);
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(60) / self.allowed.max.max(1)
    }
}

impl<K: Eq + Hash> Kept<K> {
    /// Forgets those who have nothing, before they become too many.
    fn forget_idle(&mut self, now: Instant) {
        let pause = Duration::from_millis(SWEEP_MS);
        let is_due = self.swept.is_none_or(|swept| now - swept >= pause);
        if self.rates.len() > HOLDERS_KEPT && is_due {
            self.swept = Some(now);
            self.rates.retain(|_, rate| !rate.is_idle(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_holder_has_a_rate_of_its_own() {
        let rates = Rates::new(PerMinute {
            max: 60,
            at_once: 2,
        });
        for _ in 0..2 {
            assert_eq!(rates.take("alice"), Ok(()));
        }
        assert_eq!(rates.take("alice"), Err(Duration::from_secs(1)));
        assert_eq!(rates.take("bob"), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(rates.take("alice"), Ok(()));
        assert!(rates.take("alice").is_err());
        rates.give_back(&"alice", 1);
        rates.give_back(&"carol", 1);
        assert_eq!(rates.take("alice"), Ok(()));
        assert!(rates.take("alice").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn holders_that_have_nothing_are_forgotten() {
        let rates = Rates::new(PerMinute {
            max: 60,
            at_once: 1,
        });
        for holder in 0..=HOLDERS_KEPT {
            assert_eq!(rates.take(holder), Ok(()));
        }
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(rates.take(0), Ok(()));
        assert_eq!(rates.of.lock().unwrap().rates.len(), 1);
    }
}
