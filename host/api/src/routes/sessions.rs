//! Sessions: begin, look at, talk in, answer, stop. Lists of them are beside this.

mod content;

use super::queue::QueueBody;
use crate::caller::Caller;
use crate::input::{Idempotency, IdempotencyKey, InPath, Json, OfAgent, OfSession, OptionalJson, Params, id_in_path, target};
use crate::problem::{Place, Problem};
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::{Became, NewSession, PostMessage, Respond, Said, Target};
pub(super) use content::{Content, ContentShape};
use domain::delegate::Priority;
use domain::id::{NotAnId, OperationId, SessionId};
use domain::queue::QueueOverride;
use domain::refusal::Kind;
use http::header::LOCATION;
use http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// Seconds until a session expires, at most: a year.
pub(super) const TIME_LIMIT_S_MAX: u32 = domain::definition::SESSION_TIME_LIMIT_S_MAX;

/// Seconds that whoever says something waits for the reply, at most.
const WAIT_S_MAX: u64 = 60;

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
    api.quotas().session(&caller, api.limits())?;
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
    Ok(axum::Json(wire::session(&caller.reading(&api)?.session(&caller.user, &target, session, params.range()).await?)))
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
    let broker = caller.reading(&api)?;
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
    /// What is to happen to it while the agent is busy. What is left out is as the session has it, and else as the host is configured.
    queue: Option<QueueBody>,
    /// Among what waits in this session, the more urgent is taken first: `low`, `normal`, `high` or `critical`; `normal` without.
    #[schema(value_type = Option<String>, example = "high")]
    priority: Option<Priority>,
}

/// A message was accepted. It is durable: whatever happens to the host, it will be dealt with. Or it was a directive of the queue, such as
/// `/queue collect debounce:2s`, and the session's settings were changed: then `queue` is there and `input_id` is not.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Accepted {
    /// Its id as an input; the `correlation_id` of everything that follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_id: Option<String>,
    /// The session.
    session_id: String,
    /// The position of its event.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// The stream of everything that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_url: Option<String>,
    /// Whether an earlier request with the same idempotency key was answered again.
    replayed: bool,
    /// What it waits for: `steer` the next boundary of the turn in the making, `interrupt` that turn's end, which it brings about,
    /// `followup` and `collect` its turn after that one. When no turn is in the making, one begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'static str>,
    /// Inputs that were dropped for it because the queue was full; the next turn tells of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<String>,
    /// How the queue is from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<wire::QueueView>,
    /// With `wait_s`, when it was dealt with in time: `replied`, `completed`, `failed` or `aborted`, as its turn ended; `dead`, `cancelled` or
    /// `dropped` when there is no turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// What the agent said last in that turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<wire::MessageView>,
}

/// Whether to wait for the reply.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    /// Wait so many seconds for what becomes of the message, from 1 to 60. When that takes longer, the answer is the same as without: the
    /// message is accepted, and its stream tells the rest.
    #[param(minimum = 1, maximum = 60)]
    wait_s: Option<u64>,
}

impl Wait {
    fn patience(&self) -> Result<Option<Duration>, Problem> {
        match self.wait_s {
            None => Ok(None),
            Some(seconds) if (1..=WAIT_S_MAX).contains(&seconds) => Ok(Some(Duration::from_secs(seconds))),
            Some(seconds) => {
                let detail = format!("wait_s: {seconds} is out of its range: it must be from 1 to {WAIT_S_MAX}");
                Err(Problem::bad_request("INVALID_QUERY", detail).at(Place::Query("wait_s")))
            }
        }
    }
}

