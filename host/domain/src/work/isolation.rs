//! The isolation of work that may have ended the process.
//!
//! If the process ends unexpectedly, the sessions with work in progress at that moment are
//! recorded. Sessions that only waited are not among them. The session that ends the process is
//! among them each time, and others by chance. Suspects are therefore resumed in halves, and in the
//! end alone.

use crate::values::id::{RunId, SessionId};
use crate::values::limits::{ALONE_ENDS_MAX, SUSPECTED_ENDS_MIN};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The ends of the process during a session's work, with no progress in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspicion {
    /// The open run; none if the session had none yet.
    pub run: Option<RunId>,
    /// Number of these ends.
    pub ends: u32,
    /// Number of those ends during which no other suspect had work.
    pub alone: u32,
}

/// The suspicions of a store's sessions.
pub type Suspicions = BTreeMap<SessionId, Suspicion>;

/// A session with work, as found at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The session.
    pub session: SessionId,
    /// Its open run.
    pub run: Option<RunId>,
    /// True if that run made progress since it was resumed last, or was never resumed.
    pub has_progressed: bool,
}

impl Suspicion {
    /// Returns whether the session is under suspicion, and resumed with few others.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.ends >= SUSPECTED_ENDS_MIN
    }

    /// Returns whether the work ended the process as the only suspect so often that it is given up.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.alone >= ALONE_ENDS_MAX
    }

    /// Returns whether the session has made no progress since this was noted.
    fn stands(&self, found: &Found) -> bool {
        match self.run {
            None => found.run.is_none() || !found.has_progressed,
            Some(run) => found.run == Some(run) && !found.has_progressed,
        }
    }
}

/// Returns the suspicions after the process ended during these sessions' work. A requested end, or
/// one with an outside cause, adds no suspicion.
#[must_use]
pub fn suspected(
    before: &Suspicions,
    found: &[Found],
    computed: &BTreeSet<SessionId>,
) -> Suspicions {
    let status: Suspicions = found
        .iter()
        .filter_map(|found| {
            Some((found.session, *before.get(&found.session)?))
                .filter(|(_, suspicion)| suspicion.stands(found))
        })
        .collect();
    let suspects = status
        .iter()
        .filter(|(session, suspicion)| suspicion.is_suspect() && computed.contains(*session));
    let suspects: Vec<SessionId> = suspects.map(|(session, _)| *session).collect();
    let mut after = Suspicions::new();
    for found in found {
        let mut suspicion = status.get(&found.session).copied().unwrap_or_default();
        suspicion.run = found.run;
        if computed.contains(&found.session) {
            suspicion.ends = suspicion.ends.saturating_add(1);
            let is_alone = suspects == [found.session];
            suspicion.alone = suspicion.alone.saturating_add(u32::from(is_alone));
        }
        if suspicion.ends > 0 {
            after.insert(found.session, suspicion);
        }
    }
    after
}

/// Returns the suspects in groups, which are resumed one after the other. The first has half of the
/// most suspected ones, each later group half of the rest. Work that is to be given up waits for
/// nothing and is in no group.
#[must_use]
pub fn groups(suspicions: &Suspicions) -> Vec<Vec<SessionId>> {
    let mut rest: Vec<(Reverse<u32>, SessionId)> = suspicions
        .iter()
        .filter(|(_, suspicion)| suspicion.is_suspect() && !suspicion.is_over())
        .map(|(session, suspicion)| (Reverse(suspicion.ends), *session))
        .collect();
    rest.sort_unstable();
    let most = rest
        .iter()
        .take_while(|one| rest.first().is_some_and(|first| first.0 == one.0));
    let mut size = most.count().div_ceil(2);
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let group = rest.drain(..size).map(|(_, session)| session);
        groups.push(group.collect());
        size = rest.len().div_ceil(2);
    }
    groups
}

#[cfg(test)]
mod tests;
