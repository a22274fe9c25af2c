//! Tasks in public form: work that agents handed to each other.

use super::Time;
use domain::id::{AgentId, InputId, OperationId, RunId, SessionId};
use domain::task::{TaskKind, TaskStatus, TaskSum};
use domain::user::UserId;
use serde::Serialize;
use std::collections::BTreeMap;
use store::TaskRow;

/// A piece of work that one agent handed to another.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Task)]
pub(crate) struct TaskView {
    /// Its id: that of the operation that handed it over, and the `taskId` that its caller is told.
    task_id: OperationId,
    /// Its state. `PAUSED` waits for a person's answer or approval, `QUEUED` for room within the
    /// limits.
    state: TaskStatus,
    /// The way in which it was handed over.
    kind: TaskKind,
    /// The agent that handed it over.
    caller: TaskCallerView,
    /// The agent that does it.
    performer: TaskPerformerView,
    /// The target: that of a delegation, or the definition of the agent that does it.
    target: Option<String>,
    /// The operation of a delegation.
    operation: Option<String>,
    /// The parameters of a delegation as JSON text, cut off after 1,024 bytes.
    parameters: Option<String>,
    /// True if its caller goes on without waiting for it.
    detached: bool,
    /// Tokens that it used so far.
    tokens: u64,
    /// Calls of tools and agents that it made so far.
    calls: u64,
    /// Its cost so far, in millionths of the currency of the configured prices.
    cost_micros: u64,
    /// Milliseconds from when it was handed over to its end; none while it goes on.
    duration_ms: Option<u64>,
    /// Time at which it was handed over.
    created_at: Time,
    /// Time at which its turn began.
    started_at: Option<Time>,
    /// Time at which it ended.
    ended_at: Option<Time>,
    /// Time at which it ends as `TIMEOUT`.
    deadline: Option<Time>,
}

/// The turn that handed a task over.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TaskCaller)]
pub(crate) struct TaskCallerView {
    /// The agent.
    agent_id: AgentId,
    /// Its path; none if it was purged.
    agent_path: Option<String>,
    /// The session.
    session_id: SessionId,
    /// The run.
    run_id: RunId,
    /// The user for whom that turn works.
    user: UserId,
}

/// The turn that does a task.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TaskPerformer)]
pub(crate) struct TaskPerformerView {
    /// The agent.
    agent_id: AgentId,
    /// The session.
    session_id: SessionId,
    /// The input that carries the work.
    input_id: InputId,
    /// The run; none before it begins.
    run_id: Option<RunId>,
}

/// Returns a task in public form.
pub(crate) fn task(row: &TaskRow) -> TaskView {
    TaskView {
        task_id: row.id,
        state: row.status,
        kind: row.kind,
        caller: TaskCallerView {
            agent_id: row.agent,
            agent_path: row.agent_path.clone(),
            session_id: row.session,
            run_id: row.run,
            user: row.user_id.clone(),
        },
        performer: TaskPerformerView {
            agent_id: row.to_agent,
            session_id: row.to_session,
            input_id: row.input,
            run_id: row.child,
        },
        target: row.target.clone(),
        operation: row.operation.clone(),
        parameters: row.parameters.clone(),
        detached: row.detached,
        tokens: row.tokens,
        calls: row.calls,
        cost_micros: row.cost_micros,
        duration_ms: row.ended_at.map(|ended| ended.since_ms(row.created_at)),
        created_at: Time(row.created_at),
        started_at: row.started_at.map(Time),
        ended_at: row.ended_at.map(Time),
        deadline: row.deadline.map(Time),
    }
}

/// Sums over the tasks of one target and operation.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = TaskSum)]
pub(crate) struct TaskSumView {
    /// The target of delegations, or the definition of the agent that did the work.
    target: String,
    /// The operation; none of work that names none.
    operation: Option<String>,
    /// Number of tasks.
    count: u64,
    /// Number of tasks by their state; states without any are left out.
    #[schema(value_type = TaskCounts)]
    states: BTreeMap<&'static str, u64>,
    /// Number of tasks that ended as `FAILED` or `TIMEOUT`.
    failures: u64,
    /// The median duration of those that have ended, in milliseconds, to within 0.2 %.
    p50_ms: Option<u64>,
    /// The duration that 95 of 100 of those that have ended did not exceed, in milliseconds, to
    /// within 0.2 %.
    p95_ms: Option<u64>,
    /// Tokens of all.
    tokens: u64,
    /// Cost of all, in millionths of the currency of the configured prices.
    cost_micros: u64,
}

/// Numbers of tasks by their state; states without any are left out.
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "says in the description what the counts are")]
#[expect(non_snake_case, reason = "these are the words of the states")]
pub(crate) struct TaskCounts {
    /// Handed over, and about to begin.
    PENDING: Option<u64>,
    /// Waiting for room within the limits.
    QUEUED: Option<u64>,
    /// Under way.
    RUNNING: Option<u64>,
    /// Waiting for a person.
    PAUSED: Option<u64>,
    /// With a result.
    COMPLETED: Option<u64>,
    /// With an error.
    FAILED: Option<u64>,
    /// Stopped.
    CANCELLED: Option<u64>,
    /// Stopped at the deadline.
    TIMEOUT: Option<u64>,
}

/// Returns sums of tasks in public form.
pub(crate) fn task_sum(sum: &TaskSum) -> TaskSumView {
    TaskSumView {
        target: sum.target.clone(),
        operation: sum.operation.clone(),
        count: sum.count(),
        states: sum
            .states
            .iter()
            .map(|(status, count)| (status.as_str(), *count))
            .collect(),
        failures: sum.failures(),
        p50_ms: sum.p50_ms,
        p95_ms: sum.p95_ms,
        tokens: sum.tokens,
        cost_micros: sum.cost_micros,
    }
}
