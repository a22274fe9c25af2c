//! Results of delegations that only read, kept in the memory of this host.
//!
//! Nothing rests on them: without them the work is done again. They belong to the catalogue that
//! was served when the work was handed over, so that another version of code, configuration or
//! grants has none of them.

use crate::serving::Served;
use domain::delegate::{Cache, CacheLimits, CacheScope, Delegation, Hit, Kept};
use domain::digest::Digest;
use domain::id::OperationId;
use domain::time::Timestamp;
use domain::user::UserId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Delegations under way whose results are to be kept, at most: the oldest are forgotten.
const AWAITED_MAX: usize = 1_024;

/// See the module. Without limits nothing is kept.
pub(crate) struct KeptResults {
    limits: Option<CacheLimits>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The catalogue that all of it belongs to.
    served: Weak<Served>,
    cache: Cache,
    /// Delegations under way, with the keys of their results.
    awaited: VecDeque<(OperationId, Digest, UserId)>,
}

impl State {
    /// Returns it for a catalogue. It begins anew if it belongs to another one.
    fn belonging_to(&mut self, served: &Arc<Served>) -> &mut Self {
        if !Weak::ptr_eq(&self.served, &Arc::downgrade(served)) {
            *self = Self {
                served: Arc::downgrade(served),
                ..Self::default()
            };
        }
        self
    }
}

/// The answer to whether a result is kept.
pub(crate) enum Looked {
    /// It is.
    Kept(Hit),
    /// It is not, and the result is to be kept under this key.
    Awaited(Digest),
    /// Results of this delegation are not kept.
    Never,
}

impl KeptResults {
    pub(crate) fn new(limits: Option<CacheLimits>) -> Self {
        Self {
            limits,
            state: Mutex::default(),
        }
    }

    /// Looks a delegation up. One that does more than read has the results of its user forgotten.
    pub(crate) fn look(
        &self,
        served: &Arc<Served>,
        delegation: &Delegation,
        scope: CacheScope<'_>,
        now: Timestamp,
    ) -> Looked {
        let Some(limits) = self.limits else {
            return Looked::Never;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.belonging_to(served);
        if !delegation.is_read_only() {
            state.cache.forget(scope.user);
            // What is read meanwhile may be of before.
            state.awaited.retain(|awaited| awaited.2 != *scope.user);
            return Looked::Never;
        }
        let key = delegation.cache_key(scope);
        match state.cache.get(key, limits, now) {
            Some(hit) => Looked::Kept(hit),
            None => Looked::Awaited(key),
        }
    }

    /// Notes that the result of an operation is to be kept.
    pub(crate) fn expect(
        &self,
        served: &Arc<Served>,
        operation: OperationId,
        key: Digest,
        user: &UserId,
    ) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.belonging_to(served);
        if state.awaited.len() >= AWAITED_MAX {
            state.awaited.pop_front();
        }
        state.awaited.push_back((operation, key, user.clone()));
    }

    /// Keeps the result of an operation, if it is to be kept and the catalogue is still the same.
    pub(crate) fn keep(
        &self,
        served: &Arc<Served>,
        operation: OperationId,
        hit: impl FnOnce() -> Option<Hit>,
        now: Timestamp,
    ) {
        let Some(limits) = self.limits else {
            return;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.belonging_to(served);
        let place = state
            .awaited
            .iter()
            .position(|awaited| awaited.0 == operation);
        let Some((_, key, user)) = place.and_then(|place| state.awaited.remove(place)) else {
            return;
        };
        if let Some(hit) = hit() {
            let kept = Kept {
                key,
                user,
                hit,
                time: now,
            };
            state.cache.put(kept, limits);
        }
    }
}
