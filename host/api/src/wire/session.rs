//! Structured sessions in public form: status, pending action, execution state, items, metrics.
//!
//! "The design" is the specification that docs/requirements.md opens with; its names are kept.

use super::Time;
use super::active_session::{PendingToolCallView, pending_tool_call};
use super::message::{CallView, message as message_view};
use broker::SessionView;
use domain::agent::end_session::EXPIRED;
use domain::event::{Event, Recorded};
use domain::id::{ConversationId, OperationId, RunId, SessionId};
use domain::message::{Message, Role};
use domain::session::{CHAT, EndStatus, PastSession, PendingAction, Phase};
use domain::user::UserId;
use serde::Serialize;
use serde_json::{Value, json};
use store::{SessionRow, SessionStatus};

/// The status of a session. One that is `pending`, `active` or `awaiting_client_action` is open: it
/// takes input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SessionStatus)]
pub(crate) enum SessionStatusView {
    /// It goes on, as chats always do.
    Active,
    /// A structured session that waits for the answer to a question.
    AwaitingClientAction,
    /// A structured session that ended well.
    Completed,
    /// A structured session that was accepted and not yet stepped.
    Pending,
    /// A structured session that was ended from outside, failed or expired.
    Terminated,
}

/// The status of a session, with the phase of one that is open. It is `expired` where the time of a
/// session was up, if the field has that word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionPhase {
    /// It goes on.
    Active,
    /// It waits for the answer to a question.
    AwaitingClientAction,
    /// It ended well.
    Completed,
    /// Its time was up.
    Expired,
    /// It was ended from outside, or failed.
    Terminated,
}

/// The driver of a session: the user, or the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ControlMode {
    /// The user.
    Reactive,
    /// The agent.
    Proactive,
}

/// The state that a client needs to show a session as it was left (the design's `ui_state`).
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = UiState)]
pub(crate) struct UiStateView {
    /// True if the message box is locked until the question is answered. A message that is sent all
    /// the same waits for the end of the turn.
    pub(crate) chat_input_locked: bool,
    /// The widget that is shown.
    pub(crate) active_widget: Option<PendingActionView>,
    /// The partial input in that widget.
    pub(crate) widget_partial_state: Option<Value>,
}

/// A question to the user that waits for its answer (the design's `pending_action`). Answer it with
/// `POST /api/agents/{id}/respond`.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = PendingAction)]
pub(crate) struct PendingActionView {
    /// The id to answer under.
    pub(crate) tool_call_id: OperationId,
    /// The agent's name for it, or the tool that asks.
    pub(crate) tool_name: String,
    /// The widget.
    pub(crate) widget_type: String,
    /// The properties that the widget shows.
    pub(crate) props: Value,
    /// JSON Schema of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response_schema: Option<Value>,
    /// True if the message box is locked meanwhile.
    pub(crate) lock_input: bool,
}

/// The point at which the agent continues once the client has answered (the design's
/// `execution_state`). Present only while the session waits.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ExecutionState)]
pub(crate) struct ExecutionStateView {
    /// The turn in progress.
    pub(crate) run_id: RunId,
    /// The messages that were asked for, as a model sees them.
    pub(crate) conversation_snapshot: Vec<SnapshotMessageView>,
    /// Steps that were taken.
    pub(crate) iteration: u32,
    /// Tool calls that were made.
    pub(crate) tool_calls_made: u32,
    /// The call that waits for an answer.
    pub(crate) pending_tool_call: Option<PendingToolCallView>,
    /// The time at which the turn began, in milliseconds since the Unix epoch.
    pub(crate) started_at_ms: u64,
    /// The time at which it was suspended, in milliseconds since the Unix epoch.
    pub(crate) suspended_at_ms: u64,
}

/// A message as a model sees it (the design's `LlmMessageSnapshot`).
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = SnapshotMessage)]
pub(crate) struct SnapshotMessageView {
    /// The role of its author. Notices are shown as words of the user.
    pub(crate) role: Role,
    /// Its text.
    pub(crate) content: String,
    /// The calls that the model made in it.
    pub(crate) tool_calls: Vec<CallView>,
    /// The provider's id of the call, if this is the result of one.
    pub(crate) tool_call_id: Option<String>,
    /// The tool, if this is the result of a call.
    pub(crate) name: Option<String>,
}

/// One question and its answer (the design's `SessionItem`).
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = SessionItem)]
pub(crate) struct ItemView {
    /// Its id.
    pub(crate) id: String,
    /// Its place on the record, from 1.
    pub(crate) sequence: u64,
    /// The time of the question, ISO 8601; none when no client action was named with it.
    pub(crate) started_at: Option<Time>,
    /// The client action that was shown.
    pub(crate) client_action: Option<Value>,
    /// Milliseconds from when it was asked to the answer.
    pub(crate) response_time_ms: Option<u64>,
    /// The question.
    pub(crate) agent_prompt: Value,
    /// The answer; null when there was none.
    pub(crate) user_response: Value,
    /// The evaluation of the answer.
    pub(crate) evaluation: Option<Value>,
    /// The time at which it was recorded, ISO 8601; none for an item that another system asked and
    /// nobody answered.
    pub(crate) completed_at: Option<Time>,
    /// True if another system asked it, and it was imported with its session.
    pub(crate) imported: bool,
}

