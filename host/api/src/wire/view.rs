//! Agents, sessions and dead letters in public form.

use super::message::{MessageView, draft, message};
use super::operation::{ClientActionView, client_action, operation};
use serde::Serialize;
use serde_json::{Map, Value};
use store::{AgentRow, DeadInput, SessionRow, SessionStatus};

/// An agent.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Agent)]
pub struct AgentView {
    /// Its id, a UUID.
    pub id: String,
    /// The definition that it was made from.
    pub definition: String,
    /// That definition's display name; none when it is no longer configured.
    pub definition_name: Option<String>,
    /// Its address, such as `/local/agent/assistant`.
    pub path: String,
    /// The agent that spawned it.
    pub parent_id: Option<String>,
    /// Its name.
    pub name: String,
    /// Who it belongs to.
    pub owner_user_id: String,
    /// `active` or `archived`.
    pub status: &'static str,
    /// The tools that it may use.
    pub tools: Vec<String>,
    /// What it remembers of the user's wishes.
    #[schema(value_type = Object)]
    pub preferences: Map<String, Value>,
    /// The structured session that holds its slot.
    pub current_session_id: Option<String>,
    /// How many structured sessions it has begun.
    pub total_sessions: u64,
    /// How many of them ended well.
    pub successful_completions: u64,
    /// When it was created, ISO 8601.
    pub created_at: String,
    /// When something last changed about it, ISO 8601.
    pub updated_at: String,
    /// Its event stream.
    pub stream_url: String,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = SessionSummary)]
pub struct SessionRowView {
    /// Its id, a UUID.
    pub id: String,
    /// Its agent.
    pub agent_id: String,
    /// `chat`, or a structured type.
    pub session_type: String,
    /// A label for people.
    pub name: Option<String>,
    /// `open`, `completed` or `terminated`.
    pub status: &'static str,
    /// The model that its turns use unless a message says otherwise.
    pub model: Option<String>,
    /// The turn that it is at.
    pub turn_id: Option<String>,
    /// That turn's last message.
    pub last_message: u64,
    /// How often its head has moved.
    pub revision: u64,
    /// The run that is open.
    pub run_id: Option<String>,
    /// How many inputs wait.
    pub waiting: u64,
    /// The beginning of the last reply.
    pub last_snippet: Option<String>,
    /// Who began it.
    pub started_by: String,
    /// When, ISO 8601.
    pub created_at: String,
    /// When something last happened in it, ISO 8601.
    pub updated_at: String,
    /// Its event stream.
    pub stream_url: String,
}

/// A session with what is going on in it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    /// What a list shows of it.
    #[serde(flatten)]
    pub summary: SessionRowView,
    /// What the open run does: `running`, or `awaiting_client` while a question waits for an answer. None without an open run.
    pub run_status: Option<&'static str>,
    /// The questions that wait for an answer.
    pub client_actions: Vec<ClientActionView>,
    /// The operations of the open run that have no outcome.
    #[schema(value_type = Vec<Object>)]
    pub operations: Vec<Value>,
    /// The messages that were asked for, in order.
    pub messages: Vec<MessageView>,
}

/// An input that could not be dealt with and was put aside.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = DeadLetter)]
pub struct DeadLetterView {
    /// Its id.
    pub input_id: String,
    /// The session.
    pub session_id: String,
    /// Why.
    pub reason: String,
    /// When it was put aside, ISO 8601.
    pub died_at: String,
    /// When it had been accepted, ISO 8601.
    pub accepted_at: String,
    /// What it says.
    pub message: Option<MessageView>,
}

/// An agent as clients see it.
#[must_use]
pub fn agent(view: &broker::AgentView) -> AgentView {
    let AgentRow { agent, parent, created_at, updated_at, active, .. } = &view.row;
    AgentView {
        id: agent.id.to_string(),
        definition: agent.definition.to_string(),
        definition_name: view.definition_name.clone(),
        path: agent.path.clone(),
        parent_id: parent.map(|id| id.to_string()),
        name: agent.name.clone(),
        owner_user_id: agent.owner_user_id.clone(),
        status: if *active { "active" } else { "archived" },
        tools: view.tools.clone(),
        preferences: agent.preferences.clone(),
        current_session_id: agent.slot.as_ref().map(|(id, _)| id.to_string()),
        total_sessions: agent.total_sessions,
        successful_completions: agent.successful_completions,
        created_at: created_at.to_string(),
        updated_at: updated_at.to_string(),
        stream_url: format!("/api/agents/{}/stream", agent.id),
    }
}

/// A session as lists show it.
#[must_use]
pub fn session_row(row: &SessionRow) -> SessionRowView {
    SessionRowView {
        id: row.id.to_string(),
        agent_id: row.agent.to_string(),
        session_type: row.session_type.clone(),
        name: row.name.clone(),
        status: match row.status {
            SessionStatus::Open => "open",
            SessionStatus::Completed => "completed",
            SessionStatus::Terminated => "terminated",
        },
        model: row.model.clone(),
        turn_id: row.head.map(|id| id.to_string()),
        last_message: row.head_message,
        revision: row.revision,
        run_id: row.open_run.map(|id| id.to_string()),
        waiting: row.waiting,
        last_snippet: row.last_snippet.clone(),
        started_by: row.started_by.clone(),
        created_at: row.created_at.to_string(),
        updated_at: row.updated_at.to_string(),
        stream_url: format!("/api/agents/{}/stream?session={}", row.agent, row.id),
    }
}

/// A session with what is going on in it.
#[must_use]
pub fn session(view: &broker::SessionView) -> SessionView {
    SessionView {
        summary: session_row(&view.row),
        run_status: view.run.map(|_| if view.asking.is_empty() { "running" } else { "awaiting_client" }),
        client_actions: view.asking.iter().map(|(call, action)| client_action(*call, action)).collect(),
        operations: view.open.iter().map(operation).collect(),
        messages: view.messages.iter().map(message).collect(),
    }
}

/// A dead letter as clients see it.
#[must_use]
pub fn dead_letter(dead: &DeadInput) -> DeadLetterView {
    DeadLetterView {
        input_id: dead.accepted.input.to_string(),
        session_id: dead.accepted.session.to_string(),
        reason: dead.dead.reason.clone(),
        died_at: dead.dead.time.to_string(),
        accepted_at: dead.accepted.time.to_string(),
        message: dead.accepted.message.as_ref().map(draft),
    }
}
