//! The cached keys of one issuer: fetched when they are needed, kept while they are good, and never
//! trusted for longer.
//!
//! While the issuer answers, keys are asked for again in the background, and nobody waits. While it
//! does not, those that are here are good until their hard expiry; after that nothing is, and every
//! token waits for the next try or is told when that is.

use super::config::IssuerConfig;
use super::fetch::{FetchError, Source};
use super::jwk::KeySet;
use crate::clock::Clock;
use domain::backoff::Backoff;
use domain::time::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;
use tokio_util::task::TaskTracker;

/// Pauses after tries that failed.
const RETRIES: Backoff = Backoff {
    first_ms: 1_000,
    most_ms: 60_000,
};
/// Milliseconds in which tokens with unknown key names lead to one request at most.
pub(super) const UNKNOWN_KEY_MS_MIN: u64 = 30_000;

/// The keys cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unavailable {
    /// Seconds until the next try.
    pub(super) retry_after_s: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Keys {
    source: Source,
    refresh_ms: u64,
    hard_expiry_ms: u64,
    clock: Clock,
    state: Mutex<State>,
    /// Held by the one request that is under way.
    flight: Arc<tokio::sync::Mutex<()>>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct State {
    cached: Option<(Arc<KeySet>, Timestamp)>,
    /// Tries that failed since the last that did not.
    failures: u32,
    /// The time before which no try is made.
    next_try: Timestamp,
    /// The time before which no try is made for a key of an unknown name.
    next_for_unknown: Timestamp,
    /// The time of the last inspection.
    now: Timestamp,
}

impl State {
    /// Goes on to a moment. A clock that was set back takes all times with it: else keys would be
    /// good for longer, and nobody would ask for them, for as much as it was set back.
    fn go_on(&mut self, now: Timestamp) {
        let back_ms = self.now.since_ms(now);
        let moved = |time: Timestamp| Timestamp(time.0.saturating_sub(back_ms));
        if let Some(cached) = &mut self.cached {
            cached.1 = moved(cached.1);
        }
        self.next_try = moved(self.next_try);
        self.next_for_unknown = moved(self.next_for_unknown);
        self.now = now;
    }
}

/// The next step for verifying a token.
enum KeyLookup {
    /// These keys are good.
    Use(Arc<KeySet>),
    /// These are good, and should be asked for again.
    UseAndRefresh(Arc<KeySet>),
    /// Keys have to be asked for first.
    Fetch,
    /// Nothing can be done before then.
    Wait(Timestamp),
}

impl Keys {
    pub(super) fn new(source: Source, config: &IssuerConfig, clock: Clock) -> Self {
        Self {
            source,
            refresh_ms: config.refresh_s.saturating_mul(1_000),
            hard_expiry_ms: config.hard_expiry_s.saturating_mul(1_000),
            clock,
            state: Mutex::default(),
            flight: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// The keys by which a token of this key name can be checked. A key of the name may not be
    /// among them: then there is none.
    pub(super) async fn for_kid(
        self: &Arc<Self>,
        kid: Option<&str>,
    ) -> Result<Arc<KeySet>, Unavailable> {
        match self.look_up(kid) {
            KeyLookup::Use(keys) => return Ok(keys),
            KeyLookup::UseAndRefresh(keys) => {
                if let Ok(flight) = Arc::clone(&self.flight).try_lock_owned() {
                    self.fetch(flight);
                }
                return Ok(keys);
            }
            // What is under way may bring them yet.
            KeyLookup::Wait(until) if self.flight.try_lock().is_ok() => {
                return Err(self.unavailable(until));
            }
            KeyLookup::Wait(_) | KeyLookup::Fetch => {}
        }
        // All who need the same wait for the same request.
        let flight = Arc::clone(&self.flight).lock_owned().await;
        if let KeyLookup::Fetch = self.look_up(kid) {
            // A task of its own: whoever goes away meanwhile does not undo it for the others. What
            // it came to stands in the state.
            let _ = self.fetch(flight).await;
        }
        match self.look_up(kid) {
            KeyLookup::Use(keys) | KeyLookup::UseAndRefresh(keys) => Ok(keys),
            KeyLookup::Wait(until) => Err(self.unavailable(until)),
            // What came just now does not have it either.
            KeyLookup::Fetch => self.without(),
        }
    }

    /// Returns the cached keys for a token whose key is not among them. The issuer was just asked,
    /// and is not asked again soon.
    fn without(&self) -> Result<Arc<KeySet>, Unavailable> {
        let mut state = self.lock();
        state.next_for_unknown = state.now.plus_ms(UNKNOWN_KEY_MS_MIN);
        let cached = state.cached.as_ref().map(|(keys, _)| Arc::clone(keys));
        cached.ok_or(Unavailable { retry_after_s: 1 })
    }

    fn look_up(&self, kid: Option<&str>) -> KeyLookup {
        let state = self.lock();
        let now = state.now;
        let may_try = state.next_try <= now;
        let cached = state
            .cached
            .as_ref()
            .map(|(keys, since)| (keys, now.since_ms(*since)))
            .filter(|(_, age)| *age < self.hard_expiry_ms);
        match cached {
            Some((keys, age)) if keys.has(kid) => {
                if age >= self.refresh_ms && may_try {
                    KeyLookup::UseAndRefresh(Arc::clone(keys))
                } else {
                    KeyLookup::Use(Arc::clone(keys))
                }
            }
            Some(_) if may_try && state.next_for_unknown <= now => KeyLookup::Fetch,
            // The issuer may have a new key that it could not tell.
            Some(_) if state.failures > 0 => {
                KeyLookup::Wait(state.next_try.max(state.next_for_unknown))
            }
            Some((keys, _)) => KeyLookup::Use(Arc::clone(keys)),
            None if may_try => KeyLookup::Fetch,
            None => KeyLookup::Wait(state.next_try),
        }
    }

    /// Asks for the keys, in a task of its own.
    fn fetch(self: &Arc<Self>, flight: OwnedMutexGuard<()>) -> tokio::task::JoinHandle<()> {
        self.begun();
        let keys = Arc::clone(self);
        self.tasks.spawn(async move {
            match keys.source.keys().await {
                Ok(set) => keys.arrived(set),
                Err(error) => keys.failed(&error),
            }
            drop(flight);
        })
    }

    /// Counts a try as failed from its beginning, so that a try that never ends counts too.
    fn begun(&self) {
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        state.next_try = state.now.plus_ms(RETRIES.pause_ms(state.failures));
    }

    fn arrived(&self, set: KeySet) {
        let mut state = self.lock();
        state.cached = Some((Arc::new(set), state.now));
        state.failures = 0;
        state.next_try = state.now;
    }

    fn failed(&self, error: &FetchError) {
        let mut state = self.lock();
        let now = state.now;
        state.next_try = now.plus_ms(RETRIES.pause_ms(state.failures));
        let left_ms = state.cached.as_ref().map_or(0, |(_, since)| {
            self.hard_expiry_ms.saturating_sub(now.since_ms(*since))
        });
        tracing::warn!(
            error = error as &dyn std::error::Error,
            failures = state.failures,
            keys.good_for_ms = left_ms,
            "an issuer's keys cannot be fetched"
        );
    }

    fn unavailable(&self, until: Timestamp) -> Unavailable {
        Unavailable {
            retry_after_s: until.since_ms(self.clock.now()).div_ceil(1_000).max(1),
        }
    }

    /// The state at this moment.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.go_on(self.clock.now());
        state
    }
}
