//! Agents, sessions and dead letters in public form.

use super::Time;
use super::active_session::{ActiveSessionView, active_session};
use super::message::{MessageView, draft, message};
use super::operation::{OperationView, operation};
use super::quarantine::{QuarantinedView, quarantined};
use super::queue::InputSource;
use super::session::{
    ExecutionStateView, ItemView, MetricsView, PendingActionView, RememberedSessionView,
    SessionStatusView, UiStateView, execution_state, items, metrics, pending_actions, remembered,
    status, ui_state,
};
use domain::agent::Agent;
use domain::agent::assignment::Assignment;
use domain::definition::DefinitionId;
use domain::event::Source;
use domain::id::{AgentId, ConversationId, InputId, OperationId, RunId, SessionId, TurnId};
use domain::path::{AgentConfig, ModelRole, PathKind};
use domain::role::AgentRole;
use domain::session::Phase;
use domain::user::UserId;
use serde::Serialize;
use serde_json::{Map, Value};
use store::{DeadInput, SessionRow};

/// An agent.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Agent)]
pub(crate) struct AgentView {
    /// Its id.
    pub(crate) id: AgentId,
    /// The definition that it was made from.
    pub(crate) definition: DefinitionId,
    /// The display name of that definition; none when it is no longer configured.
    pub(crate) definition_name: Option<String>,
    /// Its address, such as `/local/agent/assistant`.
    pub(crate) path: String,
    /// The kind of agent, as its address gives it.
    pub(crate) kind: PathKind,
    /// The role by its address, for the model that the configuration may give it.
    pub(crate) model_role: Option<ModelRole>,
    /// The label shown to people: the name that was said, with its user name, or a label made from
    /// its address.
    pub(crate) label: String,
    /// The agent that spawned it.
    pub(crate) parent_id: Option<AgentId>,
    /// The address of that agent.
    pub(crate) parent_path: Option<String>,
    /// Its name.
    pub(crate) name: String,
    /// The type of agent, such as `tutor`.
    pub(crate) agent_type: String,
    /// The user who created it.
    pub(crate) owner_user_id: UserId,
    /// Your role.
    pub(crate) role: AgentRole,
    /// Its users; for a mentee, themselves alone.
    pub(crate) assignments: Vec<AssignmentView>,
    /// Its status.
    pub(crate) status: AgentStatus,
    /// The time at which it was archived, ISO 8601.
    pub(crate) archived_at: Option<Time>,
    /// The reason why it was archived.
    pub(crate) archive_reason: Option<String>,
    /// The tools that it may use.
    pub(crate) tools: Vec<String>,
    /// The session types that it leads; the first is opened when none is asked for.
    pub(crate) session_types: Vec<String>,
    /// Its own system prompt, in place of its definition's. Hidden from a mentee.
    pub(crate) system_prompt_override: Option<String>,
    /// Its configuration other than its address, as far as it is set: `name`, `username`,
    /// `description`, `system_prompt` (hidden from a mentee), `workspace_dir`, `app_id`.
    pub(crate) config: AgentConfig,
    /// Its own settings, over its definition's. Hidden from a mentee.
    #[schema(value_type = Object)]
    pub(crate) settings: Map<String, Value>,
    /// The preferences that it remembers for you: those for all its users, overlaid by your own. A
    /// mentee sees only their own.
    #[schema(value_type = Object)]
    pub(crate) preferences: Map<String, Value>,
    /// True if its structured session waits for the client.
    pub(crate) is_suspended: bool,
    /// The structured session that holds its slot; none when it is somebody else's and you are a
    /// mentee.
    pub(crate) current_session_id: Option<SessionId>,
    /// The same session with its status, pending actions and execution state; none when it is
    /// somebody else's and you are a mentee.
    pub(crate) active_session: Option<ActiveSessionView>,
    /// The structured sessions that ended last, the latest first, ten at most; for a mentee, their
    /// own.
    pub(crate) session_history: Vec<RememberedSessionView>,
    /// Number of client actions that were answered. Hidden from a mentee, as everything that
    /// reveals the activity of its other users. Each of a mentee's own sessions has `metrics`.
    pub(crate) total_interactions: Option<u64>,
    /// The time at which a structured session last began or continued, ISO 8601. Hidden from a
    /// mentee.
    pub(crate) last_interaction_at: Option<Time>,
    /// Number of structured sessions that it has begun. Hidden from a mentee.
    pub(crate) total_sessions: Option<u64>,
    /// Number of those that were completed. Hidden from a mentee.
    pub(crate) successful_completions: Option<u64>,
    /// The time at which it was created, ISO 8601.
    pub(crate) created_at: Time,
    /// The time of its last change, ISO 8601.
    pub(crate) updated_at: Time,
    /// Its event stream.
    pub(crate) stream_url: String,
}

