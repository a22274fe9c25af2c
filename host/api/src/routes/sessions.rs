//! Sessions: open, show, answer, stop. Their lists are in `lists`, messages to them in `messages`.

use crate::caller::Caller;
use crate::codes::{self, Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Json, OptionalJson, POSITION_MAX, Params, Position,
    Reason, SessionInPath, TargetAgent, TargetSession, blameless, read_field, read_path, target,
};
use crate::problem::{Problem, RequestPart};
use crate::respond::Created;
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::{NewSession, Respond, SessionIds, Target};
use domain::error_code::{ErrorCode, ErrorKind};
use domain::id::{ConversationId, InputId, OperationId, SessionId};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

error_codes! {
    OpenErrors = [ConversationTaken, SessionExists] + Opening;
    SaveUiErrors = [Invalid, NotSuspended, SessionClosed] + LiveAgent + Session;
    TerminateCurrentErrors = [Invalid, NoActiveSession, SessionQuarantined] + LiveAgent;
    CancelErrors = [Invalid, SessionQuarantined] + Stopping + Session;
}

/// Seconds until a session expires, at most: a year.
const TIME_LIMIT_S_MAX: u32 = domain::definition::SESSION_TIME_LIMIT_S_MAX;

/// A new session.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSession, example = json!({ "session_type": "chat", "name": "Notes" }))]
pub(super) struct NewSessionBody {
    /// `chat`, or a structured type that the agent leads. Without: the agent's first.
    session_type: Option<String>,
    /// A label for people.
    name: Option<String>,
    /// The model that its turns use: an alias of the configuration.
    model: Option<String>,
    /// The configuration that it is opened with, such as `{"lesson": {...}}` for a tutor. 256 KiB
    /// at most. A `system_prompt` in it replaces the agent's in this session, and requires the role
    /// primary. A `generation` in it has settings of its models' replies over those of the
    /// definition: `temperature`, `max_tokens`, `stop`, `reasoning_effort`.
    #[schema(value_type = Option<Object>)]
    config: Option<Map<String, Value>>,
    /// Seconds until a structured session expires. The definition may set fewer.
    #[schema(minimum = 1, maximum = 31_536_000)]
    time_limit_s: Option<u32>,
    /// A UUID of your choosing for the session. None may have had it before.
    #[schema(value_type = Option<SessionId>)]
    session_id: Option<String>,
    /// The UUID of a conversation of yours that it joins, or begins. Sessions with one conversation
    /// belong together for clients; they share no messages and no rights by it. `GET
    /// /api/conversations/{conversation}` lists them.
    #[schema(value_type = Option<ConversationId>)]
    conversation_id: Option<String>,
}

/// Opens a session.
///
/// A structured one takes the agent's slot, and the agent speaks first.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions", tag = "sessions",
    operation_id = "createSession",
    security(("token" = ["write"])),
    params(
        (
            "id" = String,
            Path,
            description = "UUID, path, or the id of a definition: then your agent of that \
                definition, which is created if needed.",
        ),
        IdempotencyKey,
    ),
    request_body = Option<NewSessionBody>,
    responses(
        (
            status = 201,
            description = "It has begun.",
            body = wire::SessionView,
            headers(("Location" = String, description = "Where it is.")),
        ),
    ),
)]
pub(super) async fn open(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
    Idempotency(key): Idempotency,
    OptionalJson(new): OptionalJson<NewSessionBody>,
) -> Result<Created<wire::SessionView>, Refused<OpenErrors>> {
    let limit = new.time_limit_s;
    if limit.is_some_and(|seconds| !(1..=TIME_LIMIT_S_MAX).contains(&seconds)) {
        let detail = format!("a time limit must be from 1 to {TIME_LIMIT_S_MAX} seconds");
        return Err(Problem::invalid_field("/time_limit_s", detail).into());
    }
    let session = new.session_id.as_deref();
    let conversation = new.conversation_id.as_deref();
    let ids = SessionIds {
        session: session
            .map(|id| read_field("/session_id", id))
            .transpose()?,
        conversation: conversation
            .map(|id| read_field("/conversation_id", id))
            .transpose()?,
    };
    let share = api.session_share(&caller, key.as_deref()).await?;
    let command = NewSession {
        session_type: new.session_type,
        name: new.name,
        model: new.model,
        config: new.config,
        time_limit_s: limit,
        ids,
        idempotency_key: key,
        ..NewSession::of(target(&id), caller.user)
    };
    let view = api
        .command()?
        .sessions()
        .open(command)
        .await
        .map_err(blameless)?;
    share.keep();
    Ok(Created::session(&view))
}

