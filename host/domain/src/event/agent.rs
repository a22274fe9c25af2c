//! What happens to an agent: the payloads of its stream.

use crate::authority::Denies;
use crate::definition::DefinitionId;
use crate::id::{AgentId, SessionId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// See [`super::Event::AgentCreated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCreated {
    /// The agent.
    pub agent: AgentId,
    /// The template it was made from.
    pub definition: DefinitionId,
    /// Its address, unique among active agents.
    pub path: String,
    /// The agent that spawned it.
    pub parent: Option<AgentId>,
    /// Who it belongs to.
    pub owner_user_id: String,
    /// Its name.
    pub name: String,
    /// What the agents that spawned it may not do: it may not either, for as long as it lives.
    #[serde(default, skip_serializing_if = "Denies::is_empty")]
    pub denies: Denies,
    /// When.
    pub created_at: Timestamp,
}

/// See [`super::Event::PreferencesUpdated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreferencesUpdated {
    /// The agent.
    pub agent: AgentId,
    /// The keys to merge.
    pub preferences: Value,
}

/// See [`super::Event::SlotTaken`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotTaken {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// Its type.
    pub session_type: String,
    /// When.
    pub started_at: Timestamp,
}

/// See [`super::Event::SlotCompleted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotCompleted {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The agent's summary.
    pub summary: Value,
    /// When.
    pub completed_at: Timestamp,
}

/// See [`super::Event::SlotTerminated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotTerminated {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// Why.
    pub reason: String,
    /// When.
    pub terminated_at: Timestamp,
}

/// See [`super::Event::NoteRemembered`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteRemembered {
    /// The agent.
    pub agent: AgentId,
    /// The session in which it was said.
    pub session: SessionId,
    /// The note.
    pub note: String,
    /// Whether it rests on content from outside: it then never becomes a system prompt.
    pub untrusted: bool,
    /// When.
    pub time: Timestamp,
}
