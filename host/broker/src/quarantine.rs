//! Quarantined sessions: no work begins for them until they are released or the host starts again.
//!
//! A session gets here because its operator requested it at the start, or because no work on it can
//! succeed. Its run cannot be read or folded, its end cannot be stored, or its driver panics
//! whatever it tries. Sessions that may have ended the host wait here for their turn
//! (`isolation.rs`). More attempts would only waste the host's resources. The list belongs to this
//! process and nothing depends on it: after a start the host finds such sessions again. Only those
//! whose reading ended the process are noted in the store.

use domain::id::SessionId;
use domain::time::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A session in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The session.
    pub session: SessionId,
    /// The kind of reason.
    pub why: QuarantineCause,
    /// The reason, for people.
    pub reason: String,
    /// The time at which it was put there.
    pub since: Timestamp,
}

/// The kinds of reasons for a quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuarantineCause {
    /// The operator named it at the start of the host.
    Skipped,
    /// The host cannot continue with it.
    Stuck,
    /// It may have ended the host. It continues without a request when its turn comes.
    Suspected,
}

/// The sessions in quarantine.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(Mutex<BTreeMap<SessionId, Quarantined>>);

impl Quarantine {
    pub(crate) fn put(&self, stuck: Quarantined) {
        self.sessions().entry(stuck.session).or_insert(stuck);
    }

    pub(crate) fn has(&self, session: SessionId) -> bool {
        self.sessions().contains_key(&session)
    }

    pub(crate) fn get(&self, session: SessionId) -> Option<Quarantined> {
        self.sessions().get(&session).cloned()
    }

    /// Releases a session. Returns false when it was not in quarantine.
    pub(crate) fn release(&self, session: SessionId) -> bool {
        self.sessions().remove(&session).is_some()
    }

    /// Releases a session that is there for this kind of reason. Returns false for any other.
    pub(crate) fn release_if(&self, session: SessionId, why: QuarantineCause) -> bool {
        let mut sessions = self.sessions();
        let is_there = sessions.get(&session).is_some_and(|there| there.why == why);
        is_there && sessions.remove(&session).is_some()
    }

    /// Returns the sessions in the order in which they were put there.
    pub(crate) fn list(&self) -> Vec<Quarantined> {
        let mut all: Vec<Quarantined> = self.sessions().values().cloned().collect();
        all.sort_by_key(|quarantined| (quarantined.since, quarantined.session));
        all
    }

    pub(crate) fn count(&self) -> usize {
        self.sessions().len()
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, Quarantined>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
