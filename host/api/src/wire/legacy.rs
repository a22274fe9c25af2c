//! Sessions in the format of the system that this one replaces.

use super::session::{PendingActionView, UiStateView, status, ui_state};
use broker::SessionView;
use domain::event::{Event, Recorded};
use serde::Serialize;
use serde_json::{Value, json};
use store::{SessionRow, SessionStatus, UserSession};

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct LegacySummary {
    /// Its id.
    pub id: String,
    /// Its type.
    pub session_type: String,
    /// The driver of the session: `reactive` or `proactive`.
    pub control_mode: &'static str,
    /// `active`, `awaiting_client_action`, `completed`, `expired` or `terminated`.
    pub status: &'static str,
    /// Items on its record.
    pub items_completed: u64,
    /// The time at which it was created, ISO 8601.
    pub created_at: String,
    /// The time at which it began.
    pub started_at: String,
    /// The time at which it ended.
    pub completed_at: Option<String>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct LegacySession {
    /// Its id.
    pub id: String,
    /// The user whom it is for.
    pub user_id: String,
    /// Its conversation.
    pub conversation_id: String,
    /// Its type.
    pub session_type: String,
    /// The driver of the session: `reactive` or `proactive`.
    pub control_mode: &'static str,
    /// `active`, `awaiting_client_action`, `completed`, `expired` or `terminated`.
    pub status: &'static str,
    /// Its own system prompt.
    pub system_prompt: Option<String>,
    /// The configuration that it was opened with. It includes `system_prompt` and `model_id` when
    /// there are any.
    #[schema(value_type = Object)]
    pub config: Value,
    /// The item that waits.
    pub current_item_id: Option<String>,
    /// The questions and answers, the first 200.
    pub items: Vec<LegacyItem>,
    /// The state that a client needs to show it as it was left.
    pub ui_state: UiStateView,
    /// The question that waits for an answer.
    pub pending_action: Option<PendingActionView>,
    /// The time at which it was created, ISO 8601.
    pub created_at: String,
    /// The time at which it began.
    pub started_at: String,
    /// The time at which it ended.
    pub completed_at: Option<String>,
    /// The reason why it was ended from outside.
    pub terminated_reason: Option<String>,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct LegacyItem {
    /// Its id.
    pub id: String,
    /// Its place, from 1.
    pub sequence: u64,
    /// The question.
    pub agent_prompt: Value,
    /// The widget that the client was shown.
    pub client_action: Option<LegacyAction>,
    /// The answer; null when there was none.
    pub user_response: Option<LegacyResponse>,
    /// The evaluation of the answer.
    pub evaluation: Option<Value>,
    /// The time of the question.
    pub started_at: String,
    /// The time of the answer.
    pub completed_at: Option<String>,
    /// Milliseconds from the question to the answer.
    pub response_time_ms: Option<u64>,
}

/// A widget and what it shows.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct LegacyAction {
    /// The widget.
    pub widget_type: String,
    /// The properties that it shows.
    pub props: Value,
    /// True if the message box is locked meanwhile.
    pub lock_input: bool,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct LegacyResponse {
    /// The answer itself.
    pub response: Value,
    /// The time of the answer.
    pub timestamp: String,
    /// `valid` or `skipped`: what is not valid is refused, and no item.
    pub validation_status: &'static str,
    /// Always empty: see `validation_status`.
    pub validation_errors: Vec<String>,
}

/// The state that a client needs to restore a page.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct LegacyState {
    /// The session.
    pub session_id: String,
    /// Its status.
    pub status: &'static str,
    /// The driver of the session.
    pub control_mode: &'static str,
    /// The item that waits.
    pub current_item_id: Option<String>,
    /// The state that a client needs to show it as it was left.
    pub ui_state: UiStateView,
    /// The question that waits for an answer.
    pub pending_action: Option<PendingActionView>,
}

/// Returns the driver of sessions of a type.
fn control_mode(session_type: &str) -> &'static str {
    if matches!(session_type, "thought" | "chat") {
        "reactive"
    } else {
        "proactive"
    }
}

