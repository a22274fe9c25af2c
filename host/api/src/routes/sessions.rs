//! Sessions: begin, look at, talk in, answer, stop.

mod content;

use crate::input::{Json, OfAgent, OfSession, OptionalJson, Params, id_in_path, limit, target};
use crate::problem::{Place, Problem};
use crate::state::{Api, USER};
use crate::wire;
use axum::extract::{Path, State};
use broker::{NewSession, PostMessage, Respond, Target};
use content::{Content, ContentShape};
use domain::id::{NotAnId, OperationId, SessionId};
use http::header::LOCATION;
use http::{HeaderMap, HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Sessions in one list.
const LIST_MAX: usize = 200;
/// The header that makes a repeated request the same request.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

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
}

/// Begins a session. A structured one takes the agent's slot, and the agent begins to speak.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions", tag = "sessions",
    params(("id" = String, Path, description = "UUID, path, or the id of a definition.")), request_body = Option<NewSessionBody>,
    responses((status = 201, description = "It has begun.", body = wire::SessionView))
)]
pub(super) async fn open(
    State(api): State<Api>,
    Path(id): Path<String>,
    OptionalJson(new): OptionalJson<NewSessionBody>,
) -> Result<(StatusCode, [(HeaderName, String); 1], axum::Json<wire::SessionView>), Problem> {
    let NewSessionBody { session_type, name, model } = new;
    let command = NewSession { target: target(&id), session_type, name, model, user: USER.to_owned() };
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

/// How many sessions.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {
    /// At most so many, from 1 to 200; 200 without.
    limit: Option<usize>,
}

/// An agent's sessions.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct SessionList {
    /// The most recently updated first.
    sessions: Vec<wire::SessionRowView>,
}

/// Lists an agent's sessions.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions", tag = "sessions", params(("id" = String, Path, description = "UUID or path."), ListParams),
    responses((status = 200, description = "The sessions.", body = SessionList))
)]
pub(super) async fn list(
    State(api): State<Api>,
    OfAgent(target): OfAgent,
    Params(params): Params<ListParams>,
) -> Result<axum::Json<SessionList>, Problem> {
    let limit = limit(params.limit, LIST_MAX, LIST_MAX)?;
    let sessions = api.broker()?.sessions(USER, &target, limit).await?;
    Ok(axum::Json(SessionList { sessions: sessions.iter().map(wire::session_row).collect() }))
}

/// Which messages of a session.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
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
    OfSession(target, session): OfSession,
    Params(params): Params<MessageParams>,
) -> Result<axum::Json<wire::SessionView>, Problem> {
    Ok(axum::Json(wire::session(&api.broker()?.session(USER, &target, session, params.range()).await?)))
}

/// Looks at one session, whichever agent's it is.
#[utoipa::path(
    get, path = "/api/sessions/{sid}", tag = "sessions",
    params(("sid" = String, Path, description = "UUID of the session."), MessageParams),
    responses((status = 200, description = "The session.", body = wire::SessionView))
)]
pub(super) async fn find(
    State(api): State<Api>,
    Path(session): Path<String>,
    Params(params): Params<MessageParams>,
) -> Result<axum::Json<wire::SessionView>, Problem> {
    let session: SessionId = id_in_path("sid", &session)?;
    let broker = api.broker()?;
    let row = broker.store().session(session).await.map_err(broker::Error::from)?;
    let not_found = || Problem::new(StatusCode::NOT_FOUND, "SESSION_NOT_FOUND", format!("there is no session `{session}`"));
    let agent = row.ok_or_else(not_found)?.agent;
    Ok(axum::Json(wire::session(&broker.session(USER, &Target::Agent(agent), session, params.range()).await?)))
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
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 bytes. The same key with the same body within seven days is the same request."),
    ),
    request_body = NewMessage, responses((status = 202, description = "It is accepted.", body = Accepted))
)]
pub(super) async fn post_message(
    State(api): State<Api>,
    OfSession(target, session): OfSession,
    headers: HeaderMap,
    Json(new): Json<NewMessage>,
) -> Result<(StatusCode, axum::Json<Accepted>), Problem> {
    let key = headers.get(IDEMPOTENCY_KEY).map(|value| value.to_str().map(str::to_owned)).transpose();
    let key = key.map_err(|_| {
        let detail = "the idempotency key must be visible ASCII characters";
        Problem::bad_request("INVALID_IDEMPOTENCY_KEY", detail).at(Place::Header("Idempotency-Key"))
    })?;
    let broker = api.command()?;
    let stream = match &target {
        Target::Agent(agent) => agent.to_string(),
        Target::Path(_) | Target::Definition(_) => broker.agent(USER, &target).await?.row.agent.id.to_string(),
    };
    let command = PostMessage { target, session, content: new.content.0, model: new.model, user: USER.to_owned(), idempotency_key: key };
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
    post, path = "/api/agents/{id}/respond", tag = "sessions", params(("id" = String, Path, description = "UUID or path of the agent.")),
    request_body = Response, responses((status = 202, description = "It is accepted.", body = Responded))
)]
pub(super) async fn respond(
    State(api): State<Api>,
    OfAgent(target): OfAgent,
    Json(answer): Json<Response>,
) -> Result<(StatusCode, axum::Json<Responded>), Problem> {
    let invalid =
        |error: NotAnId| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", error.to_string()).at(Place::Body("/call_id"));
    let call: OperationId = answer.call_id.parse().map_err(invalid)?;
    let command = Respond { target, call, response: answer.response, user: USER.to_owned() };
    let position = api.command()?.respond(command).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(Responded { position })))
}

/// Why something is stopped.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    /// For the record.
    reason: Option<String>,
}

/// Ends the structured session that holds the agent's slot.
#[utoipa::path(
    delete, path = "/api/agents/{id}/sessions/current", tag = "sessions",
    params(("id" = String, Path, description = "UUID or path of the agent."), Reason),
    responses((status = 200, description = "It has ended.", body = wire::SessionRowView))
)]
pub(super) async fn terminate_current(
    State(api): State<Api>,
    OfAgent(target): OfAgent,
    Params(Reason { reason }): Params<Reason>,
) -> Result<axum::Json<wire::SessionRowView>, Problem> {
    Ok(axum::Json(wire::session_row(&api.command()?.terminate_current(USER, &target, reason).await?)))
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
    params(("id" = String, Path, description = "UUID or path of the agent."), ("sid" = String, Path, description = "UUID of the session.")),
    request_body = Option<Reason>, responses((status = 200, description = "No turn is in the making any more.", body = Cancelled))
)]
pub(super) async fn cancel(
    State(api): State<Api>,
    OfSession(target, session): OfSession,
    OptionalJson(Reason { reason }): OptionalJson<Reason>,
) -> Result<axum::Json<Cancelled>, Problem> {
    let cancelled = api.command()?.cancel(USER, &target, session, reason).await?;
    Ok(axum::Json(Cancelled { cancelled }))
}