/// The status of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AgentStatus {
    /// It takes messages.
    Active,
    /// It was archived.
    Archived,
}

/// One of an agent's users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Assignment)]
pub(crate) struct AssignmentView {
    /// The user.
    pub(crate) user_id: UserId,
    /// Their role.
    pub(crate) role: AgentRole,
    /// The time since which they have been assigned, ISO 8601.
    pub(crate) assigned_at: Time,
    /// The user who assigned them, or last changed their role.
    pub(crate) assigned_by: UserId,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = SessionSummary)]
pub(crate) struct SessionRowView {
    /// Its id.
    pub(crate) session_id: SessionId,
    /// Its agent.
    pub(crate) agent_id: AgentId,
    /// `chat`, or a structured type.
    pub(crate) session_type: String,
    /// A label for people.
    pub(crate) name: Option<String>,
    /// Its status.
    pub(crate) status: SessionStatusView,
    /// The model that its turns use unless a message names another.
    pub(crate) model: Option<String>,
    /// The turn that it is at.
    pub(crate) turn_id: Option<TurnId>,
    /// The last message of that turn: its place in the thread.
    pub(crate) last_message: u64,
    /// Number of times that its head has moved.
    pub(crate) revision: u64,
    /// The run that is open.
    pub(crate) run_id: Option<RunId>,
    /// Number of inputs that wait.
    pub(crate) waiting: u64,
    /// The beginning of the last reply.
    pub(crate) last_snippet: Option<String>,
    /// The user or agent that began it: `user:<id>` or `agent:<path>`.
    pub(crate) started_by: String,
    /// The user whom it is for.
    pub(crate) user_id: UserId,
    /// The conversation that it is a part of.
    pub(crate) conversation_id: ConversationId,
    /// The time at which it expires, ISO 8601.
    pub(crate) expires_at: Option<Time>,
    /// The time at which it was completed or terminated, ISO 8601.
    pub(crate) completed_at: Option<Time>,
    /// The reason for its termination; `expired` when its time limit was reached.
    pub(crate) terminated_reason: Option<String>,
    /// The agent's summary of a completed one; none when it is over 8 KiB.
    pub(crate) summary: Option<Value>,
    /// Figures about its course so far.
    pub(crate) metrics: MetricsView,
    /// The time at which it began, ISO 8601.
    pub(crate) started_at: Time,
    /// The time of its last event or change, ISO 8601.
    pub(crate) updated_at: Time,
    /// The time at which it was pinned, ISO 8601; none when it is not.
    pub(crate) pinned_at: Option<Time>,
    /// Attributes that clients attached to it.
    #[schema(value_type = Object)]
    pub(crate) attributes: Map<String, Value>,
    /// The turn that it began with, forked from another session or imported.
    pub(crate) base_turn_id: Option<TurnId>,
    /// Its event stream.
    pub(crate) stream_url: String,
}

