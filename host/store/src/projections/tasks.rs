//! Tasks: work that runs hand to other agents, with the results reported to their callers.

use crate::sql::{self, Sql, named};
use domain::delegate::{Priority, TaskState};
use domain::id::{OperationId, RunId};
use domain::operation::{Operation, Performer, Settlement};
use domain::task::{content, priority};
use domain::time::Timestamp;

/// Records the task of a run's operation, if the operation is one.
pub(super) fn started(
    sql: &Sql<'_>,
    operation: &Operation,
    run: RunId,
    time: Timestamp,
) -> sql::Result<()> {
    let Some(content) = content(operation) else {
        return Ok(());
    };
    let (Performer::Agent {
        agent,
        session,
        input,
        ..
    }
    | Performer::Detached {
        agent,
        session,
        input,
        ..
    }) = &operation.performer
    else {
        return Ok(());
    };
    sql.write(
        "INSERT INTO tasks (id, run, session, agent, user_id, kind, target, operation, parameters, \
         to_agent, to_session, input, detached, blocked, deadline, created_at) SELECT :id, id, \
         session, agent, coalesce(user_id, 'local'), :kind, :target, :operation, :parameters, \
         :agent, :session, :input, :detached, :queued, :deadline, :time FROM runs WHERE id = :run",
        named![
            id = operation.id,
            run,
            kind = content.kind.as_str(),
            target = content.target,
            operation = content.operation,
            parameters = content.parameters,
            agent,
            session,
            input,
            detached = content.detached,
            queued = blocked(operation, content.queued),
            deadline = operation.deadline,
            time
        ],
    )
}

/// Returns the urgency of a task that waits for room, from 1; 0 for a task that does not wait.
fn blocked(operation: &Operation, queued: bool) -> i64 {
    match &operation.performer {
        Performer::Agent {
            delegation: Some(arguments),
            ..
        } if queued => match priority(arguments) {
            Priority::Low => 1,
            Priority::Normal => 2,
            Priority::High => 3,
            Priority::Critical => 4,
        },
        _ => 0,
    }
}

/// Records the result reported to the caller of a task. Work without a waiting caller ends with its
/// turn.
pub(super) fn settled(sql: &Sql<'_>, settlement: &Settlement) -> sql::Result<()> {
    let spent = settlement.spent;
    sql.write(
        "UPDATE tasks SET state = :state, ended_at = :ended_at, tokens = :tokens, calls = :calls, \
         cost_micros = :cost_micros WHERE id = :id AND NOT detached",
        named![
            id = settlement.operation,
            state = settlement.task_state().as_str(),
            ended_at = settlement.time,
            tokens = spent.map(|spent| spent.tokens),
            calls = spent.map(|spent| spent.calls),
            cost_micros = spent.map(|spent| spent.cost_micros)
        ],
    )
}

/// Records that the run that waits for a task has ended without an outcome of the task.
pub(super) fn left(sql: &Sql<'_>, id: OperationId, time: Timestamp) -> sql::Result<()> {
    sql.write(
        "UPDATE tasks SET state = :state, ended_at = :ended_at WHERE id = :id AND NOT detached",
        named![id, state = TaskState::Cancelled.as_str(), ended_at = time],
    )
}
