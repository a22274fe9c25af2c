//! Counts of the turns and events of a session.

use super::ReadError;
use crate::store::Store;
use domain::id::SessionId;
use std::collections::BTreeMap;

/// Counts of a session's own turns. Turns from before the session was forked do not count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionStats {
    /// Messages by role: `user`, `assistant`, `tool` and `notice`.
    pub messages: BTreeMap<String, u64>,
    /// Turns by their end: `replied`, `completed`, `failed` and `aborted`.
    pub turns: BTreeMap<String, u64>,
    /// Turns in progress: 1 at most.
    pub open_turns: u64,
    /// Milliseconds from the beginning of each ended turn to its end, waiting included.
    pub turns_ms: u64,
}

impl Store {
    /// Returns the counts of a session. The cost grows with its messages.
    pub async fn session_stats(&self, session: SessionId) -> Result<SessionStats, ReadError> {
        self.read(move |sql| {
            let messages = sql.all::<(String, u64)>(
                "SELECT m.role, count(*) FROM runs r JOIN messages m ON m.run = r.id WHERE \
                 r.session = ?1 GROUP BY m.role",
                [session],
            )?;
            let runs = sql.all::<(Option<String>, u64, u64)>(
                "SELECT outcome, count(*), coalesce(sum(ended_at - started_at), 0) FROM runs WHERE \
                 session = ?1 GROUP BY outcome",
                [session],
            )?;
            let mut stats = SessionStats {
                messages: messages.into_iter().collect(),
                ..SessionStats::default()
            };
            for (outcome, count, ms) in runs {
                stats.turns_ms = stats.turns_ms.saturating_add(ms);
                match outcome {
                    Some(outcome) => drop(stats.turns.insert(outcome, count)),
                    None => stats.open_turns = count,
                }
            }
            Ok(stats)
        })
        .await
    }
}
