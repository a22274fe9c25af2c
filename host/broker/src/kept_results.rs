//! Results of delegations that only read, kept in the memory of this host.
//!
//! Nothing depends on them: without them the work is done again. They belong to the catalogue that
//! was served when the work was handed over, so that a new version of code, configuration or grants
//! starts without them.

use crate::serving::Served;
use domain::delegate::{Cache, CacheLimits, CacheScope, Delegation, Hit, Kept};
use domain::digest::Digest;
use domain::id::{InputId, OperationId};
use domain::time::Timestamp;
use domain::user::UserId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Maximum number of delegations under way whose results will be cached: the oldest are dropped.
const AWAITED_MAX: usize = 1_024;

/// Delegations under way that do more than read, at most. While there are more, nothing is kept.
pub(crate) const WRITING_MAX: usize = 1_024;

/// A delegation under way that may change data that others of its user read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writing {
    pub(crate) operation: OperationId,
    pub(crate) user: UserId,
    /// The input that carries its work; none before that is handed over.
    pub(crate) input: Option<InputId>,
    /// Time from which it counts as over if the store has no such input.
    pub(crate) until: Timestamp,
}

/// See the module. Without limits in the served configuration nothing is cached.
#[derive(Default)]
pub(crate) struct KeptResults {
    state: Mutex<State>,
}

/// Returns the limits of the cache; none without a cache.
fn limits_of(served: &Served) -> Option<CacheLimits> {
    served.settings.limits.delegation_cache
}

#[derive(Default)]
struct State {
    /// The catalogue to which all of it belongs.
    served: Weak<Served>,
    cache: Cache,
    /// Delegations under way, with the keys of their results.
    awaited: VecDeque<(OperationId, Digest, UserId)>,
    /// Delegations that do more than read, of whatever catalogue.
    writing: HashMap<OperationId, Writing>,
    /// True if those are among them that were under way when the host started.
    knows_earlier: bool,
}

impl State {
    /// Returns the cache for a catalogue. It is cleared if it belongs to another one.
    fn belonging_to(&mut self, served: &Arc<Served>) -> &mut Self {
        if !Weak::ptr_eq(&self.served, &Arc::downgrade(served)) {
            *self = Self {
                served: Arc::downgrade(served),
                writing: std::mem::take(&mut self.writing),
                knows_earlier: self.knows_earlier,
                ..Self::default()
            };
        }
        self
    }

    /// Notes a delegation that does more than read.
    fn note(&mut self, writing: Writing) {
        self.cache.forget(&writing.user);
        // Results that were read meanwhile may predate the change.
        self.awaited.retain(|awaited| awaited.2 != writing.user);
        self.writing.insert(writing.operation, writing);
    }

    /// Returns the delegations because of which nothing is kept for a user.
    fn in_the_way_of(&self, user: &UserId) -> Vec<Writing> {
        let is_full = self.writing.len() >= WRITING_MAX;
        self.writing
            .values()
            .filter(|writing| is_full || writing.user == *user)
            .cloned()
            .collect()
    }
}

/// The answer to whether a result is kept.
pub(crate) enum Lookup {
    /// The result is cached.
    Kept(Hit),
    /// The result is not cached yet, and will be stored under this key.
    Awaited(Digest),
    /// Results of this delegation are not kept.
    Never,
}

impl KeptResults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the delegations are still to be learned that were under way when the host
    /// started ([`Self::learn`]).
    pub(crate) fn wants_earlier(&self, served: &Served) -> bool {
        limits_of(served).is_some() && !self.state().knows_earlier
    }

    /// Adds the delegations that were under way when the host started. It is unknown whether they
    /// do more than read.
    pub(crate) fn learn(&self, earlier: Vec<Writing>) {
        let mut state = self.state();
        state.knows_earlier = true;
        earlier.into_iter().for_each(|writing| state.note(writing));
    }

    /// Records a delegation that does more than read, before it is handed over. The cached results
    /// of its user are dropped.
    pub(crate) fn begin_writing(&self, served: &Served, writing: Writing) {
        let mut state = self.state();
        if limits_of(served).is_some() {
            state.note(writing);
        } else {
            // Learned of from the store, should results be kept one day.
            state.knows_earlier = false;
        }
    }

    /// Notes the input that carries a delegation which does more than read. Without one it was
    /// refused.
    pub(crate) fn handed_over(&self, operation: OperationId, input: Option<InputId>) {
        let mut state = self.state();
        if input.is_none() {
            state.writing.remove(&operation);
        } else if let Some(writing) = state.writing.get_mut(&operation) {
            writing.input = input;
        }
    }

    /// Returns the delegations because of which nothing is kept for a user, unless they are over.
    pub(crate) fn in_the_way_of(&self, user: &UserId) -> Vec<Writing> {
        self.state().in_the_way_of(user)
    }

    /// Notes that a delegation which did more than read is over.
    pub(crate) fn written(&self, operation: OperationId) {
        self.state().writing.remove(&operation);
    }

    /// Looks up a delegation that only reads.
    pub(crate) fn inspect(
        &self,
        served: &Arc<Served>,
        delegation: &Delegation,
        scope: CacheScope<'_>,
        now: Timestamp,
    ) -> Lookup {
        let Some(limits) = limits_of(served) else {
            return Lookup::Never;
        };
        let mut state = self.state();
        let state = state.belonging_to(served);
        if !state.in_the_way_of(scope.user).is_empty() {
            return Lookup::Never;
        }
        let key = delegation.cache_key(scope);
        match state.cache.get(key, limits, now) {
            Some(hit) => Lookup::Kept(hit),
            None => Lookup::Awaited(key),
        }
    }

    /// Records that the result of an operation will be cached.
    pub(crate) fn expect(
        &self,
        served: &Arc<Served>,
        operation: OperationId,
        key: Digest,
        user: &UserId,
    ) {
        let mut state = self.state();
        let state = state.belonging_to(served);
        if state.awaited.len() >= AWAITED_MAX {
            state.awaited.pop_front();
        }
        state.awaited.push_back((operation, key, user.clone()));
    }

    /// Drops all results, of all users, and caches none of the delegations under way. They may
    /// contain data that a purge erases, or get such data from a worker that is still running.
    pub(crate) fn forget_all(&self) {
        let mut state = self.state();
        state.cache = Cache::default();
        state.awaited.clear();
    }

    /// Caches the result of an operation, if it is expected and the catalogue is still the same.
    pub(crate) fn keep(
        &self,
        served: &Arc<Served>,
        operation: OperationId,
        hit: impl FnOnce() -> Option<Hit>,
        now: Timestamp,
    ) {
        let Some(limits) = limits_of(served) else {
            return;
        };
        let mut state = self.state();
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
