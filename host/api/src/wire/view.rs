//! Agents, sessions and dead letters in public form.

use super::active_session::{ActiveSessionView, active_session};
use super::message::{MessageView, draft, message};
use super::operation::{ClientActionView, OperationSchema, client_action, operation};
use super::session::{
    ExecutionStateView, MetricsView, RememberedSessionView, UiStateView, execution_state, metrics, remembered, status, ui_state,
};
use domain::agent::Agent;
use domain::agent::assignment::Assignment;
use domain::agent::session::Phase;
use domain::event::Source;
use domain::path::{AgentConfig, AgentPath, ModelRole};
use domain::user::UserId;
use serde::Serialize;
use serde_json::{Map, Value};
use store::{AgentRow, DeadInput, SessionRow};

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
    /// What sort of agent that says it is: `connector`, `agent`, `cron`, `task`, `subuser`, `system`, `sub`, `memory` or `search`.
    pub kind: &'static str,
    /// The role by which it has its model, if the configuration gives one: `user`, `subagent`, `memory`, `memorySearch` or `task`.
    pub model_role: Option<&'static str>,
    /// What people read for it: its name with its user name, or what its address says.
    pub label: String,
    /// The agent that spawned it.
    pub parent_id: Option<String>,
    /// That agent's address.
    pub parent_path: Option<String>,
    /// Its name.
    pub name: String,
    /// What sort of agent it is, such as `tutor`.
    pub agent_type: String,
    /// Who created it.
    pub owner_user_id: String,
    /// What you are to it: `primary`, `shared`, `mentee` or `observer`.
    pub role: &'static str,
    /// Its users; for a mentee, themselves alone.
    pub assignments: Vec<AssignmentView>,
    /// `active` or `archived`.
    pub status: &'static str,
    /// When it was archived, ISO 8601.
    pub archived_at: Option<String>,
    /// Why.
    pub archive_reason: Option<String>,
    /// The tools that it may use.
    pub tools: Vec<String>,
    /// The session types that it leads; the first is opened when none is asked for.
    pub session_types: Vec<String>,
    /// Its own system prompt, in place of its definition's. Hidden from a mentee.
    pub system_prompt_override: Option<String>,
    /// What is kept about it beside its address: `name`, `username`, `description`, `system_prompt` (hidden from a mentee), `workspace_dir`,
    /// `app_id`, as far as they are said.
    #[schema(value_type = Object)]
    pub config: AgentConfig,
    /// Its own settings, over its definition's. Hidden from a mentee.
    #[schema(value_type = Object)]
    pub settings: Map<String, Value>,
    /// What it remembers for you: what holds for all its users, with your own over it; for a mentee, their own alone.
    #[schema(value_type = Object)]
    pub preferences: Map<String, Value>,
    /// Whether its structured session waits for the client.
    pub is_suspended: bool,
    /// The structured session that holds its slot; none when it is somebody else's and you are a mentee.
    pub current_session_id: Option<String>,
    /// That session: what it does, what it waits for and where it goes on; none when it is somebody else's and you are a mentee.
    pub active_session: Option<ActiveSessionView>,
    /// The structured sessions that ended last, the latest first, ten at most; for a mentee, their own.
    pub session_history: Vec<RememberedSessionView>,
    /// How many client actions were answered. Hidden from a mentee, as all that tells of what its other users do: each session of theirs has
    /// its own `metrics`.
    pub total_interactions: Option<u64>,
    /// When a structured session last began or went on, ISO 8601. Hidden from a mentee.
    pub last_interaction_at: Option<String>,
    /// How many structured sessions it has begun. Hidden from a mentee.
    pub total_sessions: Option<u64>,
    /// How many of them ended well. Hidden from a mentee.
    pub successful_completions: Option<u64>,
    /// When it was created, ISO 8601.
    pub created_at: String,
    /// When something last changed about it, ISO 8601.
    pub updated_at: String,
    /// Its event stream.
    pub stream_url: String,
}