/// A session with what is going on in it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionView {
    /// The fields that a list shows.
    #[serde(flatten)]
    pub(crate) summary: SessionRowView,
    /// The position to follow its stream from, as `after`: nothing that is not shown here is
    /// missed. What was stored while it was read is shown here and may come on the stream as well.
    pub(crate) position: u64,
    /// The item that is being worked on: the question that is answered next, by the id to answer
    /// under. None while nothing is asked. The item that goes on the record for it has an id of its
    /// own.
    pub(crate) current_item_id: Option<OperationId>,
    /// The question that was asked first and is not answered.
    pub(crate) pending_action: Option<PendingActionView>,
    /// The questions asked after that one that are not answered either.
    pub(crate) further_actions: Vec<PendingActionView>,
    /// The first 200 items that were asked and answered in it. `GET
    /// /api/agents/{id}/sessions/{sid}/items` lists all.
    pub(crate) items: Vec<ItemView>,
    /// The configuration that it was opened with.
    pub(crate) config: Option<Value>,
    /// The state that a client needs to show it as it was left.
    pub(crate) ui_state: UiStateView,
    /// The point at which the agent continues once the client has answered. Present only while a
    /// structured session waits.
    pub(crate) execution_state: Option<ExecutionStateView>,
    /// The activity of the open run; none without one.
    pub(crate) run_status: Option<RunStatus>,
    /// The inputs that the open run answers; empty without one, and while the host compacts the
    /// conversation.
    pub(crate) run_input_ids: Vec<InputId>,
    /// The reason why nothing is done for it; none of a session that is not in quarantine. Messages
    /// to it are accepted and wait.
    pub(crate) quarantined: Option<QuarantinedView>,
    /// The operations of the open run that have no outcome.
    pub(crate) operations: Vec<OperationView>,
    /// The messages that were asked for, in order.
    pub(crate) messages: Vec<MessageView>,
}

/// The activity of an open run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunStatus {
    /// It is at work.
    Running,
    /// A question waits for an answer.
    AwaitingClient,
    /// It summarises the conversation, and inputs wait for its end.
    Compacting,
}

/// An input that could not be dealt with and was put aside.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = DeadLetter)]
pub(crate) struct DeadLetterView {
    /// Its id.
    pub(crate) input_id: InputId,
    /// The session.
    pub(crate) session_id: SessionId,
    /// The agent of the session; none when that was erased.
    pub(crate) agent_id: Option<AgentId>,
    /// The user who sent it, or for whom the sending agent worked.
    pub(crate) user_id: UserId,
    /// The last run that had taken it in and begun to deal with it. If none had begun, the last
    /// that had taken it in; none when no run was stored for it.
    pub(crate) run_id: Option<RunId>,
    /// True if that run had begun to deal with it before the host gave it up. What its turn did
    /// is kept and may be done again, so that it is requeued only with that run as `repeat`.
    pub(crate) begun: bool,
    /// The reason why it was put aside.
    pub(crate) reason: String,
    /// The time at which it was put aside, ISO 8601.
    pub(crate) died_at: Time,
    /// The time at which it had been accepted, ISO 8601.
    pub(crate) accepted_at: Time,
    /// Its message.
    pub(crate) message: Option<MessageView>,
}

/// A dead letter with where it came from.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = DeadLetterDetail)]
pub(crate) struct DeadLetterDetail {
    /// The fields that a list shows.
    #[serde(flatten)]
    pub(crate) letter: DeadLetterView,
    /// The origin of the input.
    pub(crate) source: DeadLetterSource,
    /// The model that its turn was to use, if it named one.
    pub(crate) model: Option<String>,
}

/// The origin of a dead letter.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = DeadLetterSource)]
pub(crate) struct DeadLetterSource {
    /// The kind of its source.
    pub(crate) kind: InputSource,
    /// The sender of a dispatch or a late reply: the path, or the definition, of an agent. The name
    /// of a trigger or a connector.
    pub(crate) from: Option<String>,
    /// The turn that handed over a dispatch.
    pub(crate) caller_run_id: Option<RunId>,
    /// The operation of that turn.
    pub(crate) operation_id: Option<OperationId>,
    /// Its depth in calls between agents.
    pub(crate) depth: u32,
    /// Its depth in spawns.
    pub(crate) spawn_depth: u32,
    /// Number of times in a row that agents had answered each other.
    pub(crate) hops: u32,
    /// The deadline of a dispatch, ISO 8601.
    pub(crate) deadline: Option<Time>,
}

