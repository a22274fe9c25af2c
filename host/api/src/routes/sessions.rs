//! Sessions: begin, look at, talk in, answer, stop. Lists of them are beside this.

mod content;

use crate::caller::Caller;
use crate::input::{Idempotency, IdempotencyKey, InPath, Json, OfAgent, OfSession, OptionalJson, Params, id_in_path, target};
use crate::problem::{Place, Problem};
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::{NewSession, PostMessage, Respond, Target};
pub(super) use content::{Content, ContentShape};
use domain::id::{NotAnId, OperationId, SessionId};
use domain::refusal::Kind;
use http::header::LOCATION;
use http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Seconds until a session expires, at most: a year.
pub(super) const TIME_LIMIT_S_MAX: u32 = domain::definition::SESSION_TIME_LIMIT_S_MAX;

/// What begins a session.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSession)]
pub(super) struct NewSessionBody {
    /// `chat`, or a structured type that the agent leads. Without: the agent's first.
    session_type: Option<String>,
    /// A label for people.
    name: Option<String>,
    /// The model that its turns use: an alias of the configuration.
    model: Option<String>,
    /// What it is opened with, such as `{"lesson": {...}}` for a tutor. 256 KiB at most. A `system_prompt` in it takes the place of the
    /// agent's in this session, and takes the role primary.
    #[schema(value_type = Option<Object>)]
    config: Option<Map<String, Value>>,
    /// For a structured session: seconds until it expires. The definition may say less.
    #[schema(minimum = 1, maximum = 31_536_000)]
    time_limit_s: Option<u32>,
}

/// Begins a session. A structured one takes the agent's slot, and the agent begins to speak.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions", tag = "sessions",
    params(
        ("id" = String, Path, description = "UUID, path, or the id of a definition: then your agent of that definition, which is made if need be."),
        IdempotencyKey,
    ),
    request_body = Option<NewSessionBody>,
    responses((status = 201, description = "It has begun.", body = wire::SessionView, headers(("Location" = String, description = "Where it is."))))
)]
pub(super) async fn open(
    State(api): State<Api>,
    caller: Caller,
    InPath(id): InPath<String>,
    Idempotency(key): Idempotency,
    OptionalJson(new): OptionalJson<NewSessionBody>,
) -> Result<(StatusCode, [(HeaderName, String); 1], axum::Json<wire::SessionView>), Problem> {
    let NewSessionBody { session_type, name, model, config, time_limit_s } = new;
    if time_limit_s.is_some_and(|seconds| !(1..=TIME_LIMIT_S_MAX).contains(&seconds)) {
        let detail = format!("a time limit is from 1 to {TIME_LIMIT_S_MAX} seconds");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", detail).at(Place::Body("/time_limit_s")));
    }
    let command =
        NewSession { target: target(&id), session_type, name, model, config, time_limit_s, idempotency_key: key, user: caller.user };
    // Here the definition stands in the path, and no field of the body is to blame for it.
    let blameless = |error| {
        let mut problem = Problem::from(error);
        problem.field = problem.field.filter(|_| problem.code != "DEFINITION_NOT_FOUND");
        problem
    };
    let view = api.command()?.open_session(command).await.map_err(blameless)?;
    let location = format!("/api/agents/{}/sessions/{}", view.row.agent, view.row.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], axum::Json(wire::session(&view))))
}

/// What a client has filled in so far.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UiChanges {
    /// The question whose widget it is.
    call_id: String,
    /// What to give back to the client when it comes back. 64 KiB at most.
    widget_partial_state: Value,
}

