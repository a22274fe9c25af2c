//! Triggers: list, make, change, pause, resume and run them, and their runs.
//!
//! A trigger names components, folders and secrets that the operator granted, so that only the
//! operator makes and changes one here. Users see theirs, and pause, resume, run and remove them.

mod owned;

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Json, Params, Position, next_after, page_query,
    read_field, read_query,
};
use crate::problem::Problem;
use crate::respond::Created;
use crate::routing::routes;
use crate::state::Api;
use crate::wire::{self, Time, TriggerRunView, TriggerView};
use axum::extract::State;
use domain::id::TriggerEventId;
use domain::trigger::{TriggerName, TriggerSpec};
use domain::user::{Scope, UserId};
use edge::{KindName, TriggerQuery};
use http::StatusCode;
use owned::owned;
use serde::{Deserialize, Serialize};
use store::TriggerRecord;
use utoipa_axum::router::OpenApiRouter;

error_codes! {
    CreateErrors = [
        ComponentNotFound, Invalid, TooManyTriggers, TriggerConfigured, TriggerExists,
        TriggerNotFound,
    ] + Recording;
    ShowErrors = [TriggerNotFound];
    ChangeErrors = [
        ComponentNotFound, Invalid, TooManyTriggers, TriggerConfigured, TriggerNotFound,
    ] + Recording;
    RemoveErrors = [TriggerConfigured, TriggerNotFound] + Recording;
    PauseErrors = [TriggerNotFound] + Recording;
    ResumeErrors = [Invalid, TriggerNotFound] + Recording;
    RunErrors = [Invalid, TriggerBusy, TriggerNotFound] + Recording;
}

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, change, remove))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(run))
        .routes(routes!(history))
}

page_query! {
    /// Query that selects a page of triggers. Every filter narrows it down.
    struct Page: String, 100 of 500 {
        /// Only on behalf of this user. Without the scope `admin` it is you.
        user: Option<String>,
        /// Only of this kind: `schedule`, `heartbeat`, `webhook`, `files` or `events`.
        #[param(value_type = Option<KindName>)]
        kind: Option<String>,
    }
}

/// One page of triggers.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct TriggerList {
    /// The triggers, by name.
    triggers: Vec<TriggerView>,
    /// The `after` of the next page; none on the last.
    next_after: Option<String>,
}

/// Lists triggers, by name.
///
/// You see those that speak on your behalf. With the scope `admin` you see all.
#[utoipa::path(
    get, path = "/api/triggers", tag = "triggers",
    operation_id = "listTriggers",
    security(("token" = ["read"]), ("token" = ["admin"])),
    params(Page),
    responses((status = 200, description = "A page.", body = TriggerList)),
)]
async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<axum::Json<TriggerList>, Problem> {
    let limit = page.limit()?;
    let asked: Option<UserId> = read_query("user", page.user.as_deref())?;
    let user = if caller.scopes.contains(&Scope::Admin) {
        asked
    } else if asked.is_none_or(|asked| asked == caller.user) {
        Some(caller.user)
    } else {
        let detail = "user: only the scope `admin` lists triggers of others";
        return Err(Problem::invalid_query("user", detail));
    };
    let query = TriggerQuery {
        user,
        kind: read_query("kind", page.kind.as_deref())?,
        after: read_query("after", page.after.as_deref())?,
        // One more tells whether there is another page.
        limit: limit + 1,
    };
    let mut rows = api.edge()?.triggers().list(query).await?;
    let now = api.broker()?.clock().now();
    Ok(axum::Json(TriggerList {
        next_after: next_after(&mut rows, limit, |last| last.name.to_string()),
        triggers: rows.iter().map(|row| wire::trigger(row, now)).collect(),
    }))
}

/// A trigger to make.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "morning",
    "spec": {
        "schedule": { "cron": "0 8 * * 1-5", "timeZone": "Europe/Vienna" },
        "target": { "agent": "assistant" },
        "message": "What is new on my reading list?",
    },
}))]
struct NewTrigger {
    /// Its name: 1 to 64 of `a-z`, `0-9`, `-` and `_`. `wake` and `agent` are taken.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// The trigger, as the configuration writes it under `triggers`. Without `user` it speaks on
    /// your behalf.
    spec: TriggerSpec,
}