/// Says something in a session, and waits for the reply if that is asked for.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/messages", tag = "sessions",
    params(
        ("id" = String, Path, description = "UUID or path of the agent."), ("sid" = String, Path, description = "UUID of the session."),
        Wait, IdempotencyKey,
    ),
    request_body = NewMessage,
    responses(
        (status = 200, description = "It was waited for and dealt with.", body = Accepted),
        (status = 202, description = "It is accepted.", body = Accepted),
    )
)]
pub(super) async fn post_message(
    State(api): State<Api>,
    caller: Caller,
    OfSession(target, session): OfSession,
    Idempotency(key): Idempotency,
    Params(wait): Params<Wait>,
    Json(new): Json<NewMessage>,
) -> Result<(StatusCode, axum::Json<Accepted>), Problem> {
    let (broker, patience) = (api.command()?, wait.patience()?);
    let stream = match &target {
        Target::Agent(agent) => agent.to_string(),
        Target::Path(_) | Target::Definition(_) => broker.agent_id(&caller.user, &target).await?.to_string(),
    };
    let NewMessage { content, model, queue, priority } = new;
    let queue = queue.map(QueueOverride::from).unwrap_or_default();
    let command = PostMessage { target, session, content: content.0, model, queue, priority, user: caller.user, idempotency_key: key };
    let said = broker.say(command).await?;
    let became = match (&said, patience) {
        (Said::Accepted(receipt), Some(patience)) => broker.await_reply(receipt.input, patience).await?,
        _ => None,
    };
    let status = if became.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, axum::Json(accepted(said, &stream, session, became))))
}

/// What became of a message to a session of the agent with this id.
pub(super) fn accepted(said: Said, agent: &str, session: SessionId, became: Option<Became>) -> Accepted {
    let (outcome, reply) = became.map_or((None, None), told);
    match said {
        Said::Accepted(receipt) => Accepted {
            input_id: Some(receipt.input.to_string()),
            session_id: receipt.session.to_string(),
            position: Some(receipt.position),
            stream_url: Some(format!("/api/agents/{agent}/stream?session={}&after={}", receipt.session, receipt.position)),
            replayed: receipt.replayed,
            waits_for: Some(wire::waits_for(&receipt.waits_for)),
            dropped: receipt.dropped.iter().map(ToString::to_string).collect(),
            queue: None,
            outcome,
            reply,
        },
        Said::Configured(said) => Accepted {
            input_id: None,
            session_id: session.to_string(),
            position: None,
            stream_url: None,
            replayed: false,
            waits_for: None,
            dropped: Vec::new(),
            queue: Some(wire::queue(&said)),
            outcome,
            reply,
        },
    }
}

fn told(became: Became) -> (Option<&'static str>, Option<wire::MessageView>) {
    match became {
        Became::Answered { end, reply } => (Some(end.word()), reply.as_ref().map(wire::message)),
        Became::Undone { word } => (Some(word), None),
    }
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
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
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

/// Why the turn in the making is stopped, and whether what waits goes with it.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancellation {
    /// For the record.
    reason: Option<String>,
    /// Whether the words that wait are taken back too, before the turn is stopped; so that nothing begins after it. No without.
    waiting: Option<bool>,
}

/// Whether there was something to cancel.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Cancelled {
    /// False when no turn was in the making.
    cancelled: bool,
    /// The inputs that were taken back, where `waiting` was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_ids: Option<Vec<String>>,
}

/// Stops the turn in the making, without a successor.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/cancel", tag = "sessions",
    params(
        ("id" = String, Path, description = "UUID or path of the agent."), ("sid" = String, Path, description = "UUID of the session."),
        IdempotencyKey,
    ),
    request_body = Option<Cancellation>, responses((status = 200, description = "No turn is in the making any more.", body = Cancelled))
)]
pub(super) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    OfSession(target, session): OfSession,
    key: Idempotency,
    OptionalJson(Cancellation { reason, waiting }): OptionalJson<Cancellation>,
) -> Result<axum::Json<Cancelled>, Problem> {
    let (broker, by) = (api.command()?, key.by(&caller.user));
    Ok(axum::Json(if waiting.unwrap_or_default() {
        let broker::Cancelled { run, inputs } = broker.cancel_with_waiting(by, &target, session, reason).await?;
        Cancelled { cancelled: run, input_ids: Some(inputs.iter().map(ToString::to_string).collect()) }
    } else {
        Cancelled { cancelled: broker.cancel(by, &target, session, reason).await?, input_ids: None }
    }))
}