/// Keeps what is filled in so far in the widget of an open question, for when the client comes back.
#[utoipa::path(
    put, path = "/api/agents/{id}/sessions/{sid}/ui-state", tag = "sessions",
    params(("id" = String, Path, description = "UUID or path of the agent."), ("sid" = String, Path, description = "UUID of the session.")),
    request_body = UiChanges, responses((status = 200, description = "The session.", body = wire::SessionView))
)]
pub(super) async fn save_ui(
    State(api): State<Api>,
    caller: Caller,
    OfSession(target, session): OfSession,
    Json(changes): Json<UiChanges>,
) -> Result<axum::Json<wire::SessionView>, Problem> {
    let call = call_id(&changes.call_id)?;
    let view = api.command()?.save_ui(&caller.user, &target, session, call, changes.widget_partial_state).await?;
    Ok(axum::Json(wire::session(&view)))
}

/// Which messages of a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageParams {
    /// The first message; with `to`. The last 100 without both.
    from: Option<u64>,
    /// The last message, itself included. 1,000 are shown at most.
    to: Option<u64>,
}

impl MessageParams {
    fn range(&self) -> Option<(u64, u64)> {
        (self.from.is_some() || self.to.is_some()).then(|| (self.from.unwrap_or(1), self.to.unwrap_or(u64::MAX)))
    }
}

/// Looks at one session.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}", tag = "sessions",
    params(("id" = String, Path, description = "UUID or path of the agent."), ("sid" = String, Path, description = "UUID of the session."), MessageParams),
    responses((status = 200, description = "The session.", body = wire::SessionView))
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    OfSession(target, session): OfSession,
    Params(params): Params<MessageParams>,
) -> Result<axum::Json<wire::SessionView>, Problem> {
    Ok(axum::Json(wire::session(&api.broker()?.session(&caller.user, &target, session, params.range()).await?)))
}

/// Looks at one session, whichever agent's it is.
#[utoipa::path(
    get, path = "/api/sessions/{sid}", tag = "sessions",
    params(("sid" = String, Path, description = "UUID of the session."), MessageParams),
    responses((status = 200, description = "The session.", body = wire::SessionView))
)]
pub(super) async fn find(
    State(api): State<Api>,
    caller: Caller,
    InPath(session): InPath<String>,
    Params(params): Params<MessageParams>,
) -> Result<axum::Json<wire::SessionView>, Problem> {
    let session: SessionId = id_in_path("sid", &session)?;
    let broker = api.broker()?;
    let row = broker.store().session(session).await.map_err(broker::Error::from)?;
    let not_found = || Problem::new(StatusCode::NOT_FOUND, "SESSION_NOT_FOUND", format!("there is no session `{session}`"));
    let agent = row.ok_or_else(not_found)?.agent;
    let found = broker.session(&caller.user, &Target::Agent(agent), session, params.range()).await;
    match found {
        // Of somebody else's agent nobody learns that it has this session.
        Err(broker::Error::Refused(refusal)) if refusal.kind == Kind::NotFound => Err(not_found()),
        found => Ok(axum::Json(wire::session(&found?))),
    }
}

/// What is said.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessage {
    /// Text, or a list of text parts. 1 MiB at most.
    #[schema(value_type = ContentShape)]
    content: Content,
    /// The model that this turn uses: an alias of the configuration.
    model: Option<String>,
}

/// A message was accepted. It is durable: whatever happens to the host, it will be dealt with.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Accepted {
    /// Its id as an input; the `correlation_id` of everything that follows from it.
    input_id: String,
    /// The session.
    session_id: String,
    /// The position of its event.
    position: u64,
    /// The stream of everything that follows.
    stream_url: String,
    /// Whether an earlier request with the same idempotency key was answered again.
    replayed: bool,
}

