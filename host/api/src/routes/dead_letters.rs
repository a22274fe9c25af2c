//! Inputs that could not be dealt with.

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Params, Position, Reason, next_after, page_query,
    read_path, read_query,
};
use crate::problem::{Problem, RequestPart};
use crate::reading::note_agents;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use domain::id::{InputId, RunId};
use http::StatusCode;
use serde::{Deserialize, Serialize};

error_codes! {
    ShowErrors = [DeadLetterNotFound];
    RequeueErrors = [
        DeadLetterNotFound, MayRepeatWork, SessionClosed, WorkSettled,
    ] + Recording + Session;
    DiscardErrors = [DeadLetterNotFound, Invalid] + Recording;
}

page_query! {
    /// Query that selects a page of dead letters.
    pub(super) struct ListParams: Position, 200 of 200 {}
}

/// Dead letters.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct DeadLetterList {
    /// The newest first.
    dead_letters: Vec<wire::DeadLetterView>,
    /// The `after` of the next page, which has older ones; none on the last.
    next_after: Option<u64>,
}

/// Lists the inputs that could not be dealt with and were put aside.
///
/// These include the inputs of a turn that the host gave up, whether a step of it was taken or not.
#[utoipa::path(
    get, path = "/api/dead-letters", tag = "operator",
    operation_id = "listDeadLetters",
    security(("token" = ["admin"])),
    params(ListParams),
    responses((status = 200, description = "The dead letters.", body = DeadLetterList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<axum::Json<DeadLetterList>, Problem> {
    let limit = params.limit()?;
    let broker = api.broker()?;
    // One more tells whether there is another page.
    let mut dead = match params.after {
        Some(Position(after)) => broker.dead_letters().list_before(after, limit + 1).await?,
        None => broker.dead_letters().list(limit + 1).await?,
    };
    let next_after = next_after(&mut dead, limit, |last| last.position);
    let agents = dead.iter().filter_map(|dead| dead.agent).collect();
    note_agents(&api, &caller, "GET /api/dead-letters", agents).await?;
    Ok(axum::Json(DeadLetterList {
        dead_letters: dead.iter().map(wire::dead_letter).collect(),
        next_after,
    }))
}

/// Shows one dead letter.
///
/// It tells why it was put aside, its origin, and which operation of which turn waits for it, if
/// any.
#[utoipa::path(
    get, path = "/api/dead-letters/{id}", tag = "operator",
    operation_id = "getDeadLetter",
    security(("token" = ["admin"])),
    params(("id" = InputId, Path, description = "The `input_id`.")),
    responses((status = 200, description = "The dead letter.", body = wire::DeadLetterDetail)),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<axum::Json<wire::DeadLetterDetail>, Refused<ShowErrors>> {
    let input: InputId = read_path("id", &id)?;
    let dead = api.broker()?.dead_letters().get(input).await?;
    let agents = dead.agent.into_iter().collect();
    note_agents(&api, &caller, "GET /api/dead-letters/{id}", agents).await?;
    Ok(axum::Json(wire::dead_letter_detail(&dead)))
}

/// Query that permits a repetition.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RequeueParams {
    /// The `run_id` of a dead letter whose turn had begun: what that turn did may be done again.
    #[param(value_type = Option<RunId>)]
    repeat: Option<String>,
}

/// A dead letter that waits again.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Requeued {
    /// The input.
    input_id: InputId,
}

/// Lets a dead letter wait again.
///
/// If a turn had begun with it (`begun`), the turn stays as it is, and another one begins with the
/// same words. It may do again what the first one did, so that this has to be permitted with
/// `repeat`, for that turn alone.
#[utoipa::path(
    post, path = "/api/dead-letters/{id}/requeue", tag = "operator",
    operation_id = "requeueDeadLetter",
    security(("token" = ["admin"])),
    params(
        ("id" = InputId, Path, description = "The `input_id`."),
        RequeueParams,
        IdempotencyKey,
    ),
    responses((status = 202, description = "It waits again.", body = Requeued)),
)]
pub(super) async fn requeue(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
    key: Idempotency,
    Params(params): Params<RequeueParams>,
) -> Result<(StatusCode, axum::Json<Requeued>), Refused<RequeueErrors>> {
    let input: InputId = read_path("id", &id)?;
    let repeat: Option<RunId> = read_query("repeat", params.repeat.as_deref())?;
    let by = key.by(&caller.user);
    api.command()?
        .dead_letters()
        .requeue(by, input, repeat)
        .await?;
    Ok((
        StatusCode::ACCEPTED,
        axum::Json(Requeued { input_id: input }),
    ))
}

/// A dead letter that is one no more.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct DroppedLetter {
    /// The input.
    input_id: InputId,
}

/// Drops a dead letter for good.
///
/// It is listed no more and cannot be requeued; its input is `cancelled`. If a turn had begun with
/// it (`begun`), the turn stays as it is. That is possible after its session has ended too.
#[utoipa::path(
    delete, path = "/api/dead-letters/{id}", tag = "operator",
    operation_id = "deleteDeadLetter",
    security(("token" = ["admin"])),
    params(
        ("id" = InputId, Path, description = "The `input_id`."),
        Reason,
        IdempotencyKey,
    ),
    responses((status = 200, description = "It is no dead letter any more.", body = DroppedLetter)),
)]
pub(super) async fn discard(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
    key: Idempotency,
    Params(Reason { reason }): Params<Reason>,
) -> Result<axum::Json<DroppedLetter>, Refused<DiscardErrors>> {
    let input: InputId = read_path("id", &id)?;
    api.command()?
        .dead_letters()
        .drop(key.by(&caller.user), input, reason)
        .await
        .map_err(|error| Problem::from(error).moved("/reason", RequestPart::Query("reason")))?;
    Ok(axum::Json(DroppedLetter { input_id: input }))
}
