//! The events of an agent's own stream in public form.

use super::event::kept;
use super::session::{pending_action, remembered};
use domain::event::Event as E;
use serde_json::{Value, json};

/// Returns the data of such an event; null for events of other streams.
pub(super) fn data(event: &E) -> Value {
    match event {
        E::AgentCreated(it) => json!({
            "agent_id": it.agent, "definition": it.definition, "path": it.path,
            "parent_id": it.parent,
            "owner_user_id": it.owner_user_id, "agent_type": it.agent_type, "name": it.name,
            "created_at": it.created_at.to_string(),
        }),
        E::AgentArchived(it) => {
            json!({
                "path": it.path, "reason": it.reason, "archived_at": it.archived_at.to_string(),
            })
        }
        E::UserAssigned(it) => json!({
            "user_id": it.user_id, "role": it.role, "assigned_by": it.assigned_by,
            "assigned_at": it.assigned_at.to_string(),
        }),
        E::RoleChanged(it) => json!({
            "user_id": it.user_id, "role": it.role, "changed_by": it.changed_by,
            "changed_at": it.changed_at.to_string(),
        }),
        E::UserUnassigned(it) => {
            json!({
                "user_id": it.user_id, "unassigned_by": it.unassigned_by,
                "unassigned_at": it.unassigned_at.to_string(),
            })
        }
        E::AgentRenamed(it) => json!({ "name": it.name, "renamed_at": it.renamed_at.to_string() }),
        E::PromptOverridden(it) => {
            json!({
                "system_prompt_override": it.system_prompt,
                "overridden_at": it.overridden_at.to_string(),
            })
        }
        E::SettingsUpdated(it) => {
            json!({ "settings": it.settings, "updated_at": it.updated_at.to_string() })
        }
        E::PreferencesUpdated(it) => {
            json!({
                "preferences": it.preferences, "user_id": it.user_id,
                "updated_at": it.updated_at.to_string(),
            })
        }
        E::PreferencesCarried(it) => json!({
            "from_user_id": it.from, "user_id": it.to, "preferences": it.preferences,
            "left_behind": it.left_behind,
            "carried_at": it.carried_at.to_string(),
        }),
        _ => slot_data(event),
    }
}

/// Returns the data of an event of the agent's structured sessions; null for other kinds.
fn slot_data(event: &E) -> Value {
    match event {
        E::SlotTaken(it) => json!({
            "session_id": it.session_id, "conversation_id": it.conversation_id,
            "session_type": it.session_type,
            "started_by": it.started_by, "started_at": it.started_at.to_string(),
            "expires_at": it.expires_at.map(|time| time.to_string()),
            "items_imported": it.items_imported,
        }),
        E::ExecutionSuspended(it) => json!({
            "session_id": it.session_id,
            "pending_action": pending_action(&it.pending_action),
            "execution_state": {
                "run_id": it.execution_state.run, "iteration": it.execution_state.iteration,
                "tool_calls_made": it.execution_state.tool_calls_made,
                "head": it.execution_state.head,
                "started_at_ms": it.execution_state.started_at.0,
                "suspended_at_ms": it.execution_state.suspended_at.0,
            },
            "suspended_at": it.suspended_at.to_string(),
        }),
        E::ExecutionResumed(it) => json!({
            "session_id": it.session_id, "tool_call_id": it.tool_call_id,
            "response_data": kept(&it.response_data),
            "resumed_at": it.resumed_at.to_string(),
        }),
        E::ActionRequested(it) => json!({
            "session_id": it.session_id, "action": pending_action(&it.action),
            "requested_at": it.requested_at.to_string(),
        }),
        E::ResponseReceived(it) => json!({
            "session_id": it.session_id, "tool_call_id": it.tool_call_id,
            "response_data": kept(&it.response_data),
            "received_at": it.received_at.to_string(),
        }),
        E::ActionWithdrawn(it) => json!({
            "session_id": it.session_id, "tool_call_id": it.tool_call_id, "reason": it.reason,
            "withdrawn_at": it.withdrawn_at.to_string(),
        }),
        E::SessionImported(it) => {
            json!({
                "session": remembered(&it.session), "source": it.source,
                "imported_at": it.imported_at.to_string(),
            })
        }
        E::SlotCompleted(it) => {
            json!({
                "session_id": it.session_id, "summary": it.summary,
                "completed_at": it.completed_at.to_string(),
            })
        }
        E::SlotTerminated(it) => {
            json!({
                "session_id": it.session_id, "reason": it.reason,
                "terminated_at": it.terminated_at.to_string(),
            })
        }
        _ => Value::Null,
    }
}