/// A dead letter as clients see it who ask for that one.
pub(crate) fn dead_letter_detail(dead: &DeadInput) -> DeadLetterDetail {
    let source = &dead.accepted.source;
    let (from, reply_to, deadline) = match source {
        Source::Api | Source::Opening => (None, None, None),
        Source::Trigger { trigger, .. } => (Some(trigger.to_string()), None, None),
        Source::Connector { reply_to, .. } => (Some(reply_to.connector.to_string()), None, None),
        Source::Dispatch {
            reply_to,
            from,
            deadline,
            ..
        } => (Some(from.clone()), *reply_to, *deadline),
        Source::LateReply { from, deadline, .. } => (Some(from.clone()), None, *deadline),
        Source::Reminder { deadline, .. } => (None, None, *deadline),
    };
    DeadLetterDetail {
        letter: dead_letter(dead),
        source: DeadLetterSource {
            kind: InputSource::of(source),
            from,
            caller_run_id: reply_to.map(|to| to.run),
            operation_id: reply_to.map(|to| to.operation),
            depth: source.depth().call,
            spawn_depth: source.depth().spawn,
            hops: source.hops(),
            deadline: deadline.map(Time),
        },
        model: dead.accepted.model.clone(),
    }
}

/// An agent as clients see it.
pub(crate) fn agent(view: &broker::AgentView, user: &UserId) -> AgentView {
    let row = &view.row;
    let agent = &row.agent;
    let sees_all = view.role.sees_all_sessions();
    let assignments = agent
        .assignments
        .iter()
        .filter(|assignment| sees_all || assignment.user_id == *user)
        .map(assignment);
    let history = agent
        .session_history
        .iter()
        .filter(|past| sees_all || past.started_by == *user)
        .map(remembered);
    let current = agent
        .active_session
        .as_ref()
        .filter(|session| sees_all || session.started_by == *user);
    let archived = agent.archived.as_ref();
    let last_interaction_at = agent.last_interaction_at.filter(|_| sees_all);
    let prompt = agent.system_prompt_override.clone().filter(|_| sees_all);
    AgentView {
        id: agent.id,
        definition: agent.definition.clone(),
        definition_name: view.definition_name.clone(),
        path: agent.path.to_string(),
        kind: row.kind,
        model_role: row.kind.model_role(),
        label: label(agent),
        parent_id: row.parent,
        parent_path: row.parent_path.clone(),
        name: agent.name.clone(),
        agent_type: agent.agent_type.clone(),
        owner_user_id: agent.owner_user_id.clone(),
        role: view.role,
        assignments: assignments.collect(),
        status: if row.active {
            AgentStatus::Active
        } else {
            AgentStatus::Archived
        },
        archived_at: archived.map(|archived| Time(archived.at)),
        archive_reason: archived.map(|archived| archived.reason.clone()),
        tools: view.tools.clone(),
        session_types: view.session_types.clone(),
        config: AgentConfig {
            system_prompt: prompt.clone(),
            ..agent.described()
        },
        system_prompt_override: prompt,
        settings: visible(&agent.settings, sees_all),
        preferences: preferences(agent, user, sees_all),
        is_suspended: current.is_some_and(|session| session.phase != Phase::Active),
        current_session_id: current.map(|session| session.session_id),
        active_session: current.map(active_session),
        session_history: history.collect(),
        total_interactions: sees_all.then_some(agent.total_interactions),
        last_interaction_at: last_interaction_at.map(Time),
        total_sessions: sees_all.then_some(agent.total_sessions),
        successful_completions: sees_all.then_some(agent.successful_completions),
        created_at: Time(row.created_at),
        updated_at: Time(row.updated_at),
        stream_url: format!("/api/agents/{}/stream", agent.id),
    }
}

