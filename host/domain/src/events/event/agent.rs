//! Payloads of an agent's stream: what happens to an agent.

use crate::access::user::UserId;
use crate::agents::authority::{Denies, Permissions};
use crate::agents::definition::DefinitionId;
use crate::agents::path::{AgentConfig, AgentPath, PathKind};
use crate::agents::role::AgentRole;
use crate::agents::session::{Execution, PastSession, PendingAction, Withdrawal};
use crate::values::id::{AgentId, ConversationId, NoteId, OperationId, RunId, SessionId, TurnId};
use crate::values::time::Timestamp;
use crate::work::operation::Kept;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// See [`super::Event::AgentCreated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCreated {
    /// The agent.
    pub agent: AgentId,
    /// The definition from which it was made.
    pub definition: DefinitionId,
    /// The agent's type.
    pub agent_type: String,
    /// Its address, unique among active agents.
    pub path: AgentPath,
    /// The kind of address at that time.
    pub kind: PathKind,
    /// Configuration of the agent besides its address.
    #[serde(default, skip_serializing_if = "AgentConfig::is_empty")]
    pub config: AgentConfig,
    /// The agent that spawned it.
    pub parent: Option<AgentId>,
    /// The user to whom it belongs.
    pub owner_user_id: UserId,
    /// Its name.
    pub name: String,
    /// Denials of the agents that spawned it. They bind this agent too, for its whole life.
    #[serde(default, skip_serializing_if = "Denies::is_empty")]
    pub denies: Denies,
    /// Permissions of all turns that spawned it, by personas, roles and paths. They bind this agent
    /// too, for its whole life.
    #[serde(default, skip_serializing_if = "Permissions::are_all")]
    pub permissions: Permissions,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// See [`super::Event::PreferencesUpdated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreferencesUpdated {
    /// The agent.
    pub agent: AgentId,
    /// The keys to merge.
    pub preferences: Value,
    /// The user whom the preferences concern; none for all users of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// True if it was learned in a turn that rests on content from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// Time of the update.
    pub updated_at: Timestamp,
}

/// See [`super::Event::PreferencesTransferred`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreferencesTransferred {
    /// The agent.
    pub agent: AgentId,
    /// The user whom the agent's memories concerned until now.
    pub from: UserId,
    /// The user whom they concern from now on.
    pub to: UserId,
    /// The keys that were merged into its memory of that user.
    pub preferences: Map<String, Value>,
    /// The keys that did not fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
    /// Time of the transfer.
    pub transferred_at: Timestamp,
}

/// See [`super::Event::AgentArchived`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentArchived {
    /// The agent.
    pub agent: AgentId,
    /// Its address, which is free from now on.
    pub path: AgentPath,
    /// The reason for archiving it.
    pub reason: String,
    /// Time of archiving.
    pub archived_at: Timestamp,
}

/// See [`super::Event::UserAssigned`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserAssigned {
    /// The agent.
    pub agent: AgentId,
    /// The user.
    pub user_id: UserId,
    /// The user's role.
    pub role: AgentRole,
    /// The user who assigned the role.
    pub assigned_by: UserId,
    /// Time of the assignment.
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
    pub role: AgentRole,
    /// The user who changed the role.
    pub changed_by: UserId,
    /// Time of the change.
    pub changed_at: Timestamp,
}

/// See [`super::Event::UserUnassigned`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserUnassigned {
    /// The agent.
    pub agent: AgentId,
    /// The user.
    pub user_id: UserId,
    /// The user who removed the assignment.
    pub unassigned_by: UserId,
    /// Time of the removal.
    pub unassigned_at: Timestamp,
}

/// See [`super::Event::AgentRenamed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRenamed {
    /// The agent.
    pub agent: AgentId,
    /// Its name from now on.
    pub name: String,
    /// Time of the renaming.
    pub renamed_at: Timestamp,
}

/// See [`super::Event::AgentConfigured`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentConfigured {
    /// The agent.
    pub agent: AgentId,
    /// The whole new configuration.
    pub config: AgentConfig,
    /// Time of the update.
    pub updated_at: Timestamp,
}

