//! The sessions that a start is about to read for the first time, noted in the store until they
//! were read.
//!
//! Reading a session may end the process, and would then end every later start. Nothing else would
//! show that, because a recovery is recorded only after the read. The note is written for many
//! sessions at once, so most sessions of a leftover note are innocent. Each is then inspected
//! alone, and only the one that ends the process is noted again and again.

use domain::id::SessionId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::Store;

/// Number of starts that note a session and end before they have read it, after which no start
/// reads it.
pub(crate) const STARTS_MAX: u32 = 3;
/// Maximum number of sessions in the note. Further sessions are inspected without a note.
const NOTED_MAX: usize = 1_024;

/// The noted sessions.
#[derive(Debug, Default)]
pub(crate) struct Inspections {
    /// The number of starts that have noted a session.
    noted: Mutex<BTreeMap<SessionId, u32>>,
    /// Lock that is held while the note is changed and written, so that the newest is written last.
    writing: tokio::sync::Mutex<()>,
}

impl Inspections {
    /// Takes over the note of sessions with work from earlier starts, and returns these sessions.
    /// Those that were noted most often come first.
    pub(crate) async fn begin(
        &self,
        store: &Store,
        was_ended: bool,
        work: &[SessionId],
    ) -> Vec<SessionId> {
        let left = store.noted_inspections().await.unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the note of the sessions that the last start was reading cannot be read"
            );
            BTreeMap::new()
        });
        let work: HashSet<SessionId> = work.iter().copied().collect();
        // A requested end does not indicate anything about the session that was being read.
        let is_kept = |session: &SessionId, starts: u32| {
            work.contains(session) && (!was_ended || starts >= STARTS_MAX)
        };
        let kept: BTreeMap<SessionId, u32> = left
            .iter()
            .map(|(session, starts)| (*session, *starts))
            .filter(|(session, starts)| is_kept(session, *starts))
            .collect();
        let mut suspects: Vec<(u32, SessionId)> = kept
            .iter()
            .map(|(session, starts)| (*starts, *session))
            .collect();
        suspects.sort_unstable_by_key(|suspect| Reverse(*suspect));
        if kept != left {
            self.change(store, |noted| *noted = kept).await;
        } else {
            *self.noted() = kept;
        }
        suspects.into_iter().map(|(_, session)| session).collect()
    }

    /// Notes sessions, durably, before they are inspected.
    pub(crate) async fn note(&self, store: &Store, sessions: &[SessionId]) {
        if sessions.is_empty() {
            return;
        }
        self.change(store, |noted| {
            for session in sessions {
                if noted.len() < NOTED_MAX || noted.contains_key(session) {
                    let starts = noted.entry(*session).or_default();
                    *starts = starts.saturating_add(1);
                }
            }
        })
        .await;
    }

    /// Removes sessions from the note: their inspection did not end the process.
    pub(crate) async fn remove(&self, store: &Store, sessions: &[SessionId]) {
        if sessions.is_empty() {
            return;
        }
        self.change(store, |noted| {
            for session in sessions {
                noted.remove(session);
            }
        })
        .await;
    }

    pub(crate) fn has(&self, session: SessionId) -> bool {
        self.noted().contains_key(&session)
    }

    /// Returns whether a session has ended the process too often to be read again.
    pub(crate) fn are_over(&self, session: SessionId) -> bool {
        self.noted()
            .get(&session)
            .is_some_and(|starts| *starts >= STARTS_MAX)
    }

    /// Changes the note, and writes it. A failed write is ignored: a full disk must not keep
    /// sessions from being inspected.
    async fn change(
        &self,
        store: &Store,
        change: impl FnOnce(&mut BTreeMap<SessionId, u32>) + Send,
    ) {
        let _writing = self.writing.lock().await;
        let changed = {
            let mut noted = self.noted();
            change(&mut noted);
            noted.clone()
        };
        if let Err(error) = store.note_inspections(changed).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "it cannot be noted which sessions are being read"
            );
        }
    }

    fn noted(&self) -> MutexGuard<'_, BTreeMap<SessionId, u32>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