/// Returns settings as far as they are visible: all of them, or none.
fn visible(settings: &Map<String, Value>, sees_all: bool) -> Map<String, Value> {
    if sees_all {
        settings.clone()
    } else {
        Map::new()
    }
}

/// Returns the preferences that an agent has for a user. A mentee sees only their own.
fn preferences(agent: &Agent, user: &UserId, sees_all: bool) -> Map<String, Value> {
    if sees_all {
        return agent.preferences_for(user);
    }
    let own = agent.user_preferences.get(user);
    own.cloned().unwrap_or_default()
}

/// Returns the label shown to people for an agent.
pub(super) fn label(agent: &Agent) -> String {
    agent.described().label(&agent.path)
}

fn assignment(assignment: &Assignment) -> AssignmentView {
    AssignmentView {
        user_id: assignment.user_id.clone(),
        role: assignment.role,
        assigned_at: Time(assignment.assigned_at),
        assigned_by: assignment.assigned_by.clone(),
    }
}

/// A session as lists show it.
pub(crate) fn session_row(row: &SessionRow) -> SessionRowView {
    SessionRowView {
        session_id: row.id,
        agent_id: row.agent,
        session_type: row.session_type.clone(),
        name: row.name.clone(),
        status: status(row),
        user_id: row.user_id.clone(),
        conversation_id: row.conversation,
        expires_at: row.expires_at.map(Time),
        completed_at: row.ended_at.map(Time),
        terminated_reason: row.ended_reason.clone(),
        summary: row.summary.clone(),
        metrics: metrics(row),
        model: row.model.clone(),
        turn_id: row.head,
        last_message: row.head_message,
        revision: row.revision,
        run_id: row.open_run,
        waiting: row.waiting,
        last_snippet: row.last_snippet.clone(),
        started_by: row.started_by.clone(),
        started_at: Time(row.created_at),
        updated_at: Time(row.updated_at),
        pinned_at: row.pinned_at.map(Time),
        attributes: row.attributes.clone(),
        base_turn_id: row.base,
        stream_url: format!("/api/agents/{}/stream?session={}", row.agent, row.id),
    }
}

/// A session with what is going on in it.
pub(crate) fn session(view: &broker::SessionView) -> SessionView {
    let mut waiting = pending_actions(view);
    let first = waiting.next();
    SessionView {
        summary: session_row(&view.row),
        position: view.position,
        current_item_id: first.as_ref().map(|first| first.tool_call_id),
        pending_action: first,
        further_actions: waiting.collect(),
        items: items(0, &view.items),
        config: view.config.clone(),
        ui_state: ui_state(view),
        execution_state: execution_state(view),
        run_status: view
            .run
            .map(|_| match (view.compacts, view.asking.is_empty()) {
                (true, _) => RunStatus::Compacting,
                (false, true) => RunStatus::Running,
                (false, false) => RunStatus::AwaitingClient,
            }),
        run_input_ids: view.claimed.clone(),
        quarantined: view.quarantined.as_ref().map(quarantined),
        operations: view.open.iter().map(operation).collect(),
        messages: view.messages.iter().map(message).collect(),
    }
}

/// A dead letter as clients see it.
pub(crate) fn dead_letter(dead: &DeadInput) -> DeadLetterView {
    DeadLetterView {
        input_id: dead.accepted.input,
        session_id: dead.accepted.session,
        agent_id: dead.agent,
        user_id: dead.accepted.user_id.clone(),
        run_id: dead.run,
        begun: dead.begun,
        reason: dead.dead.reason.clone(),
        died_at: Time(dead.dead.time),
        accepted_at: Time(dead.accepted.time),
        message: dead.accepted.message.as_ref().map(draft),
    }
}
