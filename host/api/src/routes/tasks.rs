//! Tasks: work that agents handed to each other, a page at a time, one of them, and their sums.

use crate::caller::Caller;
use crate::codes::{self, Refused, error_codes};
use crate::input::{
    InPath, OptionalJson, Params, page_query, queried_agent, read_path, read_query,
};
use crate::problem::Problem;
use crate::reading::note_agents;
use crate::routing::routes;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use broker::{TaskList, TaskQuery};
use domain::id::{AgentId, OperationId, SessionId};
use domain::task::TaskStatus;
use domain::time::Timestamp;
use domain::user::{Scope, UserId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::{TaskFilter, TaskRow};
use utoipa_axum::router::OpenApiRouter;

error_codes! {
    ShowErrors = [TaskNotFound];
    CancelErrors = [
        AgentPurged, Invalid, PathForbidden, RoleForbids, SessionPurged, SessionQuarantined,
        TaskNotFound, TaskSettled,
    ] + Recording;
}

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(stats))
        .routes(routes!(show))
        .routes(routes!(cancel))
}

page_query! {
    /// Query for tasks. Every filter narrows them down.
    struct Page: String, 50 of 200 {
        /// Only those that were handed over in this session.
        #[param(value_type = Option<SessionId>)]
        session: Option<String>,
        /// Only those that this agent handed over or does: a UUID or a path.
        agent: Option<String>,
        /// Only those in this state: `PENDING`, `QUEUED`, `RUNNING`, `PAUSED`, `COMPLETED`,
        /// `FAILED`, `CANCELLED` or `TIMEOUT`.
        state: Option<String>,
    }
}

/// One page of tasks.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = TaskPage)]
struct Listed {
    /// The newest first.
    tasks: Vec<wire::TaskView>,
    /// The `after` of the next page; none on the last. A page may be short and not be the last.
    next_after: Option<String>,
}

/// Lists tasks: work that agents handed to each other, the newest first.
///
/// You see those of sessions that you see. With the scope `admin` you see all.
#[utoipa::path(
    get, path = "/api/tasks", tag = "tasks",
    operation_id = "listTasks",
    security(("token" = ["read"]), ("token" = ["admin"])),
    params(Page),
    responses((status = 200, description = "A page.", body = Listed)),
)]
async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<axum::Json<Listed>, Refused<codes::Agent>> {
    let broker = api.broker()?;
    let session: Option<SessionId> = read_query("session", page.session.as_deref())?;
    let agent = queried_agent(broker, &caller, page.agent.as_deref()).await?;
    let query = TaskQuery {
        filter: TaskFilter {
            user: viewer(&caller).cloned(),
            session,
            agent,
            ..TaskFilter::default()
        },
        status: page.state.as_deref().map(read_state).transpose()?,
        after: page.after.as_deref().map(read_after).transpose()?,
        limit: page.limit()?,
    };
    let TaskList { tasks, next } = broker.tasks().list(query).await?;
    note(&api, &caller, "GET /api/tasks", &tasks).await?;
    Ok(axum::Json(Listed {
        tasks: tasks.iter().map(wire::task).collect(),
        next_after: next.map(|(time, id)| write_after(time, id)),
    }))
}

/// Shows one task.
#[utoipa::path(
    get, path = "/api/tasks/{task_id}", tag = "tasks",
    operation_id = "getTask",
    security(("token" = ["read"]), ("token" = ["admin"])),
    params(("task_id" = OperationId, Path, description = "Its `task_id`.")),
    responses((status = 200, description = "The task.", body = wire::TaskView)),
)]
async fn show(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<axum::Json<wire::TaskView>, Refused<ShowErrors>> {
    let id: OperationId = read_path("task_id", &id)?;
    let row = api.broker()?.tasks().get(id, viewer(&caller)).await?;
    note(
        &api,
        &caller,
        "GET /api/tasks/{task_id}",
        std::slice::from_ref(&row),
    )
    .await?;
    Ok(axum::Json(wire::task(&row)))
}

/// The reason for a cancellation.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TaskCancellation)]
struct Cancellation {
    /// The reason, for the record.
    reason: Option<String>,
}

/// Cancels a task: its caller is told so at once, and the work is stopped.
///
/// Whoever may cancel the caller's turn may cancel the task. The caller's turn goes on. A message
/// that another agent answers in a turn of its own is no longer waited for; that turn goes on.
#[utoipa::path(
    post, path = "/api/tasks/{task_id}/cancel", tag = "tasks",
    operation_id = "cancelTask",
    security(("token" = ["write"])),
    params(("task_id" = OperationId, Path, description = "Its `task_id`.")),
    request_body = Option<Cancellation>,
    responses((status = 200, description = "The task, which has ended.", body = wire::TaskView)),
)]
async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
    OptionalJson(Cancellation { reason }): OptionalJson<Cancellation>,
) -> Result<axum::Json<wire::TaskView>, Refused<CancelErrors>> {
    let id: OperationId = read_path("task_id", &id)?;
    let row = api
        .command()?
        .tasks()
        .cancel(&caller.user, id, reason)
        .await?;
    Ok(axum::Json(wire::task(&row)))
}

