//! A session's queue: its settings, the inputs that wait in it, and their withdrawal.

use crate::caller::Caller;
use crate::codes::{self, Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Json, Params, Reason, SessionInPath, TargetSession,
    existing, read_path,
};
use crate::problem::{Problem, RequestPart};
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use domain::id::{InputId, SessionId};
use domain::queue::{CAP_MAX, Cap, DEBOUNCE_MS_MAX, Debounce, DropPolicy, Mode, QueueOverride};
use serde::Deserialize;
use serde_json::json;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

error_codes! {
    ConfigureErrors = [SessionClosed] + AgentCommand + Session;
    ShowErrors = [InputNotFound] + SessionOfAgent;
    CancelErrors = [
        InputNotFound, InputNotWaiting, InputNotWords, Invalid, RoleForbids,
    ] + Recording + SessionOfAgent;
}

/// Treatment of inputs that arrive while the agent is busy. A field that is left out is taken from
/// the next level: a message's from its session, a session's from the host's configuration.
#[derive(Debug, Clone, Copy, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = QueueSettings)]
pub(super) struct QueueBody {
    /// The mode. `steer` joins the turn in progress at its next boundary, and acts as `followup`
    /// where that is impossible. `followup` gets a turn of its own after it. `collect` gets one
    /// turn after it, together with other collected inputs. `interrupt` ends it and begins the next
    /// one. Other spellings are accepted, such as `queue`, `follow-up`, `coalesce` and `abort`.
    #[schema(value_type = Option<String>, example = "collect")]
    mode: Option<Mode>,
    /// Quiet period before queued inputs get their turn: milliseconds, or text such as `2s`. At
    /// most a day.
    #[schema(schema_with = debounce)]
    debounce_ms: Option<Debounce>,
    /// Number of inputs that the queue holds, from 1 to 1,000. Inputs that steer or interrupt do
    /// not count.
    #[schema(schema_with = cap)]
    cap: Option<Cap>,
    /// The policy for inputs beyond the cap. `new` refuses the arriving one with `QUEUE_FULL`,
    /// `old` drops the one that has waited longest, `summarize` drops that one but keeps a line of
    /// it. The next turn reports how many were dropped.
    #[schema(value_type = Option<String>, example = "summarize")]
    drop: Option<DropPolicy>,
}

fn debounce() -> Schema {
    let about = "The quiet time before queued inputs get their turn: milliseconds, or text such as \
                 `2s`. At most a day.";
    number_or_text()
        .description(Some(about))
        .minimum(Some(0))
        .maximum(Some(DEBOUNCE_MS_MAX))
        .examples([json!("2s")])
        .into()
}

fn cap() -> Schema {
    let about = "Number of inputs that the queue holds, rounded down. Inputs that steer or \
                 interrupt do not count.";
    number_or_text()
        .description(Some(about))
        .minimum(Some(1))
        .maximum(Some(CAP_MAX as u64))
        .examples([json!(25)])
        .into()
}

fn number_or_text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([
        Type::Number,
        Type::String,
        Type::Null,
    ]))
}

impl From<QueueBody> for QueueOverride {
    fn from(body: QueueBody) -> Self {
        Self {
            mode: body.mode,
            debounce_ms: body.debounce_ms,
            cap: body.cap,
            drop: body.drop,
        }
    }
}

/// Sets the queue settings of a session.
///
/// Fields that are left out follow the host's configuration, whatever the session had set before.
#[utoipa::path(
    put, path = "/api/agents/{id}/sessions/{sid}/queue", tag = "sessions",
    operation_id = "updateQueue",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    request_body = QueueBody,
    responses((status = 200, description = "The settings of the queue.", body = wire::QueueView)),
)]
pub(super) async fn configure(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
    Json(queue): Json<QueueBody>,
) -> Result<axum::Json<wire::QueueView>, Refused<ConfigureErrors>> {
    let said = api
        .command()?
        .queue()
        .configure(key.by(&caller.user), &target, session, queue.into())
        .await?;
    Ok(axum::Json(wire::queue(&said)))
}