/// Makes a trigger.
///
/// From now on its trigger events lead to messages, for as long as it is there. Its targets have to
/// be there; a definition of which its user has no agent yet is. The name of one that is removed
/// may be used again; its runs stay with the name.
#[utoipa::path(
    post, path = "/api/triggers", tag = "triggers",
    operation_id = "createTrigger",
    security(("token" = ["admin"])),
    params(IdempotencyKey),
    request_body = NewTrigger,
    responses(
        (
            status = 201,
            description = "It exists.",
            body = TriggerView,
            headers(("Location" = String, description = "Where it is.")),
        ),
    ),
)]
async fn create(
    State(api): State<Api>,
    caller: Caller,
    key: Idempotency,
    Json(new): Json<NewTrigger>,
) -> Result<Created<TriggerView>, Refused<CreateErrors>> {
    let name: TriggerName = read_field("/name", &new.name)?;
    let by = key.by(&caller.user);
    let row = api.commanded_edge()?.triggers().create(by, name, new.spec);
    let row = row.await?;
    Ok(Created {
        location: format!("/api/triggers/{}", row.name),
        view: wire::trigger(&row, api.broker()?.clock().now()),
    })
}

/// Looks at one trigger.
#[utoipa::path(
    get, path = "/api/triggers/{trigger}", tag = "triggers",
    operation_id = "getTrigger",
    security(("token" = ["read"]), ("token" = ["admin"])),
    params(("trigger" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The trigger.", body = TriggerView)),
)]
async fn show(
    State(api): State<Api>,
    caller: Caller,
    InPath(name): InPath<String>,
) -> Result<axum::Json<TriggerView>, Refused<ShowErrors>> {
    let row = owned(&api, &caller, &name).await?;
    let now = api.broker()?.clock().now();
    Ok(axum::Json(wire::trigger(&row, now)))
}

/// A trigger as it is to be.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct ChangedTrigger {
    /// The whole trigger, as the configuration writes it under `triggers`.
    spec: TriggerSpec,
}

/// Changes a trigger.
///
/// The given `spec` takes the place of the one before, as a whole. What the trigger keeps stays. A
/// trigger of the configuration is changed there.
#[utoipa::path(
    put, path = "/api/triggers/{trigger}", tag = "triggers",
    operation_id = "updateTrigger",
    security(("token" = ["admin"])),
    params(("trigger" = String, Path, description = "Its name."), IdempotencyKey),
    request_body = ChangedTrigger,
    responses((status = 200, description = "It is as given.", body = TriggerView)),
)]
async fn change(
    State(api): State<Api>,
    caller: Caller,
    InPath(name): InPath<String>,
    key: Idempotency,
    Json(changed): Json<ChangedTrigger>,
) -> Result<axum::Json<TriggerView>, Refused<ChangeErrors>> {
    let name = owned::named(&name)?;
    let by = key.by(&caller.user);
    let triggers = api.commanded_edge()?.triggers();
    let row = triggers.change(by, &name, changed.spec).await?;
    let now = api.broker()?.clock().now();
    Ok(axum::Json(wire::trigger(&row, now)))
}

/// A trigger that was removed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct RemovedTrigger {
    /// Its name.
    name: TriggerName,
}

/// Removes a trigger.
///
/// Its trigger events that wait are given up, and its runs stay. A trigger of the configuration is
/// removed there.
#[utoipa::path(
    delete, path = "/api/triggers/{trigger}", tag = "triggers",
    operation_id = "deleteTrigger",
    security(("token" = ["write"]), ("token" = ["admin"])),
    params(("trigger" = String, Path, description = "Its name."), IdempotencyKey),
    responses((status = 200, description = "It is gone.", body = RemovedTrigger)),
)]
async fn remove(
    State(api): State<Api>,
    caller: Caller,
    InPath(name): InPath<String>,
    key: Idempotency,
) -> Result<axum::Json<RemovedTrigger>, Refused<RemoveErrors>> {
    let name = owned::removable(&api, &caller, &name, &key).await?;
    let by = key.by(&caller.user);
    api.commanded_edge()?.triggers().remove(by, &name).await?;
    Ok(axum::Json(RemovedTrigger { name }))
}

/// Pauses a trigger: it is not fired until it is resumed.
///
/// The trigger events of its schedule that come meanwhile count as missed. A webhook is refused.
/// One that is paused already stays so.
#[utoipa::path(
    post, path = "/api/triggers/{trigger}/pause", tag = "triggers",
    operation_id = "pauseTrigger",
    security(("token" = ["write"]), ("token" = ["admin"])),
    params(("trigger" = String, Path, description = "Its name."), IdempotencyKey),
    responses((status = 200, description = "It is paused.", body = TriggerView)),
)]
async fn pause(
    State(api): State<Api>,
    caller: Caller,
    InPath(name): InPath<String>,
    key: Idempotency,
) -> Result<axum::Json<TriggerView>, Refused<PauseErrors>> {
    let name = owned::usable(&api, &caller, &name).await?;
    let by = key.by(&caller.user);
    let row = api.commanded_edge()?.triggers().pause(by, &name).await?;
    let now = api.broker()?.clock().now();
    Ok(axum::Json(wire::trigger(&row, now)))
}