fn old_status(row: &SessionRow, status: &'static str) -> &'static str {
    match row.status {
        SessionStatus::Terminated
            if row.ended_reason.as_deref() == Some(domain::agent::end_session::EXPIRED) =>
        {
            "expired"
        }
        _ => status,
    }
}

/// A session of a list.
#[must_use]
pub fn legacy_summary(session: &UserSession) -> LegacySummary {
    let row = &session.row;
    let status = match row.status {
        SessionStatus::Open if session.awaits_client => "awaiting_client_action",
        SessionStatus::Open => "active",
        SessionStatus::Completed | SessionStatus::Terminated | SessionStatus::Deleted => {
            row.status.as_str()
        }
    };
    LegacySummary {
        id: row.id.to_string(),
        session_type: row.session_type.clone(),
        control_mode: control_mode(&row.session_type),
        status: old_status(row, status),
        items_completed: row.items,
        created_at: row.created_at.to_string(),
        started_at: row.created_at.to_string(),
        completed_at: row.ended_at.map(|time| time.to_string()),
    }
}

/// A session with what is on its record.
#[must_use]
pub fn legacy_session(view: &SessionView, items: &[Recorded]) -> LegacySession {
    let row = &view.row;
    let ui_state = ui_state(view);
    let pending_action = ui_state.active_widget.clone();
    let mut config = view.config.clone().unwrap_or_else(|| json!({}));
    // The model that its turns use stands beside what it was opened with here, and in it there.
    if let (Some(model), Some(config)) = (&row.model, config.as_object_mut()) {
        config.insert("model_id".to_owned(), model.as_str().into());
    }
    LegacySession {
        id: row.id.to_string(),
        user_id: row.user_id.to_string(),
        conversation_id: row.conversation.to_string(),
        session_type: row.session_type.clone(),
        control_mode: control_mode(&row.session_type),
        status: old_status(row, status(view)),
        system_prompt: config
            .get("system_prompt")
            .and_then(Value::as_str)
            .map(str::to_owned),
        config,
        current_item_id: pending_action
            .as_ref()
            .map(|action| action.tool_call_id.clone()),
        items: (1..)
            .zip(items)
            .filter_map(|(sequence, recorded)| item(sequence, recorded))
            .collect(),
        ui_state,
        pending_action,
        created_at: row.created_at.to_string(),
        started_at: row.created_at.to_string(),
        completed_at: row.ended_at.map(|time| time.to_string()),
        terminated_reason: row.ended_reason.clone(),
    }
}

/// An item as the old system had it.
fn item(sequence: u64, recorded: &Recorded) -> Option<LegacyItem> {
    let Some(Event::ItemRecorded(it)) = &recorded.event else {
        return None;
    };
    let id = if it.item.is_empty() {
        recorded.id.to_string()
    } else {
        it.item.clone()
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
        timestamp: answered.to_string(),
        validation_status: if skipped { "skipped" } else { "valid" },
        validation_errors: Vec::new(),
    });
    Some(LegacyItem {
        id,
        sequence,
        agent_prompt: asked,
        client_action: action,
        user_response: response,
        evaluation: it.evaluation.clone(),
        started_at: it.asked_at.unwrap_or(it.time).to_string(),
        completed_at: answered.map(|answered| answered.to_string()),
        response_time_ms: it
            .asked_at
            .zip(answered)
            .map(|(asked, answered)| answered.since_ms(asked)),
    })
}

/// Returns the state that a client needs to restore a page.
#[must_use]
pub fn legacy_state(session: LegacySession) -> LegacyState {
    LegacyState {
        session_id: session.id,
        status: session.status,
        control_mode: session.control_mode,
        current_item_id: session.current_item_id,
        ui_state: session.ui_state,
        pending_action: session.pending_action,
    }
}