/// Query for sums of tasks. Every filter narrows them down.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Range {
    /// Only tasks that were handed over at this time or later, such as `2026-11-01T00:00:00Z`.
    from: Option<String>,
    /// Only tasks that were handed over before this time.
    to: Option<String>,
    /// Only those that this agent handed over or does: a UUID or a path.
    agent: Option<String>,
    /// Only those that were handed over in this session.
    #[param(value_type = Option<SessionId>)]
    session: Option<String>,
}

/// Sums of tasks.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = TaskStats)]
struct Stats {
    /// The sums by target and operation, in the order of these.
    stats: Vec<wire::TaskSumView>,
    /// True if there are more than 1,000 different targets and operations: some are left out.
    cut_off: bool,
}

/// Sums tasks up by target and operation: numbers, durations, failures, cost.
///
/// You see those of sessions that you see. With the scope `admin` you see all.
#[utoipa::path(
    get, path = "/api/tasks/stats", tag = "tasks",
    operation_id = "getTaskStats",
    security(("token" = ["read"]), ("token" = ["admin"])),
    params(Range),
    responses((status = 200, description = "The sums.", body = Stats)),
)]
async fn stats(
    State(api): State<Api>,
    caller: Caller,
    Params(range): Params<Range>,
) -> Result<axum::Json<Stats>, Refused<codes::Agent>> {
    let from: Option<Timestamp> = read_query("from", range.from.as_deref())?;
    let to: Option<Timestamp> = read_query("to", range.to.as_deref())?;
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        let detail = format!("from: {from} is after `to`, which is {to}");
        return Err(Problem::invalid_query("from", detail).into());
    }
    let broker = api.broker()?;
    let filter = TaskFilter {
        user: viewer(&caller).cloned(),
        session: read_query("session", range.session.as_deref())?,
        agent: queried_agent(broker, &caller, range.agent.as_deref()).await?,
        from,
        to,
    };
    let stats = broker.tasks().stats(filter).await?;
    Ok(axum::Json(Stats {
        stats: stats.sums.iter().map(wire::task_sum).collect(),
        cut_off: stats.is_cut_off,
    }))
}

/// Returns the user whose sessions limit what a caller sees; none for an administrator.
fn viewer(caller: &Caller) -> Option<&UserId> {
    (!caller.scopes.contains(&Scope::Admin)).then_some(&caller.user)
}

/// Records that an administrator reads of tasks beyond what their roles show.
async fn note(api: &Api, caller: &Caller, request: &str, tasks: &[TaskRow]) -> Result<(), Problem> {
    if viewer(caller).is_some() {
        return Ok(());
    }
    let agents: BTreeSet<AgentId> = tasks.iter().map(|task| task.agent).collect();
    note_agents(api, caller, request, agents).await
}

fn read_state(word: &str) -> Result<TaskStatus, Problem> {
    TaskStatus::from_word(word).ok_or_else(|| {
        let known = TaskStatus::ALL.map(TaskStatus::as_str).join(", ");
        let detail = format!("state: `{word}` is no state of a task; known are {known}");
        Problem::invalid_query("state", detail)
    })
}

/// Returns the token of a place in the list.
fn write_after(time: Timestamp, id: OperationId) -> String {
    URL_SAFE_NO_PAD.encode(format!("task:{}:{id}", time.0))
}

fn read_after(token: &str) -> Result<(Timestamp, OperationId), Problem> {
    let read = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let (time, id) = text.strip_prefix("task:")?.split_once(':')?;
        let time: u64 = time.parse().ok()?;
        // What is beyond the times of the store is nothing that it gave out.
        i64::try_from(time).ok()?;
        Some((Timestamp(time), id.parse().ok()?))
    };
    read().ok_or_else(|| {
        let detail = "after: this is not the `next_after` of a page of this list; leave it out to \
                      begin with the first page";
        Problem::invalid_query("after", detail)
    })
}