/// Figures about the course of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = SessionMetrics)]
pub(crate) struct MetricsView {
    /// Items that were recorded.
    pub(crate) items: u64,
    /// Client actions that were answered.
    pub(crate) interactions: u64,
    /// Milliseconds from its beginning to its end; none while it goes on.
    pub(crate) duration_ms: Option<u64>,
}

/// A structured session that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = PastSession)]
pub(crate) struct PastSessionView {
    /// Its id.
    pub(crate) session_id: SessionId,
    /// The conversation that it was a part of.
    pub(crate) conversation_id: ConversationId,
    /// Its type.
    pub(crate) session_type: String,
    /// The user whom it was for.
    pub(crate) user_id: UserId,
    /// The way in which it ended.
    pub(crate) status: SessionStatusView,
    /// The time at which it began, ISO 8601.
    pub(crate) started_at: Time,
    /// The time at which it ended, ISO 8601.
    pub(crate) completed_at: Option<Time>,
    /// The reason for its termination; `expired` when its time limit was reached.
    pub(crate) terminated_reason: Option<String>,
    /// The agent's summary of a completed one; none when it is over 8 KiB.
    pub(crate) summary: Option<Value>,
    /// Figures about its course.
    pub(crate) metrics: MetricsView,
}

/// A structured session that has ended, as its agent remembers it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = RememberedSession)]
pub(crate) struct RememberedSessionView {
    /// Its id.
    pub(crate) session_id: SessionId,
    /// The conversation that it was a part of.
    pub(crate) conversation_id: ConversationId,
    /// Its type.
    pub(crate) session_type: String,
    /// The user who began it.
    pub(crate) started_by: UserId,
    /// The way in which it ended.
    pub(crate) status: EndStatus,
    /// The time at which it began, ISO 8601.
    pub(crate) started_at: Time,
    /// The time at which it ended, ISO 8601.
    pub(crate) completed_at: Time,
    /// The reason for its termination; `expired` when its time limit was reached.
    pub(crate) terminated_reason: Option<String>,
    /// Client actions that were answered.
    pub(crate) interactions: u64,
    /// The agent's summary of a completed one; none when it is over 8 KiB.
    pub(crate) summary: Option<Value>,
}

/// A pending action.
pub(crate) fn pending_action(pending: &PendingAction) -> PendingActionView {
    let action = &pending.action;
    PendingActionView {
        tool_call_id: pending.tool_call_id,
        tool_name: pending.tool_name.clone(),
        widget_type: action.widget.clone(),
        props: action.props.clone(),
        response_schema: action.response_schema.clone(),
        lock_input: action.lock_input,
    }
}

/// Returns a session's status, the same in lists and where it is shown itself.
pub(crate) fn status(row: &SessionRow) -> SessionStatusView {
    let is_accepted_only =
        row.session_type != CHAT && row.head.is_none() && row.open_run.is_none() && row.waiting > 0;
    match row.status {
        SessionStatus::Completed => SessionStatusView::Completed,
        // A session that was deleted is not shown.
        SessionStatus::Terminated | SessionStatus::Deleted => SessionStatusView::Terminated,
        SessionStatus::Open if row.awaits_client => SessionStatusView::AwaitingClientAction,
        SessionStatus::Open if is_accepted_only => SessionStatusView::Pending,
        SessionStatus::Open => SessionStatusView::Active,
    }
}

/// Returns a session's phase, `expired` of one that ended because its time was up.
pub(crate) fn phase(row: &SessionRow) -> SessionPhase {
    match status(row) {
        SessionStatusView::Active | SessionStatusView::Pending => SessionPhase::Active,
        SessionStatusView::AwaitingClientAction => SessionPhase::AwaitingClientAction,
        SessionStatusView::Completed => SessionPhase::Completed,
        SessionStatusView::Terminated if row.ended_reason.as_deref() == Some(EXPIRED) => {
            SessionPhase::Expired
        }
        SessionStatusView::Terminated => SessionPhase::Terminated,
    }
}

/// Returns the driver of sessions of a type.
pub(crate) fn control_mode(session_type: &str) -> ControlMode {
    match session_type {
        "thought" | "chat" => ControlMode::Reactive,
        _ => ControlMode::Proactive,
    }
}

