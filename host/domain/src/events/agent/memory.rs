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
mod tests {
    use super::super::tests::{T, agent, user};
    use super::*;
    use serde_json::json;

    fn knowing(agent: &Agent, of: &str, keys: &Value) -> Agent {
        let keys = keys.as_object().unwrap().clone();
        agent.then(agent.update_preferences(keys, Some(user(of)), T))
    }

    fn handed(agent: &Agent, keep: Option<AgentRole>) -> Agent {
        let events = agent.hand_off(user("bob"), keep, user("alice"), T).unwrap();
        events
            .iter()
            .fold(agent.clone(), |agent, event| agent.after(event))
    }

    #[test]
    fn what_is_learned_for_all_is_everybodys_where_the_sessions_are() {
        for (role, for_all, of) in [
            (Some(AgentRole::Primary), true, Some(OfWhom::Everybody)),
            (Some(AgentRole::Shared), true, Some(OfWhom::Everybody)),
            (Some(AgentRole::Mentee), true, Some(OfWhom::User)),
            (Some(AgentRole::Observer), true, Some(OfWhom::User)),
            (Some(AgentRole::Primary), false, Some(OfWhom::User)),
            (Some(AgentRole::Mentee), false, Some(OfWhom::User)),
            (None, true, None),
            (None, false, None),
        ] {
            assert_eq!(of_whom(role, for_all), of, "{role:?} {for_all}");
            assert!(
                role.is_none_or(|role| of.is_none_or(|of| role.may(right_for(of)))),
                "what is kept may be kept: {role:?}"
            );
        }
    }

    #[test]
    fn a_successor_takes_over_what_is_remembered_and_keeps_what_is_their_own() {
        let agent = knowing(&agent(), "alice", &json!({ "level": 3, "tone": "dry" }));
        let agent = agent.then(agent.assign_user(user("bob"), AgentRole::Shared, user("alice"), T));
        let agent = knowing(&agent, "bob", &json!({ "tone": "warm" }));
        let after = handed(&agent, None);
        assert_eq!(
            json!(after.user_preferences),
            json!({ "bob": { "tone": "warm", "level": 3 } })
        );
        let kept = handed(&agent, Some(AgentRole::Observer));
        assert_eq!(
            json!(kept.user_preferences[&user("alice")]),
            json!({ "level": 3, "tone": "dry" }),
            "who stays is not forgotten"
        );
        assert_eq!(
            json!(kept.user_preferences[&user("bob")]),
            json!({ "tone": "warm", "level": 3 })
        );
    }

    #[test]
    fn of_whom_nothing_is_remembered_nothing_is_carried() {
        let nobody = agent();
        assert_eq!(nobody.transfer_memory(&user("alice"), user("bob"), T), None);
        let same = knowing(
            &knowing(&nobody, "alice", &json!({ "tone": "dry" })),
            "bob",
            &json!({ "tone": "warm" }),
        );
        assert_eq!(same.transfer_memory(&user("alice"), user("bob"), T), None);
    }

    #[test]
    fn what_has_no_room_is_left_behind_by_name_and_the_limit_holds_to_the_byte() {
        // Without `aa` they fill the limit exactly.
        let room = SETTINGS_BYTES_MAX - r#"{"own":1,"a":"","b":1}"#.len();
        let agent = knowing(&agent(), "bob", &json!({ "own": 1 }));
        let agent = knowing(&agent, "alice", &json!({ "b": 1, "a": "x".repeat(room) }));
        let agent = Agent {
            user_preferences: agent
                .user_preferences
                .iter()
                .map(|(of, keys)| {
                    let mut keys = keys.clone();
                    if *of == user("alice") {
                        keys.insert("aa".into(), json!("too much"));
                    }
                    (of.clone(), keys)
                })
                .collect(),
            ..agent
        };
        let Some(Event::PreferencesTransferred(transferred)) =
            agent.transfer_memory(&user("alice"), user("bob"), T)
        else {
            panic!("none")
        };
        assert_eq!(
            transferred.preferences.keys().collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert_eq!(transferred.left_behind, ["aa"]);
        let after = agent.after(&Event::PreferencesTransferred(transferred));
        assert_eq!(
            serde_json::to_vec(&after.user_preferences[&user("bob")])
                .unwrap()
                .len(),
            SETTINGS_BYTES_MAX
        );
        assert!(after.remembering(&Map::new(), Some(&user("bob"))).is_ok());
    }
}