/// See [`super::Event::PromptOverridden`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptOverridden {
    /// The agent.
    pub agent: AgentId,
    /// Its new system prompt; its definition's without.
    pub system_prompt: Option<String>,
    /// Time of the override.
    pub overridden_at: Timestamp,
}

/// See [`super::Event::SettingsUpdated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingsUpdated {
    /// The agent.
    pub agent: AgentId,
    /// The keys to merge; `null` removes a key.
    pub settings: Map<String, Value>,
    /// Time of the update.
    pub updated_at: Timestamp,
}

/// See [`super::Event::SlotTaken`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotTaken {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The conversation that it is a part of.
    pub conversation_id: ConversationId,
    /// Its type.
    pub session_type: String,
    /// The user who began the session.
    pub started_by: UserId,
    /// Time at which the session started.
    pub started_at: Timestamp,
    /// Time at which the session expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Items imported from another system. The session starts anew here, and these items do not
    /// count towards its limit.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub items_imported: u32,
}

/// See [`super::Event::ExecutionSuspended`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionSuspended {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The point from which execution continues.
    pub execution_state: Execution,
    /// The question to the client.
    pub pending_action: PendingAction,
    /// Time of the suspension.
    pub suspended_at: Timestamp,
}

/// See [`super::Event::ExecutionResumed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionResumed {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The question that was answered, by its tool call.
    pub tool_call_id: OperationId,
    /// The answer.
    pub response_data: Kept,
    /// Time at which it resumed.
    pub resumed_at: Timestamp,
}

/// See [`super::Event::ActionRequested`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionRequested {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The question to the client.
    pub action: PendingAction,
    /// Time of the question.
    pub requested_at: Timestamp,
}

/// See [`super::Event::ResponseReceived`]. The result of the answer is recorded as an item of the
/// session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseReceived {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The question that was answered, by its tool call.
    pub tool_call_id: OperationId,
    /// The answer.
    pub response_data: Kept,
    /// Time of the answer.
    pub received_at: Timestamp,
}

/// See [`super::Event::ActionWithdrawn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionWithdrawn {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The question that was withdrawn, by its tool call.
    pub tool_call_id: OperationId,
    /// The reason for the withdrawal.
    pub reason: Withdrawal,
    /// True if another question still waits.
    pub still_waiting: bool,
    /// Time of the withdrawal.
    pub withdrawn_at: Timestamp,
}

/// See [`super::Event::SessionImported`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionImported {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: PastSession,
    /// The system of origin, as shown to people.
    pub source: String,
    /// Time of the import.
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
    /// Time of completion.
    pub completed_at: Timestamp,
}

/// See [`super::Event::SlotTerminated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotTerminated {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The reason for the termination.
    pub reason: String,
    /// Time of the termination.
    pub terminated_at: Timestamp,
}

/// See [`super::Event::NoteRemembered`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteRemembered {
    /// The agent.
    pub agent: AgentId,
    /// The session in which the note was made.
    pub session: SessionId,
    /// The note.
    pub note: String,
    /// True if the note rests on content from outside: it then never becomes a system prompt.
    pub untrusted: bool,
    /// The id by which it is found and forgotten. None for a note that an effect of a step stored:
    /// its id follows from the event's position ([`NoteId::of_position`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NoteId>,
    /// The subject of the note, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The origin of the note; none for a note that an effect of a step stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Time at which the note was stored.
    pub time: Timestamp,
}

/// The origin of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The user of the run that stored it.
    pub user_id: UserId,
    /// The agent that wrote it: the one that remembers it, or a reader of its session.
    pub written_by: AgentId,
    /// The run that wrote it.
    pub run: RunId,
    /// The latest turn that it was taken from. None for a note stored within a turn, which its run
    /// identifies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// See [`super::Event::NoteForgotten`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteForgotten {
    /// The agent.
    pub agent: AgentId,
    /// The note.
    pub note: NoteId,
    /// The position of the event that stored it, whose content is erased by this event.
    pub position: u64,
    /// The session in which it was made.
    pub session: SessionId,
    /// The user who had it deleted, or whose run deleted it.
    pub user_id: UserId,
    /// Time at which it was forgotten.
    pub time: Timestamp,
}
