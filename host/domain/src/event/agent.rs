//! What happens to an agent: the payloads of its stream.

use crate::agent::respond::Withdrawal;
use crate::agent::role::Role;
use crate::agent::session::{Execution, PastSession, PendingAction};
use crate::authority::{Denies, Permissions};
use crate::definition::DefinitionId;
use crate::id::{AgentId, ConversationId, OperationId, SessionId};
use crate::operation::Kept;
use crate::path::{self, AgentConfig};
use crate::time::Timestamp;
use crate::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// See [`super::Event::AgentCreated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCreated {
    /// The agent.
    pub agent: AgentId,
    /// The template it was made from.
    pub definition: DefinitionId,
    /// What sort of agent it is; the template's id in events from before it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// Its address, unique among active agents.
    pub path: String,
    /// What sort of address that is, as it was when the agent was made; in events from before it was said, what the address itself says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<path::Kind>,
    /// What is kept about it beside its address.
    #[serde(default, skip_serializing_if = "AgentConfig::is_empty")]
    pub config: AgentConfig,
    /// The agent that spawned it.
    pub parent: Option<AgentId>,
    /// Who it belongs to.
    pub owner_user_id: UserId,
    /// Its name.
    pub name: String,
    /// What the agents that spawned it may not do: it may not either, for as long as it lives.
    #[serde(default, skip_serializing_if = "Denies::is_empty")]
    pub denies: Denies,
    /// What personas, roles and paths permit of all turns that spawned it: it may do no more, for as long as it lives.
    #[serde(default, skip_serializing_if = "Permissions::are_all")]
    pub permissions: Permissions,
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
    /// Whom they concern; all its users without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// Whether it was learned in a turn that rests on content from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// When; 0 in events from before it was said.
    #[serde(default)]
    pub updated_at: Timestamp,
}

/// See [`super::Event::PreferencesCarried`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreferencesCarried {
    /// The agent.
    pub agent: AgentId,
    /// Of whom it remembered them.
    pub from: UserId,
    /// Of whom it does from now on.
    pub to: UserId,
    /// The keys that were merged into what it remembers of that user.
    pub preferences: Map<String, Value>,
    /// The keys for which there was no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
    /// When.
    pub carried_at: Timestamp,
}

/// See [`super::Event::AgentArchived`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentArchived {
    /// The agent.
    pub agent: AgentId,
    /// Why.
    pub reason: String,
    /// When.
    pub archived_at: Timestamp,
}

/// See [`super::Event::UserAssigned`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserAssigned {
    /// The agent.
    pub agent: AgentId,
    /// The user.
    pub user_id: UserId,
    /// In which role.
    pub role: Role,
    /// By whom.
    pub assigned_by: UserId,
    /// When.
    pub assigned_at: Timestamp,
}

/// See [`super::Event::RoleChanged`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleChanged {
    /// The agent.
    pub agent: AgentId,
    /// The user.
    pub user_id: UserId,
    /// The role from now on.
    pub role: Role,
    /// By whom.
    pub changed_by: UserId,
    /// When.
    pub changed_at: Timestamp,
}

/// See [`super::Event::UserUnassigned`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserUnassigned {
    /// The agent.
    pub agent: AgentId,
    /// The user.
    pub user_id: UserId,
    /// By whom.
    pub unassigned_by: UserId,
    /// When.
    pub unassigned_at: Timestamp,
}

/// See [`super::Event::AgentRenamed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRenamed {
    /// The agent.
    pub agent: AgentId,
    /// Its name from now on.
    pub name: String,
    /// When.
    pub renamed_at: Timestamp,
}

/// See [`super::Event::AgentConfigured`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentConfigured {
    /// The agent.
    pub agent: AgentId,
    /// All of it from now on.
    pub config: AgentConfig,
    /// When.
    pub updated_at: Timestamp,
}

/// See [`super::Event::PromptOverridden`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptOverridden {
    /// The agent.
    pub agent: AgentId,
    /// Its system prompt from now on; its definition's without.
    pub system_prompt: Option<String>,
    /// When.
    pub overridden_at: Timestamp,
}

/// See [`super::Event::SettingsUpdated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingsUpdated {
    /// The agent.
    pub agent: AgentId,
    /// The keys to merge; `null` takes one away.
    pub settings: Map<String, Value>,
    /// When.
    pub updated_at: Timestamp,
}

/// See [`super::Event::SlotTaken`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotTaken {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The conversation that it is a part of; nil in events from before there were any.
    #[serde(default = "no_conversation")]
    pub conversation_id: ConversationId,
    /// Its type.
    pub session_type: String,
    /// Who began it.
    #[serde(default = "UserId::local")]
    pub started_by: UserId,
    /// When.
    pub started_at: Timestamp,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Items on its record from another system: it begins anew here, and they do not count towards its limit of items.
    #[serde(default, skip_serializing_if = "is_none")]
    pub items_imported: u32,
}

fn is_none(items: &u32) -> bool {
    *items == 0
}

/// The conversation of what was stored before there were any.
pub(super) fn no_conversation() -> ConversationId {
    ConversationId(Uuid::nil())
}

/// See [`super::Event::ExecutionSuspended`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionSuspended {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// Where it goes on.
    pub execution_state: Execution,
    /// What it asks.
    pub pending_action: PendingAction,
    /// When.
    pub suspended_at: Timestamp,
}

/// See [`super::Event::ExecutionResumed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionResumed {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// What was answered.
    pub tool_call_id: OperationId,
    /// The answer.
    pub response_data: Kept,
    /// When.
    pub resumed_at: Timestamp,
}

/// See [`super::Event::ActionRequested`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionRequested {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// What it asks.
    pub action: PendingAction,
    /// When.
    pub requested_at: Timestamp,
}

/// See [`super::Event::ResponseReceived`]. What became of the answer goes on record as an item of the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseReceived {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// What was answered.
    pub tool_call_id: OperationId,
    /// The answer.
    pub response_data: Kept,
    /// When.
    pub received_at: Timestamp,
}

/// See [`super::Event::ActionWithdrawn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionWithdrawn {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// What was asked.
    pub tool_call_id: OperationId,
    /// Why.
    pub reason: Withdrawal,
    /// Whether something else still waits.
    #[serde(default)]
    pub still_waiting: bool,
    /// When.
    pub withdrawn_at: Timestamp,
}

/// See [`super::Event::SessionImported`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionImported {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: PastSession,
    /// Where it comes from, for people.
    pub source: String,
    /// When.
    pub imported_at: Timestamp,
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
