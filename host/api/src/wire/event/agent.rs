//! The public form of the events of an agent's own stream.

use super::{kept, public};
use crate::wire::session::{PendingActionView, RememberedSessionView, pending_action, remembered};
use crate::wire::values::Time;
use domain::definition::DefinitionId;
use domain::event;
use domain::id::{AgentId, ConversationId, NoteId, OperationId, RunId, SessionId, TurnId};
use domain::role::AgentRole;
use domain::session::{Execution, Withdrawal};
use domain::user::UserId;
use serde::Serialize;
use serde_json::{Map, Value};

public! {
    AgentCreated(it: event::AgentCreated) {
        agent_id: AgentId = it.agent,
        definition: DefinitionId,
        path: String = it.path.to_string(),
        parent_id: Option<AgentId> = it.parent,
        owner_user_id: UserId,
        agent_type: String,
        name: String,
        created_at: Time = Time(it.created_at),
    }
    AgentArchived(it: event::AgentArchived) {
        path: String = it.path.to_string(),
        reason: String,
        archived_at: Time = Time(it.archived_at),
    }
    UserAssigned(it: event::UserAssigned) {
        user_id: UserId,
        role: AgentRole,
        assigned_by: UserId,
        assigned_at: Time = Time(it.assigned_at),
    }
    RoleChanged(it: event::RoleChanged) {
        user_id: UserId,
        role: AgentRole,
        changed_by: UserId,
        changed_at: Time = Time(it.changed_at),
    }
    UserUnassigned(it: event::UserUnassigned) {
        user_id: UserId,
        unassigned_by: UserId,
        unassigned_at: Time = Time(it.unassigned_at),
    }
    AgentRenamed(it: event::AgentRenamed) {
        name: String,
        renamed_at: Time = Time(it.renamed_at),
    }
    // The system prompt in it has an event of its own, and is not for a mentee.
    AgentConfigured(it: event::AgentConfigured) {
        name: Option<String> = it.config.name.clone(),
        username: Option<String> = it.config.username.clone(),
        description: Option<String> = it.config.description.clone(),
        updated_at: Time = Time(it.updated_at),
    }
    PromptOverridden(it: event::PromptOverridden) {
        system_prompt_override: Option<String> = it.system_prompt.clone(),
        overridden_at: Time = Time(it.overridden_at),
    }
    SettingsUpdated(it: event::SettingsUpdated) {
        #[schema(value_type = Object)]
        settings: Map<String, Value>,
        updated_at: Time = Time(it.updated_at),
    }
    PreferencesUpdated(it: event::PreferencesUpdated) {
        preferences: Value,
        user_id: Option<UserId>,
        updated_at: Time = Time(it.updated_at),
    }
    PreferencesTransferred(it: event::PreferencesTransferred) {
        from_user_id: UserId = it.from.clone(),
        user_id: UserId = it.to.clone(),
        #[schema(value_type = Object)]
        preferences: Map<String, Value>,
        left_behind: Vec<String>,
        transferred_at: Time = Time(it.transferred_at),
    }
    SlotTaken(it: event::SlotTaken) {
        session_id: SessionId,
        conversation_id: ConversationId,
        session_type: String,
        started_by: UserId,
        started_at: Time = Time(it.started_at),
        expires_at: Option<Time> = it.expires_at.map(Time),
        items_imported: u32,
    }
    SlotCompleted(it: event::SlotCompleted) {
        session_id: SessionId,
        summary: Value,
        completed_at: Time = Time(it.completed_at),
    }
    SlotTerminated(it: event::SlotTerminated) {
        session_id: SessionId,
        reason: String,
        terminated_at: Time = Time(it.terminated_at),
    }
    ExecutionSuspended(it: event::ExecutionSuspended) {
        session_id: SessionId,
        pending_action: PendingActionView = pending_action(&it.pending_action),
        execution_state: SuspendedExecution = (&it.execution_state).into(),
        suspended_at: Time = Time(it.suspended_at),
    }
    ExecutionResumed(it: event::ExecutionResumed) {
        session_id: SessionId,
        tool_call_id: OperationId,
        response_data: Value = kept(&it.response_data),
        resumed_at: Time = Time(it.resumed_at),
    }
    ActionRequested(it: event::ActionRequested) {
        session_id: SessionId,
        action: PendingActionView = pending_action(&it.action),
        requested_at: Time = Time(it.requested_at),
    }
    ResponseReceived(it: event::ResponseReceived) {
        session_id: SessionId,
        tool_call_id: OperationId,
        response_data: Value = kept(&it.response_data),
        received_at: Time = Time(it.received_at),
    }
    ActionWithdrawn(it: event::ActionWithdrawn) {
        session_id: SessionId,
        tool_call_id: OperationId,
        #[schema(value_type = String)]
        reason: Withdrawal,
        withdrawn_at: Time = Time(it.withdrawn_at),
    }
    SessionImported(it: event::SessionImported) {
        session: RememberedSessionView = remembered(&it.session),
        source: String,
        imported_at: Time = Time(it.imported_at),
    }
    NoteRemembered(it: event::NoteRemembered) {
        session_id: SessionId = it.session,
        note: String,
        untrusted: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        note_id: Option<NoteId> = it.id,
        #[serde(skip_serializing_if = "Option::is_none")]
        about: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user_id: Option<UserId> = it.provenance.as_ref().map(|from| from.user_id.clone()),
        #[serde(skip_serializing_if = "Option::is_none")]
        written_by: Option<AgentId> = it.provenance.as_ref().map(|from| from.written_by),
        #[serde(skip_serializing_if = "Option::is_none")]
        turn_id: Option<TurnId> = it.provenance.as_ref().and_then(|from| from.turn),
    }
    NoteForgotten(it: event::NoteForgotten) {
        session_id: SessionId = it.session,
        note_id: NoteId = it.note,
        user_id: UserId,
    }
}

/// The point at which an agent continues once its client has answered.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct SuspendedExecution {
    run_id: RunId,
    /// Steps that were taken.
    iteration: u32,
    tool_calls_made: u32,
    /// The last message of its thread.
    head: u64,
    started_at_ms: u64,
    suspended_at_ms: u64,
}

impl From<&Execution> for SuspendedExecution {
    fn from(execution: &Execution) -> Self {
        Self {
            run_id: execution.run,
            iteration: execution.iteration,
            tool_calls_made: execution.tool_calls_made,
            head: execution.head,
            started_at_ms: execution.started_at.0,
            suspended_at_ms: execution.suspended_at.0,
        }
    }
}
