//! The agent aggregate as far as a conversation needs it: preferences and the slot for structured sessions.

use crate::authority::Denies;
use crate::definition::DefinitionId;
use crate::event::Event;
use crate::id::{AgentId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An agent as the fold of its stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// The template it was made from.
    pub definition: DefinitionId,
    /// Its address.
    pub path: String,
    /// Who it belongs to.
    pub owner_user_id: String,
    /// Its name.
    pub name: String,
    /// What the agents that spawned it may not do: it may not either, for as long as it lives.
    #[serde(default, skip_serializing_if = "Denies::is_empty")]
    pub denies: Denies,
    /// What it remembers of the user's wishes.
    pub preferences: Map<String, Value>,
    /// The structured session that holds its slot, with its type.
    pub slot: Option<(SessionId, String)>,
    /// How many structured sessions it has begun.
    pub total_sessions: u64,
    /// How many of them ended well.
    pub successful_completions: u64,
}

impl Agent {
    /// The agent after one more event of its stream; none before it was created.
    #[must_use]
    pub fn apply(agent: Option<Self>, event: &Event) -> Option<Self> {
        if let Event::AgentCreated(created) = event {
            return Some(Self {
                id: created.agent,
                definition: created.definition.clone(),
                path: created.path.clone(),
                owner_user_id: created.owner_user_id.clone(),
                name: created.name.clone(),
                denies: created.denies.clone(),
                preferences: Map::new(),
                slot: None,
                total_sessions: 0,
                successful_completions: 0,
            });
        }
        let mut agent = agent?;
        match event {
            Event::PreferencesUpdated(updated) => {
                if let Value::Object(keys) = &updated.preferences {
                    agent.preferences.extend(keys.clone());
                }
            }
            Event::SlotTaken(taken) => {
                agent.slot = Some((taken.session_id, taken.session_type.clone()));
                agent.total_sessions += 1;
            }
            Event::SlotCompleted(_) => {
                agent.slot = None;
                agent.successful_completions += 1;
            }
            Event::SlotTerminated(_) => agent.slot = None,
            // Everything else stands in other streams, or changes nothing here.
            _ => {}
        }
        Some(agent)
    }
}