/// Resumes a trigger that is paused, whatever the reason, or rests after failures.
#[utoipa::path(
    post, path = "/api/triggers/{trigger}/resume", tag = "triggers",
    operation_id = "resumeTrigger",
    security(("token" = ["write"]), ("token" = ["admin"])),
    params(("trigger" = String, Path, description = "Its name."), IdempotencyKey),
    responses((status = 200, description = "It is fired again.", body = TriggerView)),
)]
async fn resume(
    State(api): State<Api>,
    caller: Caller,
    InPath(name): InPath<String>,
    key: Idempotency,
) -> Result<axum::Json<TriggerView>, Refused<ResumeErrors>> {
    let name = owned::usable(&api, &caller, &name).await?;
    let by = key.by(&caller.user);
    let row = api.commanded_edge()?.triggers().resume(by, &name).await?;
    let now = api.broker()?.clock().now();
    Ok(axum::Json(wire::trigger(&row, now)))
}

/// A run that was asked for.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct TriggerRunAccepted {
    /// The trigger event, which is durable: it will be dealt with even if the host fails.
    trigger_event_id: TriggerEventId,
}

/// Runs a trigger now, whether it is due or not, and whether it is paused or not.
///
/// Only a schedule and a heartbeat are run so: all others are fired by what somebody sends. The
/// schedule stays as it is.
#[utoipa::path(
    post, path = "/api/triggers/{trigger}/run", tag = "triggers",
    operation_id = "runTrigger",
    security(("token" = ["write"]), ("token" = ["admin"])),
    params(("trigger" = String, Path, description = "Its name."), IdempotencyKey),
    responses((status = 202, description = "It is accepted.", body = TriggerRunAccepted)),
)]
async fn run(
    State(api): State<Api>,
    caller: Caller,
    InPath(name): InPath<String>,
    key: Idempotency,
) -> Result<(StatusCode, axum::Json<TriggerRunAccepted>), Refused<RunErrors>> {
    let name = owned::usable(&api, &caller, &name).await?;
    let by = key.by(&caller.user);
    let trigger_event = api.commanded_edge()?.triggers().run(by, &name).await?;
    let accepted = TriggerRunAccepted {
        trigger_event_id: trigger_event,
    };
    Ok((StatusCode::ACCEPTED, axum::Json(accepted)))
}

page_query! {
    /// Query that selects a page of runs.
    struct RunPage: Position, 50 of 100 {}
}

/// Runs of a trigger.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct TriggerHistory {
    /// The newest first.
    runs: Vec<TriggerRunView>,
    /// The time of its next trigger event, ISO 8601.
    next_due_at: Option<Time>,
    /// The `after` of the next page, which has older ones; none on the last.
    next_after: Option<u64>,
}

/// Lists the events of a trigger with what became of each, the newest first, and those that were
/// passed over.
///
/// With the scope `admin` the runs of a trigger that was removed are shown too.
#[utoipa::path(
    get, path = "/api/triggers/{trigger}/history", tag = "triggers",
    operation_id = "listTriggerRuns",
    security(("token" = ["read"]), ("token" = ["admin"])),
    params(("trigger" = String, Path, description = "Its name."), RunPage),
    responses((status = 200, description = "A page.", body = TriggerHistory)),
)]
async fn history(
    State(api): State<Api>,
    caller: Caller,
    InPath(name): InPath<String>,
    Params(page): Params<RunPage>,
) -> Result<axum::Json<TriggerHistory>, Refused<ShowErrors>> {
    let limit = page.limit()?;
    let trigger = owned::with_history(&api, &caller, &name).await?;
    let name = owned::named(&name)?;
    let before = page.after.map(|Position(before)| before);
    let triggers = api.edge()?.triggers();
    let mut rows = triggers.history(&name, before, limit + 1).await?;
    if trigger.is_none() && rows.is_empty() && before.is_none() {
        return Err(owned::not_found(&name).into());
    }
    let next_due = trigger.and_then(|trigger| trigger.next_due);
    Ok(axum::Json(TriggerHistory {
        next_after: next_after(&mut rows, limit, TriggerRecord::position),
        runs: rows.iter().map(wire::trigger_run).collect(),
        next_due_at: next_due.map(Time),
    }))
}
