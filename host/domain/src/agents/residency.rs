//! Residency: whether an agent is active, sleeping or dead, according to its stored data and the
//! time.
//!
//! Residency is independent of an agent's durable state (active or archived) and of its runs. It is
//! not stored, no agent has to be woken, and a restart changes nothing.

use crate::agents::path::PathKind;
use crate::values::text::words;
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Milliseconds without work after which an agent sleeps.
pub const IDLE_SIGNAL_MS: u64 = 60_000;
/// Milliseconds without work after which an agent that was made for one piece of work is dead.
pub const POISON_PILL_MS: u64 = 3_600_000;

/// The residency of an agent: whether it is active, sleeping or dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Residency {
    /// It has an open run or a waiting input, or had one a moment ago. Next: sleeping.
    Active,
    /// Nothing has happened for a while. Work makes it active again. Time alone makes an agent dead
    /// that was made for one piece of work.
    Sleeping,
    /// It was made for a piece of work that ended long ago. It receives nothing more, and all of it
    /// can still be read. This state is final.
    Dead,
}

/// The idle times after which an agent sleeps or is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Milliseconds until it sleeps.
    pub idle_signal_ms: u64,
    /// Milliseconds until an agent that was made for one piece of work is dead.
    pub poison_pill_ms: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            idle_signal_ms: IDLE_SIGNAL_MS,
            poison_pill_ms: POISON_PILL_MS,
        }
    }
}

/// The known facts about an agent's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// True if it has an open run, or a waiting input that is due.
    pub is_busy: bool,
    /// Time of its latest input or turn; none if it never had any.
    pub last: Option<Timestamp>,
    /// Time at which the agent was made.
    pub made: Timestamp,
}

impl Work {
    /// Returns the time since which it is idle; none while it is busy.
    #[must_use]
    pub fn idle_since(&self) -> Option<Timestamp> {
        (!self.is_busy).then(|| self.last.unwrap_or(self.made))
    }
}

/// Returns the residency of an agent at a time. An agent that has not had any work yet is never
/// dead.
#[must_use]
pub fn residency(kind: PathKind, work: Work, patience: Patience, now: Timestamp) -> Residency {
    let Some(since) = work.idle_since() else {
        return Residency::Active;
    };
    let idle_ms = now.0.saturating_sub(since.0);
    if kind.is_ephemeral() && work.last.is_some() && idle_ms >= patience.poison_pill_ms {
        return Residency::Dead;
    }
    if idle_ms >= patience.idle_signal_ms {
        Residency::Sleeping
    } else {
        Residency::Active
    }
}

words!(Residency { Active = "active", Sleeping = "sleeping", Dead = "dead" });

#[cfg(test)]
mod tests {
    use super::Residency::{Active, Dead, Sleeping};
    use super::*;
    use PathKind::{Agent, Memory, Search, Sub, Task};

    const HOUR: u64 = POISON_PILL_MS;

    /// An agent is active then sleeps and is dead only when it was made for a piece of work.
    #[test]
    fn an_agent_is_active_then_sleeps_and_dies_only_if_made_for_one_piece_of_work() {
        let work = |is_busy, last: Option<u64>| Work {
            is_busy,
            last: last.map(Timestamp),
            made: Timestamp(0),
        };
        for (kind, is_busy, last, now, expected) in [
            (Agent, false, Some(0), IDLE_SIGNAL_MS - 1, Active),
            (Agent, false, Some(0), IDLE_SIGNAL_MS, Sleeping),
            (Agent, false, Some(0), HOUR * 100, Sleeping),
            (Agent, true, Some(0), HOUR * 100, Active),
            (Agent, false, None, IDLE_SIGNAL_MS, Sleeping),
            (Task, false, Some(0), HOUR, Sleeping),
            (Sub, false, Some(0), HOUR - 1, Sleeping),
            (Sub, false, Some(0), HOUR, Dead),
            (Sub, true, Some(0), HOUR * 100, Active),
            (Sub, false, None, HOUR * 100, Sleeping),
            (Search, false, Some(5), HOUR + 5, Dead),
            (Memory, false, Some(5), HOUR + 5, Dead),
            // A clock that was set back.
            (Sub, false, Some(10), 0, Active),
        ] {
            let found = residency(
                kind,
                work(is_busy, last),
                Patience::default(),
                Timestamp(now),
            );
            assert_eq!(
                found, expected,
                "{kind} busy {is_busy} last {last:?} at {now}"
            );
        }
    }
}