/// Removes the queue settings of a session: it follows the host's configuration again.
#[utoipa::path(
    delete, path = "/api/agents/{id}/sessions/{sid}/queue", tag = "sessions",
    operation_id = "resetQueue",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    responses((status = 200, description = "The settings of the queue.", body = wire::QueueView)),
)]
pub(super) async fn reset(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
) -> Result<axum::Json<wire::QueueView>, Refused<ConfigureErrors>> {
    let host = QueueOverride::default();
    let said = api
        .command()?
        .queue()
        .configure(key.by(&caller.user), &target, session, host)
        .await?;
    Ok(axum::Json(wire::queue(&said)))
}

/// Query that selects inputs.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct InputParams {
    /// Only inputs with this label: its name, or `name=value`.
    label: Option<String>,
}

/// Lists the inputs that wait in a session, in the order in which they were accepted.
///
/// The response includes the run that is open and the settings of the queue.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}/inputs", tag = "sessions",
    operation_id = "listInputs",
    security(("token" = ["read"])),
    params(SessionInPath, InputParams),
    responses(
        (status = 200, description = "The inputs that wait.", body = wire::WaitingInputsView),
    ),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Params(params): Params<InputParams>,
) -> Result<axum::Json<wire::WaitingInputsView>, Refused<codes::SessionOfAgent>> {
    let mut waiting = caller
        .reading(&api)?
        .queue()
        .inputs(&caller.user, &target, session)
        .await?;
    if let Some(label) = &params.label {
        waiting
            .inputs
            .retain(|accepted| accepted.labels.matches(label));
    }
    Ok(axum::Json(wire::waiting_inputs(&waiting)))
}

/// Shows one input of a session, whatever its state.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}/inputs/{input}", tag = "sessions",
    operation_id = "getInput",
    security(("token" = ["read"])),
    params(
        SessionInPath,
        ("input" = InputId, Path, description = "The `input_id`."),
    ),
    responses((status = 200, description = "The input.", body = wire::InputView)),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    InPath((id, session, input)): InPath<(String, String, String)>,
) -> Result<axum::Json<wire::InputView>, Refused<ShowErrors>> {
    let session: SessionId = read_path("sid", &session)?;
    let input: InputId = read_path("input", &input)?;
    let view = caller
        .reading(&api)?
        .queue()
        .input(&caller.user, &existing(&id)?, session, input)
        .await?;
    Ok(axum::Json(wire::input(&view)))
}

/// Withdraws an input that waits.
///
/// An input that a turn has taken already is cancelled with the turn. Work that another agent
/// handed over can only be cancelled by that agent.
#[utoipa::path(
    delete, path = "/api/agents/{id}/sessions/{sid}/inputs/{input}", tag = "sessions",
    operation_id = "cancelInput",
    security(("token" = ["write"])),
    params(
        SessionInPath,
        ("input" = InputId, Path, description = "The `input_id`."),
        Reason,
        IdempotencyKey,
    ),
    responses((status = 200, description = "It does not wait any more.", body = wire::InputView)),
)]
pub(super) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    InPath((id, session, input)): InPath<(String, String, String)>,
    key: Idempotency,
    Params(Reason { reason }): Params<Reason>,
) -> Result<axum::Json<wire::InputView>, Refused<CancelErrors>> {
    let session: SessionId = read_path("sid", &session)?;
    let input: InputId = read_path("input", &input)?;
    let broker = api.command()?;
    let target = existing(&id)?;
    let by = key.by(&caller.user);
    let cancelled = broker
        .queue()
        .cancel(by, &target, session, input, reason)
        .await;
    let view = cancelled
        .map_err(|error| Problem::from(error).moved("/reason", RequestPart::Query("reason")))?;
    Ok(axum::Json(wire::input(&view)))
}
