//! The structured session that holds an agent's slot, as the agent shows it (the design's
//! `active_session`).

use super::Time;
use super::session::{PendingActionView, SessionPhase, pending_action};
use domain::id::{ConversationId, OperationId, RunId, SessionId};
use domain::session::{ActiveSession, Execution, PendingAction, Phase};
use domain::user::UserId;
use serde::Serialize;
use serde_json::Value;

/// See the module. The session itself has more: its items, what is filled in so far, its messages.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ActiveSession)]
pub(crate) struct ActiveSessionView {
    /// Its id.
    pub(crate) session_id: SessionId,
    /// The conversation that it is a part of.
    pub(crate) conversation_id: ConversationId,
    /// Its type.
    pub(crate) session_type: String,
    /// The user who began it.
    pub(crate) started_by: UserId,
    /// Its status.
    pub(crate) status: SessionPhase,
    /// The item that is being worked on: the question of `pending_action`, by its id.
    pub(crate) current_item_id: Option<OperationId>,
    /// The question that was asked first and is not answered.
    pub(crate) pending_action: Option<PendingActionView>,
    /// The questions asked after that one that are not answered either.
    pub(crate) further_actions: Vec<PendingActionView>,
    /// The point at which the agent continues once the client has answered. Present only while it
    /// waits.
    pub(crate) execution_state: Option<ExecutionPlaceView>,
    /// Client actions that were answered.
    pub(crate) interactions: u64,
    /// The time at which it began, ISO 8601.
    pub(crate) started_at: Time,
    /// The time at which it expires, ISO 8601.
    pub(crate) expires_at: Option<Time>,
}

/// The point at which an agent continues. It is the execution state without the messages; `GET
/// /api/agents/{id}/sessions/{sid}` shows it with them.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ExecutionPlace)]
pub(crate) struct ExecutionPlaceView {
    /// The turn in progress.
    pub(crate) run_id: RunId,
    /// The last message of its thread.
    pub(crate) last_message: u64,
    /// Steps that were taken.
    pub(crate) iteration: u32,
    /// Tool calls that were made.
    pub(crate) tool_calls_made: u32,
    /// The call that waits for an answer.
    pub(crate) pending_tool_call: PendingToolCallView,
    /// The time at which the turn began, in milliseconds since the Unix epoch.
    pub(crate) started_at_ms: u64,
    /// The time at which it was suspended, in milliseconds since the Unix epoch.
    pub(crate) suspended_at_ms: u64,
}

/// A call that waits for the client (the design's `PendingToolCall`).
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = PendingToolCall)]
pub(crate) struct PendingToolCallView {
    /// The id to answer under.
    pub(crate) tool_call_id: OperationId,
    /// The agent's name for it, or the tool that asks.
    pub(crate) tool_name: String,
    /// The properties that the widget shows.
    pub(crate) arguments: Value,
}

/// A session that holds a slot.
pub(super) fn active_session(session: &ActiveSession) -> ActiveSessionView {
    let (status, execution_state) = match &session.phase {
        Phase::Active => (SessionPhase::Active, None),
        Phase::AwaitingClientAction {
            pending, execution, ..
        } => (
            SessionPhase::AwaitingClientAction,
            Some(place(pending, execution)),
        ),
    };
    let mut waiting = session.phase.pending().map(pending_action);
    let first = waiting.next();
    ActiveSessionView {
        session_id: session.session_id,
        conversation_id: session.conversation_id,
        session_type: session.session_type.clone(),
        started_by: session.started_by.clone(),
        status,
        current_item_id: first.as_ref().map(|first| first.tool_call_id),
        pending_action: first,
        further_actions: waiting.collect(),
        execution_state,
        interactions: session.interactions,
        started_at: Time(session.started_at),
        expires_at: session.expires_at.map(Time),
    }
}

fn place(pending: &PendingAction, execution: &Execution) -> ExecutionPlaceView {
    ExecutionPlaceView {
        run_id: execution.run,
        last_message: execution.head,
        iteration: execution.iteration,
        tool_calls_made: execution.tool_calls_made,
        pending_tool_call: pending_tool_call(pending),
        started_at_ms: execution.started_at.0,
        suspended_at_ms: execution.suspended_at.0,
    }
}

/// The call that waits.
pub(super) fn pending_tool_call(pending: &PendingAction) -> PendingToolCallView {
    PendingToolCallView {
        tool_call_id: pending.tool_call_id,
        tool_name: pending.tool_name.clone(),
        arguments: pending.action.props.clone(),
    }
}
