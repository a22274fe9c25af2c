//! Tasks: work that runs hand to other agents, with what their callers were told.

use crate::sql::{Sql, int};
use domain::delegate::{Priority, TaskState};
use domain::id::{OperationId, RunId};
use domain::operation::{Operation, Performer, Settlement};
use domain::task::{content, priority};
use domain::time::Timestamp;
use rusqlite::params;

/// Records the task that an operation of a run is, if it is one.
pub(super) fn started(
    sql: &Sql<'_>,
    operation: &Operation,
    run: RunId,
    time: Timestamp,
) -> rusqlite::Result<()> {
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
         to_agent, to_session, input, detached, held, deadline, created_at) SELECT ?1, id, \
         session, agent, coalesce(user_id, 'local'), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, \
         ?13 FROM runs WHERE id = ?2",
        params![
            operation.id.0.0,
            run.to_string(),
            content.kind.as_str(),
            content.target,
            content.operation,
            content.parameters,
            agent.to_string(),
            session.to_string(),
            input.to_string(),
            content.detached,
            held(operation, content.queued),
            operation.deadline.map(|deadline| int(deadline.0)),
            int(time.0),
        ],
    )
}

/// Returns how urgent a task is that waits for room, from 1; 0 for one that does not wait.
fn held(operation: &Operation, queued: bool) -> i64 {
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

/// Records what the caller of a task was told. Work that nobody waits for ends with its turn.
pub(super) fn settled(sql: &Sql<'_>, settlement: &Settlement) -> rusqlite::Result<()> {
    let spent = settlement.spent;
    sql.write(
        "UPDATE tasks SET state = ?2, ended_at = ?3, tokens = ?4, calls = ?5, cost_micros = ?6 \
         WHERE id = ?1 AND NOT detached",
        params![
            settlement.operation.0.0,
            settlement.task_state().as_str(),
            int(settlement.time.0),
            spent.map(|spent| int(spent.tokens)),
            spent.map(|spent| spent.calls),
            spent.map(|spent| int(spent.cost_micros)),
        ],
    )
}

/// Records that the run that waits for a task has ended without an outcome of it.
pub(super) fn left(sql: &Sql<'_>, id: OperationId, time: Timestamp) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE tasks SET state = ?2, ended_at = ?3 WHERE id = ?1 AND NOT detached",
        params![id.0.0, TaskState::Cancelled.as_str(), int(time.0)],
    )
}