/// Returns the state that a client needs to show a session as it was left. The questions of a chat
/// are no pending actions; they are shown in the same form.
pub(crate) fn ui_state(view: &SessionView) -> UiStateView {
    let active_widget = pending_actions(view).next();
    // What was filled in for another question is not for this one.
    let shown = |call: &OperationId| {
        active_widget
            .as_ref()
            .is_some_and(|widget| widget.tool_call_id == *call)
    };
    let partial = view
        .row
        .partial_state
        .iter()
        .find(|(call, _)| shown(call))
        .map(|(_, partial)| partial.clone());
    UiStateView {
        chat_input_locked: active_widget
            .as_ref()
            .is_some_and(|widget| widget.lock_input),
        active_widget,
        widget_partial_state: partial,
    }
}

/// Returns the questions that wait in a session, in the order in which they were asked.
pub(crate) fn pending_actions(view: &SessionView) -> impl Iterator<Item = PendingActionView> {
    let active = view.active.as_ref().map(|active| &active.phase);
    let asking = match active {
        Some(Phase::AwaitingClientAction { .. }) => [].as_slice(),
        Some(Phase::Active) | None => view.asking.as_slice(),
    };
    let waiting = active.into_iter().flat_map(Phase::pending);
    waiting.chain(asking).map(pending_action)
}

/// The execution state; none while the session does not wait.
pub(crate) fn execution_state(view: &SessionView) -> Option<ExecutionStateView> {
    let Phase::AwaitingClientAction {
        pending, execution, ..
    } = &view.active.as_ref()?.phase
    else {
        return None;
    };
    Some(ExecutionStateView {
        run_id: execution.run,
        conversation_snapshot: view.messages.iter().map(snapshot).collect(),
        iteration: execution.iteration,
        tool_calls_made: execution.tool_calls_made,
        pending_tool_call: Some(pending_tool_call(pending)),
        started_at_ms: execution.started_at.0,
        suspended_at_ms: execution.suspended_at.0,
    })
}

fn snapshot(message: &Message) -> SnapshotMessageView {
    let view = message_view(message);
    let role = match message.role {
        Role::User | Role::Notice => Role::User,
        role @ (Role::Assistant | Role::Tool) => role,
    };
    SnapshotMessageView {
        role,
        content: view.text,
        tool_calls: view.calls,
        tool_call_id: message
            .answers
            .as_ref()
            .map(|answers| answers.call_id.clone()),
        name: message.answers.as_ref().map(|answers| answers.name.clone()),
    }
}

/// Returns the items of a session's record that follow a place; those that were erased are left
/// out.
pub(crate) fn items(after: u64, recorded: &[Recorded]) -> Vec<ItemView> {
    let places = after.saturating_add(1)..;
    places
        .zip(recorded)
        .filter_map(|(sequence, recorded)| item(sequence, recorded))
        .collect()
}

/// An item of a session's record; none when it was erased.
fn item(sequence: u64, recorded: &Recorded) -> Option<ItemView> {
    let Some(Event::ItemRecorded(it)) = &recorded.event else {
        return None;
    };
    let answered_in = it.asked_at.zip(it.answered_at);
    Some(ItemView {
        id: it.item.clone(),
        sequence,
        started_at: it.asked_at.map(Time),
        client_action: it
            .client_action
            .as_ref()
            .map(|shown| json!({ "widget_type": shown.widget, "props": shown.props })),
        response_time_ms: answered_in.map(|(asked, answered)| answered.since_ms(asked)),
        agent_prompt: it.prompt.clone(),
        user_response: it.response.clone(),
        evaluation: it.evaluation.clone(),
        completed_at: (it.answered_at.is_some() || !it.imported).then_some(Time(it.time)),
        imported: it.imported,
    })
}

/// Returns figures about the course of a session.
pub(crate) fn metrics(row: &SessionRow) -> MetricsView {
    MetricsView {
        items: row.items,
        interactions: row.interactions,
        duration_ms: row.ended_at.map(|ended| ended.since_ms(row.created_at)),
    }
}

/// A session of the history.
pub(crate) fn past_session(row: &SessionRow) -> PastSessionView {
    PastSessionView {
        session_id: row.id,
        conversation_id: row.conversation,
        session_type: row.session_type.clone(),
        user_id: row.user_id.clone(),
        status: status(row),
        started_at: Time(row.created_at),
        completed_at: row.ended_at.map(Time),
        terminated_reason: row.ended_reason.clone(),
        summary: row.summary.clone(),
        metrics: metrics(row),
    }
}

/// The same as an agent's aggregate keeps it.
pub(crate) fn remembered(past: &PastSession) -> RememberedSessionView {
    RememberedSessionView {
        session_id: past.session_id,
        conversation_id: past.conversation_id,
        session_type: past.session_type.clone(),
        started_by: past.started_by.clone(),
        status: past.status,
        started_at: Time(past.started_at),
        completed_at: Time(past.completed_at),
        terminated_reason: past.terminated_reason.clone(),
        interactions: past.interactions,
        summary: past.summary.clone(),
    }
}