/// Says something in a session.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/messages", tag = "sessions",
    params(
        ("id" = String, Path, description = "UUID or path of the agent."), ("sid" = String, Path, description = "UUID of the session."),
        IdempotencyKey,
    ),
    request_body = NewMessage, responses((status = 202, description = "It is accepted.", body = Accepted))
)]
pub(super) async fn post_message(
    State(api): State<Api>,
    caller: Caller,
    OfSession(target, session): OfSession,
    Idempotency(key): Idempotency,
    Json(new): Json<NewMessage>,
) -> Result<(StatusCode, axum::Json<Accepted>), Problem> {
    let broker = api.command()?;
    let stream = match &target {
        Target::Agent(agent) => agent.to_string(),
        Target::Path(_) | Target::Definition(_) => broker.agent(&caller.user, &target).await?.row.agent.id.to_string(),
    };
    let command =
        PostMessage { target, session, routed: None, content: new.content.0, model: new.model, user: caller.user, idempotency_key: key };
    let receipt = broker.post_message(command).await?;
    let accepted = Accepted {
        input_id: receipt.input.to_string(),
        session_id: receipt.session.to_string(),
        position: receipt.position,
        stream_url: format!("/api/agents/{stream}/stream?session={}&after={}", receipt.session, receipt.position),
        replayed: receipt.replayed,
    };
    Ok((StatusCode::ACCEPTED, axum::Json(accepted)))
}

/// An answer to a client action.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Response {
    /// The `call_id` of the client action.
    call_id: String,
    /// The answer. Must fit the action's `response_schema`.
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
    params(("id" = String, Path, description = "UUID or path of the agent."), IdempotencyKey),
    request_body = Response, responses((status = 202, description = "It is accepted.", body = Responded))
)]
pub(super) async fn respond(
    State(api): State<Api>,
    caller: Caller,
    OfAgent(target): OfAgent,
    Idempotency(key): Idempotency,
    Json(answer): Json<Response>,
) -> Result<(StatusCode, axum::Json<Responded>), Problem> {
    let command = Respond {
        target,
        call: call_id(&answer.call_id)?,
        session: None,
        response: answer.response,
        user: caller.user,
        idempotency_key: key,
    };
    let position = api.command()?.respond(command).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(Responded { position })))
}

fn call_id(text: &str) -> Result<OperationId, Problem> {
    let invalid =
        |error: NotAnId| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", error.to_string()).at(Place::Body("/call_id"));
    text.parse().map_err(invalid)
}

/// Why something is stopped.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    /// For the record.
    reason: Option<String>,
}

/// Ends the structured session that holds the agent's slot.
#[utoipa::path(
    delete, path = "/api/agents/{id}/sessions/current", tag = "sessions",
    params(("id" = String, Path, description = "UUID or path of the agent."), Reason, IdempotencyKey),
    responses((status = 200, description = "It has ended.", body = wire::SessionRowView))
)]
pub(super) async fn terminate_current(
    State(api): State<Api>,
    caller: Caller,
    OfAgent(target): OfAgent,
    key: Idempotency,
    Params(Reason { reason }): Params<Reason>,
) -> Result<axum::Json<wire::SessionRowView>, Problem> {
    let ended = api.command()?.terminate_current(key.by(&caller.user), &target, reason).await;
    let ended = ended.map_err(|error| Problem::from(error).moved("/reason", Place::Query("reason")))?;
    Ok(axum::Json(wire::session_row(&ended)))
}

/// Whether there was something to cancel.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Cancelled {
    /// False when no turn was in the making.
    cancelled: bool,
}

/// Stops the turn in the making, without a successor.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/cancel", tag = "sessions",
    params(
        ("id" = String, Path, description = "UUID or path of the agent."), ("sid" = String, Path, description = "UUID of the session."),
        IdempotencyKey,
    ),
    request_body = Option<Reason>, responses((status = 200, description = "No turn is in the making any more.", body = Cancelled))
)]
pub(super) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    OfSession(target, session): OfSession,
    key: Idempotency,
    OptionalJson(Reason { reason }): OptionalJson<Reason>,
) -> Result<axum::Json<Cancelled>, Problem> {
    let cancelled = api.command()?.cancel(key.by(&caller.user), &target, session, reason).await?;
    Ok(axum::Json(Cancelled { cancelled }))
}
