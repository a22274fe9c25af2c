//! Ownership of an agent's memory. It decides for which user the agent remembers what it learns in
//! a session, and what a user's successor takes over.

use super::Agent;
use super::configure::SETTINGS_BYTES_MAX;
use crate::access::user::UserId;
use crate::agents::role::{AgentRole, Right};
use crate::events::event::{Event, PreferencesTransferred};
use crate::values::time::Timestamp;
use serde_json::{Map, Value};

/// The users whom a memory of an agent concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfWhom {
    /// All its users.
    Everybody,
    /// Only the user of the run.
    User,
}

/// Returns the owner of what a step remembers in a run for a user in this role.
///
/// A memory that is `for_all` is kept for all users if the user's sessions are visible to all; what
/// was learned in a mentee's session stays the mentee's. Nothing is remembered for a user who is no
/// longer assigned: their memories have been removed already.
#[must_use]
pub fn of_whom(role: Option<AgentRole>, for_all: bool) -> Option<OfWhom> {
    let role = role?;
    Some(if for_all && role.may(Right::Teach) {
        OfWhom::Everybody
    } else {
        OfWhom::User
    })
}

/// The right that a user must still have when the agent stores memories learned of or from them.
#[must_use]
pub fn right_for(of: OfWhom) -> Right {
    match of {
        OfWhom::Everybody => Right::Teach,
        OfWhom::User => Right::Inspect,
    }
}

impl Agent {
    /// Returns the event by which a successor takes over an agent's memories of a user. None if
    /// there are no memories.
    ///
    /// The successor's own keys win. The other user's keys are taken in the order of their names,
    /// as long as they fit within [`SETTINGS_BYTES_MAX`]. The event names the keys that did not
    /// fit.
    #[must_use]
    pub fn transfer_memory(&self, from: &UserId, to: UserId, now: Timestamp) -> Option<Event> {
        let own = self.user_preferences.get(&to).cloned().unwrap_or_default();
        let mut theirs: Vec<(&String, &Value)> = self
            .user_preferences
            .get(from)?
            .iter()
            .filter(|(key, _)| !own.contains_key(*key))
            .collect();
        theirs.sort_by_key(|(key, _)| *key);
        let mut bytes = json_bytes(&own);
        let mut is_empty = own.is_empty();
        let mut preferences = Map::new();
        let mut left_behind = Vec::new();
        for (key, value) in theirs {
            // The key, a colon, the value, and a comma before all but the first.
            let more = json_bytes(key) + 1 + json_bytes(value) + usize::from(!is_empty);
            if bytes + more > SETTINGS_BYTES_MAX {
                left_behind.push(key.clone());
                continue;
            }
            (bytes, is_empty) = (bytes + more, false);
            preferences.insert(key.clone(), value.clone());
        }
        if preferences.is_empty() && left_behind.is_empty() {
            return None;
        }
        let transferred = PreferencesTransferred {
            agent: self.id,
            from: from.clone(),
            to,
            preferences,
            left_behind,
            transferred_at: now,
        };
        Some(Event::PreferencesTransferred(transferred))
    }
}

fn json_bytes(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(SETTINGS_BYTES_MAX, |text| text.len())
}

#[cfg(test)]
mod tests;