/// Partial input that a client wants to keep.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UiChanges {
    /// The question whose widget it is.
    #[schema(value_type = OperationId)]
    tool_call_id: String,
    /// The state to return to the client when it comes back. 64 KiB at most.
    widget_partial_state: Value,
}

/// Keeps what is filled in so far in the widget of an open question, for when the client comes
/// back.
#[utoipa::path(
    put, path = "/api/agents/{id}/sessions/{sid}/ui-state", tag = "sessions",
    operation_id = "updateUiState",
    security(("token" = ["write"])),
    params(SessionInPath),
    request_body = UiChanges,
    responses((status = 200, description = "The session.", body = wire::SessionView)),
)]
pub(super) async fn save_ui(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Json(changes): Json<UiChanges>,
) -> Result<axum::Json<wire::SessionView>, Refused<SaveUiErrors>> {
    let call = read_field("/tool_call_id", &changes.tool_call_id)?;
    let state = changes.widget_partial_state;
    let view = api
        .command()?
        .sessions()
        .save_ui(&caller.user, &target, session, call, state)
        .await?;
    Ok(axum::Json(wire::session(&view)))
}

/// Query that selects messages of a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageParams {
    /// The first message; with `to`. The last 100 without both.
    #[param(inline)]
    from: Option<Position>,
    /// The last message, itself included. 1,000 are shown at most.
    #[param(inline)]
    to: Option<Position>,
}

impl MessageParams {
    fn range(&self) -> Option<(u64, u64)> {
        let Position(from) = self.from.unwrap_or(Position(1));
        let Position(to) = self.to.unwrap_or(Position(POSITION_MAX));
        (self.from.is_some() || self.to.is_some()).then_some((from, to))
    }
}

/// Looks at one session.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}", tag = "sessions",
    operation_id = "getSession",
    security(("token" = ["read"])),
    params(SessionInPath, MessageParams),
    responses((status = 200, description = "The session.", body = wire::SessionView)),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Params(params): Params<MessageParams>,
) -> Result<axum::Json<wire::SessionView>, Refused<codes::SessionOfAgent>> {
    Ok(axum::Json(wire::session(
        &caller
            .reading(&api)?
            .sessions()
            .get(&caller.user, &target, session, params.range())
            .await?,
    )))
}

/// Looks at one session, whichever agent's it is.
#[utoipa::path(
    get, path = "/api/sessions/{sid}", tag = "sessions",
    operation_id = "findSession",
    security(("token" = ["read"])),
    params(("sid" = SessionId, Path, description = "UUID of the session."), MessageParams),
    responses((status = 200, description = "The session.", body = wire::SessionView)),
)]
pub(super) async fn find(
    State(api): State<Api>,
    caller: Caller,
    InPath(session): InPath<String>,
    Params(params): Params<MessageParams>,
) -> Result<axum::Json<wire::SessionView>, Refused<codes::Session>> {
    let session: SessionId = read_path("sid", &session)?;
    let broker = caller.reading(&api)?;
    let agent = broker.sessions().agent_of(session).await?;
    let not_found = || {
        Problem::new(
            ErrorCode::SessionNotFound,
            format!("there is no session `{session}`"),
        )
    };
    let agent = agent.ok_or_else(not_found)?;
    let found = broker
        .sessions()
        .get(&caller.user, &Target::Agent(agent), session, params.range())
        .await;
    match found {
        // Of somebody else's agent nobody learns that it has this session.
        Err(broker::Error::Refused(refusal)) if refusal.kind() == ErrorKind::NotFound => {
            Err(not_found().into())
        }
        found => Ok(axum::Json(wire::session(&found?))),
    }
}