/// One of an agent's users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Assignment)]
pub struct AssignmentView {
    /// The user.
    pub user_id: String,
    /// `primary`, `shared`, `mentee` or `observer`.
    pub role: &'static str,
    /// Since when, ISO 8601.
    pub assigned_at: String,
    /// Who assigned the user, or changed the role last.
    pub assigned_by: String,
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
    /// Who began it: `user:<id>` or `agent:<path>`.
    pub started_by: String,
    /// The user whom it is for.
    pub user_id: String,
    /// The conversation that it is a part of.
    pub conversation_id: String,
    /// When it expires, ISO 8601.
    pub expires_at: Option<String>,
    /// When it was completed or terminated, ISO 8601.
    pub completed_at: Option<String>,
    /// Why it was terminated; `expired` when its time was up.
    pub terminated_reason: Option<String>,
    /// The agent's summary of a completed one; none when it is over 8 KiB.
    pub summary: Option<Value>,
    /// How it went so far.
    pub metrics: MetricsView,
    /// When, ISO 8601.
    pub created_at: String,
    /// When something last happened in it, or was changed about it, ISO 8601.
    pub updated_at: String,
    /// When it was pinned, ISO 8601; none when it is not.
    pub pinned_at: Option<String>,
    /// What was noted of it.
    #[schema(value_type = Object)]
    pub attributes: Map<String, Value>,
    /// The turn that it began with, forked from another session or imported.
    pub base_turn_id: Option<String>,
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
    /// `active`, `awaiting_client_action`, `completed` or `terminated`.
    pub session_status: &'static str,
    /// What it was opened with.
    pub config: Option<Value>,
    /// What a client needs to show it as it was left.
    pub ui_state: UiStateView,
    /// Where the agent goes on when the client has answered; only while a structured session waits.
    pub execution_state: Option<ExecutionStateView>,
    /// What the open run does: `running`, `awaiting_client` while a question waits for an answer, or `compacting` while it summarises what
    /// was said, and words wait for its end. None without an open run.
    pub run_status: Option<&'static str>,
    /// The questions that wait for an answer.
    pub client_actions: Vec<ClientActionView>,
    /// The operations of the open run that have no outcome.
    #[schema(value_type = Vec<OperationSchema>)]
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

/// A dead letter with where it came from.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = DeadLetterDetail)]
pub struct DeadLetterDetail {
    /// What a list of them says of it.
    #[serde(flatten)]
    pub letter: DeadLetterView,
    /// Where it came from.
    pub source: DeadLetterSource,
    /// The user whom it is from, or for whom the agent worked that it is from; none in records from before it was said.
    pub user_id: Option<String>,
    /// The model that its turn was to use, if it said.
    pub model: Option<String>,
}

/// Where a dead letter came from.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = DeadLetterSource)]
pub struct DeadLetterSource {
    /// `api`, `opening`, `dispatch`, `late_reply` or `reminder`.
    pub kind: String,
    /// Of a dispatch and a late reply: the path, or the definition, of the agent that it is from.
    pub from: Option<String>,
    /// Of a dispatch: the turn that handed it over.
    pub caller_run_id: Option<String>,
    /// Of a dispatch: the operation of that turn.
    pub operation_id: Option<String>,
    /// How many calls deep it was.
    pub depth: u32,
    /// How many spawns deep.
    pub spawn_depth: u32,
    /// How often in a row agents had answered each other.
    pub hops: u32,
    /// Of a dispatch: when the work was to be done by, ISO 8601.
    pub deadline: Option<String>,
}

/// A dead letter as clients see it who ask for that one.
#[must_use]
pub fn dead_letter_detail(dead: &DeadInput) -> DeadLetterDetail {
    let source = &dead.accepted.source;
    let (kind, from, reply_to, deadline) = match source {
        Source::Api => ("api", None, None, None),
        Source::Opening => ("opening", None, None, None),
        Source::Dispatch { reply_to, from, deadline, .. } => ("dispatch", Some(from), *reply_to, *deadline),
        Source::LateReply { from, deadline, .. } => ("late_reply", Some(from), None, *deadline),
        Source::Reminder { deadline, .. } => ("reminder", None, None, *deadline),
    };
    DeadLetterDetail {
        letter: dead_letter(dead),
        source: DeadLetterSource {
            kind: kind.to_owned(),
            from: from.cloned(),
            caller_run_id: reply_to.map(|to| to.run.to_string()),
            operation_id: reply_to.map(|to| to.operation.to_string()),
            depth: source.depth().call,
            spawn_depth: source.depth().spawn,
            hops: source.hops(),
            deadline: deadline.map(|time| time.to_string()),
        },
        user_id: dead.accepted.user_id.as_ref().map(ToString::to_string),
        model: dead.accepted.model.clone(),
    }
}

/// An agent as clients see it.
#[must_use]
pub fn agent(view: &broker::AgentView, user: &UserId) -> AgentView {
    let AgentRow { agent, kind, parent, parent_path, created_at, updated_at, active, .. } = &view.row;
    let sees_all = view.role.sees_all_sessions();
    let assignments = agent.assignments.iter().filter(|assignment| sees_all || assignment.user_id == *user).map(assignment);
    let history = agent.session_history.iter().filter(|past| sees_all || past.started_by == *user).map(remembered);
    let current = agent.active_session.as_ref().filter(|session| sees_all || session.started_by == *user);
    AgentView {
        agent_type: agent.agent_type.clone(),
        role: view.role.word(),
        assignments: assignments.collect(),
        archived_at: agent.archived.as_ref().map(|archived| archived.at.to_string()),
        archive_reason: agent.archived.as_ref().map(|archived| archived.reason.clone()),
        session_types: view.session_types.clone(),
        system_prompt_override: agent.system_prompt_override.clone().filter(|_| sees_all),
        settings: if sees_all { agent.settings.clone() } else { Map::new() },
        is_suspended: current.is_some_and(|session| session.phase != Phase::Active),
        session_history: history.collect(),
        total_interactions: sees_all.then_some(agent.total_interactions),
        last_interaction_at: agent.last_interaction_at.filter(|_| sees_all).map(|time| time.to_string()),
        id: agent.id.to_string(),
        definition: agent.definition.to_string(),
        definition_name: view.definition_name.clone(),
        path: agent.path.clone(),
        kind: kind.word(),
        model_role: kind.model_role().map(ModelRole::word),
        label: label(agent),
        parent_id: parent.map(|id| id.to_string()),
        parent_path: parent_path.clone(),
        config: AgentConfig { system_prompt: agent.system_prompt_override.clone().filter(|_| sees_all), ..agent.described() },
        name: agent.name.clone(),
        owner_user_id: agent.owner_user_id.to_string(),
        status: if *active { "active" } else { "archived" },
        tools: view.tools.clone(),
        preferences: if sees_all { agent.preferences_for(user) } else { agent.user_preferences.get(user).cloned().unwrap_or_default() },
        current_session_id: current.map(|session| session.session_id.to_string()),
        active_session: current.map(active_session),
        total_sessions: sees_all.then_some(agent.total_sessions),
        successful_completions: sees_all.then_some(agent.successful_completions),
        created_at: created_at.to_string(),
        updated_at: updated_at.to_string(),
        stream_url: format!("/api/agents/{}/stream", agent.id),
    }
}

/// What people read for an agent. One at an address from before addresses had their form is called by its name.
pub(super) fn label(agent: &Agent) -> String {
    let path = agent.path.parse::<AgentPath>();
    path.map_or_else(|_| agent.name.clone(), |path| agent.described().label(&path))
}

fn assignment(assignment: &Assignment) -> AssignmentView {
    AssignmentView {
        user_id: assignment.user_id.to_string(),
        role: assignment.role.word(),
        assigned_at: assignment.assigned_at.to_string(),
        assigned_by: assignment.assigned_by.to_string(),
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
        status: row.status.word(),
        user_id: row.user_id.to_string(),
        conversation_id: row.conversation.to_string(),
        expires_at: row.expires_at.map(|time| time.to_string()),
        completed_at: row.ended_at.map(|time| time.to_string()),
        terminated_reason: row.ended_reason.clone(),
        summary: row.summary.clone(),
        metrics: metrics(row),
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
        pinned_at: row.pinned_at.map(|time| time.to_string()),
        attributes: row.attributes.clone(),
        base_turn_id: row.base.map(|id| id.to_string()),
        stream_url: format!("/api/agents/{}/stream?session={}", row.agent, row.id),
    }
}

/// A session with what is going on in it.
#[must_use]
pub fn session(view: &broker::SessionView) -> SessionView {
    SessionView {
        summary: session_row(&view.row),
        session_status: status(view),
        config: view.config.clone(),
        ui_state: ui_state(view),
        execution_state: execution_state(view),
        run_status: view.run.map(|_| match (view.compacts, view.asking.is_empty()) {
            (true, _) => "compacting",
            (false, true) => "running",
            (false, false) => "awaiting_client",
        }),
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
