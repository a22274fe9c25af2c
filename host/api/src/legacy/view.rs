//! Sessions in the format of the system that this one replaces.

use crate::wire::{
    ControlMode, PendingActionView, SessionPhase, Time, UiStateView, control_mode, phase, ui_state,
};
use broker::SessionView;
use domain::event::{Event, Recorded};
use domain::id::{ConversationId, OperationId, SessionId};
use domain::user::UserId;
use serde::Serialize;
use serde_json::{Value, json};
use store::SessionRow;

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(super) struct LegacySummary {
    /// Its id.
    pub(super) id: SessionId,
    /// Its type.
    pub(super) session_type: String,
    /// The driver of the session.
    pub(super) control_mode: ControlMode,
    /// Its status.
    pub(super) status: SessionPhase,
    /// Items on its record.
    pub(super) items_completed: u64,
    /// The time at which it was created, ISO 8601.
    pub(super) created_at: Time,
    /// The time at which it began.
    pub(super) started_at: Time,
    /// The time at which it ended.
    pub(super) completed_at: Option<Time>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(super) struct LegacySession {
    /// Its id.
    pub(super) id: SessionId,
    /// The user whom it is for.
    pub(super) user_id: UserId,
    /// Its conversation.
    pub(super) conversation_id: ConversationId,
    /// Its type.
    pub(super) session_type: String,
    /// The driver of the session.
    pub(super) control_mode: ControlMode,
    /// Its status.
    pub(super) status: SessionPhase,
    /// Its own system prompt.
    pub(super) system_prompt: Option<String>,
    /// The configuration that it was opened with. It includes `system_prompt` and `model_id` when
    /// there are any.
    #[schema(value_type = Object)]
    pub(super) config: Value,
    /// The item that waits.
    pub(super) current_item_id: Option<OperationId>,
    /// The questions and answers, the first 200.
    pub(super) items: Vec<LegacyItem>,
    /// The state that a client needs to show it as it was left.
    pub(super) ui_state: UiStateView,
    /// The question that waits for an answer.
    pub(super) pending_action: Option<PendingActionView>,
    /// The time at which it was created, ISO 8601.
    pub(super) created_at: Time,
    /// The time at which it began.
    pub(super) started_at: Time,
    /// The time at which it ended.
    pub(super) completed_at: Option<Time>,
    /// The reason why it was ended from outside.
    pub(super) terminated_reason: Option<String>,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(super) struct LegacyItem {
    /// Its id.
    pub(super) id: String,
    /// Its place, from 1.
    pub(super) sequence: u64,
    /// The question.
    pub(super) agent_prompt: Value,
    /// The widget that the client was shown.
    pub(super) client_action: Option<LegacyAction>,
    /// The answer; null when there was none.
    pub(super) user_response: Option<LegacyResponse>,
    /// The evaluation of the answer.
    pub(super) evaluation: Option<Value>,
    /// The time of the question.
    pub(super) started_at: Time,
    /// The time of the answer.
    pub(super) completed_at: Option<Time>,
    /// Milliseconds from the question to the answer.
    pub(super) response_time_ms: Option<u64>,
}

/// A widget and what it shows.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(super) struct LegacyAction {
    /// The widget.
    pub(super) widget_type: String,
    /// The properties that it shows.
    pub(super) props: Value,
    /// True if the message box is locked meanwhile.
    pub(super) lock_input: bool,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(super) struct LegacyResponse {
    /// The answer itself.
    pub(super) response: Value,
    /// The time of the answer.
    pub(super) timestamp: Time,
    /// `valid` or `skipped`: what is not valid is refused, and no item.
    pub(super) validation_status: &'static str,
    /// Always empty: see `validation_status`.
    pub(super) validation_errors: Vec<String>,
}

/// The state that a client needs to restore a page.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(super) struct LegacyState {
    /// The session.
    pub(super) session_id: SessionId,
    /// Its status.
    pub(super) status: SessionPhase,
    /// The driver of the session.
    pub(super) control_mode: ControlMode,
    /// The item that waits.
    pub(super) current_item_id: Option<OperationId>,
    /// The state that a client needs to show it as it was left.
    pub(super) ui_state: UiStateView,
    /// The question that waits for an answer.
    pub(super) pending_action: Option<PendingActionView>,
}

/// A session of a list.
pub(super) fn legacy_summary(row: &SessionRow) -> LegacySummary {
    LegacySummary {
        id: row.id,
        session_type: row.session_type.clone(),
        control_mode: control_mode(&row.session_type),
        status: phase(row),
        items_completed: row.items,
        created_at: Time(row.created_at),
        started_at: Time(row.created_at),
        completed_at: row.ended_at.map(Time),
    }
}

/// A session with what is on its record.
pub(super) fn legacy_session(view: &SessionView, items: &[Recorded]) -> LegacySession {
    let row = &view.row;
    let ui_state = ui_state(view);
    let pending_action = ui_state.active_widget.clone();
    let mut config = view.config.clone().unwrap_or_else(|| json!({}));
    // The model that its turns use stands beside what it was opened with here, and in it there.
    if let (Some(model), Some(config)) = (&row.model, config.as_object_mut()) {
        config.insert("model_id".to_owned(), model.as_str().into());
    }
    LegacySession {
        id: row.id,
        user_id: row.user_id.clone(),
        conversation_id: row.conversation,
        session_type: row.session_type.clone(),
        control_mode: control_mode(&row.session_type),
        status: phase(row),
        system_prompt: config
            .get("system_prompt")
            .and_then(Value::as_str)
            .map(str::to_owned),
        config,
        current_item_id: pending_action.as_ref().map(|action| action.tool_call_id),
        items: (1..)
            .zip(items)
            .filter_map(|(sequence, recorded)| item(sequence, recorded))
            .collect(),
        ui_state,
        pending_action,
        created_at: Time(row.created_at),
        started_at: Time(row.created_at),
        completed_at: row.ended_at.map(Time),
        terminated_reason: row.ended_reason.clone(),
    }
}

/// An item as the old system had it.
fn item(sequence: u64, recorded: &Recorded) -> Option<LegacyItem> {
    let Some(Event::ItemRecorded(it)) = &recorded.event else {
        return None;
    };
    // What another system asked and nobody answered has no answer; what was recorded here has one,
    // with a time of its own or not.
    let answered = it.answered_at.or((!it.imported).then_some(it.time));
    let skipped = it.response.get("skipped") == Some(&Value::Bool(true));
    let action = it.client_action.as_ref().map(|action| LegacyAction {
        widget_type: action.widget.clone(),
        props: action.props.clone(),
        lock_input: action.lock_input,
    });
    // The old system's prompts were text; what asks in a widget says so there.
    let asked = match &it.prompt {
        Value::Object(prompt) => prompt
            .get("prompt")
            .cloned()
            .unwrap_or_else(|| it.prompt.clone()),
        prompt => prompt.clone(),
    };
    let response = answered.map(|answered| LegacyResponse {
        response: it.response.clone(),
        timestamp: Time(answered),
        validation_status: if skipped { "skipped" } else { "valid" },
        validation_errors: Vec::new(),
    });
    Some(LegacyItem {
        id: it.item.clone(),
        sequence,
        agent_prompt: asked,
        client_action: action,
        user_response: response,
        evaluation: it.evaluation.clone(),
        started_at: Time(it.asked_at.unwrap_or(it.time)),
        completed_at: answered.map(Time),
        response_time_ms: it
            .asked_at
            .zip(answered)
            .map(|(asked, answered)| answered.since_ms(asked)),
    })
}

/// Returns the state that a client needs to restore a page.
pub(super) fn legacy_state(session: LegacySession) -> LegacyState {
    LegacyState {
        session_id: session.id,
        status: session.status,
        control_mode: session.control_mode,
        current_item_id: session.current_item_id,
        ui_state: session.ui_state,
        pending_action: session.pending_action,
    }
}