/// An answer to a client action.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ClientActionAnswer)]
pub(super) struct Response {
    /// The `tool_call_id` of the question.
    #[schema(value_type = OperationId)]
    tool_call_id: String,
    /// The answer. Must fit the question's `response_schema`.
    #[schema(value_type = Object)]
    response: Value,
}

/// An answer was accepted.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Responded {
    /// The position of its event.
    position: u64,
}

/// Answers a client action.
#[utoipa::path(
    post, path = "/api/agents/{id}/respond", tag = "sessions",
    operation_id = "answerClientAction",
    security(("token" = ["write"])),
    params(("id" = String, Path, description = "UUID or path of the agent."), IdempotencyKey),
    request_body = Response,
    responses((status = 202, description = "It is accepted.", body = Responded)),
)]
pub(super) async fn respond(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    Idempotency(key): Idempotency,
    Json(answer): Json<Response>,
) -> Result<(StatusCode, axum::Json<Responded>), Refused<codes::Answering>> {
    let command = Respond {
        target,
        call: read_field("/tool_call_id", &answer.tool_call_id)?,
        session: None,
        response: answer.response,
        user: caller.user,
        idempotency_key: key,
    };
    let position = api.command()?.runs().respond(command).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(Responded { position })))
}

/// Ends the structured session that holds the agent's slot.
#[utoipa::path(
    delete, path = "/api/agents/{id}/sessions/current", tag = "sessions",
    operation_id = "terminateSession",
    security(("token" = ["write"])),
    params(
        ("id" = String, Path, description = "UUID or path of the agent."),
        Reason,
        IdempotencyKey,
    ),
    responses((status = 200, description = "It has ended.", body = wire::SessionRowView)),
)]
pub(super) async fn terminate_current(
    State(api): State<Api>,
    caller: Caller,
    TargetAgent(target): TargetAgent,
    key: Idempotency,
    Params(Reason { reason }): Params<Reason>,
) -> Result<axum::Json<wire::SessionRowView>, Refused<TerminateCurrentErrors>> {
    let ended = api
        .command()?
        .sessions()
        .terminate_current(key.by(&caller.user), &target, reason)
        .await;
    let ended = ended
        .map_err(|error| Problem::from(error).moved("/reason", RequestPart::Query("reason")))?;
    Ok(axum::Json(wire::session_row(&ended)))
}

/// The reason for a cancellation, and its extent.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancellation {
    /// The reason, for the record.
    reason: Option<String>,
    /// True to withdraw the waiting inputs too, before the turn is stopped. Nothing then begins
    /// after it. False by default.
    waiting: Option<bool>,
}

/// The result of a cancellation.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Cancelled {
    /// True if a turn was in progress, false if none was.
    cancelled: bool,
    /// The inputs that were withdrawn, where `waiting` was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_ids: Option<Vec<InputId>>,
}

/// Stops the turn in progress; no turn follows it.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/cancel", tag = "sessions",
    operation_id = "cancelTurn",
    security(("token" = ["write"])),
    params(SessionInPath, IdempotencyKey),
    request_body = Option<Cancellation>,
    responses((status = 200, description = "No turn is in progress any more.", body = Cancelled)),
)]
pub(super) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    key: Idempotency,
    OptionalJson(Cancellation { reason, waiting }): OptionalJson<Cancellation>,
) -> Result<axum::Json<Cancelled>, Refused<CancelErrors>> {
    let broker = api.command()?;
    let by = key.by(&caller.user);
    Ok(axum::Json(if waiting.unwrap_or_default() {
        let broker::Cancelled { run, inputs } = broker
            .runs()
            .cancel_with_waiting(by, &target, session, reason)
            .await?;
        Cancelled {
            cancelled: run,
            input_ids: Some(inputs),
        }
    } else {
        Cancelled {
            cancelled: broker.runs().cancel(by, &target, session, reason).await?,
            input_ids: None,
        }
    }))
}
