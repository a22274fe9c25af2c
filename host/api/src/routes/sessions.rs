//! Sessions: open, show, send messages, answer, stop. The lists of sessions are in `lists`.

mod content;

use super::queue::QueueBody;
use crate::caller::Caller;
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Json, OfAgent, OfSession, OptionalJson, Params,
    id_in_path, target,
};
use crate::problem::{Place, Problem};
use crate::state::Api;
use crate::wire;
use axum::extract::State;
use broker::{NewSession, PostMessage, PostOutcome, Respond, Target, TurnOutcome};
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

/// Seconds that a client may wait for the reply to a message, at most.
const WAIT_S_MAX: u64 = 60;

/// A new session.
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
    /// The configuration that it is opened with, such as `{"lesson": {...}}` for a tutor. 256 KiB
    /// at most. A `system_prompt` in it replaces the agent's in this session, and requires the role
    /// primary.
    #[schema(value_type = Option<Object>)]
    config: Option<Map<String, Value>>,
    /// Seconds until a structured session expires. The definition may set fewer.
    #[schema(minimum = 1, maximum = 31_536_000)]
    time_limit_s: Option<u32>,
}

/// Opens a session.
///
/// A structured one takes the agent's slot, and the agent speaks first.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions", tag = "sessions",
    params(
        ("id" = String, Path, description = "UUID, path, or the id of a definition: then your \
                                             agent of that definition, which is made if need be."),
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
) -> Result<
    (
        StatusCode,
        [(HeaderName, String); 1],
        axum::Json<wire::SessionView>,
    ),
    Problem,
> {
    let NewSessionBody {
        session_type,
        name,
        model,
        config,
        time_limit_s,
    } = new;
    if time_limit_s.is_some_and(|seconds| !(1..=TIME_LIMIT_S_MAX).contains(&seconds)) {
        let detail = format!("a time limit is from 1 to {TIME_LIMIT_S_MAX} seconds");
        return Err(
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", detail)
                .at(Place::Body("/time_limit_s")),
        );
    }
    let share = api.session_share(&caller, key.as_deref()).await?;
    let command = NewSession {
        target: target(&id),
        session_type,
        name,
        model,
        config,
        time_limit_s,
        idempotency_key: key,
        user: caller.user,
    };
    // Here the definition stands in the path, and no field of the body is to blame for it.
    let blameless = |error| {
        let mut problem = Problem::from(error);
        problem.field = problem
            .field
            .filter(|_| problem.code != "DEFINITION_NOT_FOUND");
        problem
    };
    let view = api
        .command()?
        .open_session(command)
        .await
        .map_err(blameless)?;
    share.keep();
    let location = format!("/api/agents/{}/sessions/{}", view.row.agent, view.row.id);
    Ok((
        StatusCode::CREATED,
        [(LOCATION, location)],
        axum::Json(wire::session(&view)),
    ))
}

/// Partial input that a client wants to keep.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UiChanges {
    /// The question whose widget it is.
    call_id: String,
    /// The state to return to the client when it comes back. 64 KiB at most.
    widget_partial_state: Value,
}

/// Keeps what is filled in so far in the widget of an open question, for when the client comes
/// back.
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
    let view = api
        .command()?
        .save_ui(
            &caller.user,
            &target,
            session,
            call,
            changes.widget_partial_state,
        )
        .await?;
    Ok(axum::Json(wire::session(&view)))
}

/// Query that selects messages of a session.
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
        (self.from.is_some() || self.to.is_some())
            .then(|| (self.from.unwrap_or(1), self.to.unwrap_or(u64::MAX)))
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
    Ok(axum::Json(wire::session(
        &caller
            .reading(&api)?
            .session(&caller.user, &target, session, params.range())
            .await?,
    )))
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
    let row = broker
        .store()
        .session(session)
        .await
        .map_err(broker::Error::from)?;
    let not_found = || {
        Problem::new(
            StatusCode::NOT_FOUND,
            "SESSION_NOT_FOUND",
            format!("there is no session `{session}`"),
        )
    };
    let agent = row.ok_or_else(not_found)?.agent;
    let found = broker
        .session(&caller.user, &Target::Agent(agent), session, params.range())
        .await;
    match found {
        // Of somebody else's agent nobody learns that it has this session.
        Err(broker::Error::Refused(refusal)) if refusal.kind == Kind::NotFound => Err(not_found()),
        found => Ok(axum::Json(wire::session(&found?))),
    }
}

/// A new message.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessage {
    /// Text, or a list of text parts. 1 MiB at most.
    #[schema(value_type = ContentShape)]
    content: Content,
    /// The model that this turn uses: an alias of the configuration.
    model: Option<String>,
    /// Treatment of the message while the agent is busy. Fields that are left out are taken from
    /// the session, then from the host's configuration.
    queue: Option<QueueBody>,
    /// Among what waits in this session, the more urgent is taken first: `low`, `normal`, `high` or
    /// `critical`; `normal` without.
    #[schema(value_type = Option<String>, example = "high")]
    priority: Option<Priority>,
}

/// An accepted message. It is durable: it will be dealt with even if the host fails. If it was a
/// queue directive, such as `/queue collect debounce:2s`, the session's settings were changed
/// instead: then `queue` is present and `input_id` is not.
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
    /// True if this repeats the response to an earlier request with the same idempotency key.
    replayed: bool,
    /// The condition that the input waits for. `steer` waits for the next boundary of the turn in
    /// progress, `interrupt` for that turn's end, which it causes, `followup` and `collect` for
    /// their turn after that one. When no turn is in progress, one begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'static str>,
    /// Inputs that were dropped in its favour because the queue was full. The next turn reports
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<String>,
    /// The queue as it is from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<wire::QueueView>,
    /// The outcome, with `wait_s` and when the message was dealt with in time. It is `replied`,
    /// `completed`, `failed` or `aborted`, as its turn ended; `dead`, `cancelled` or `dropped` when
    /// there is no turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// The last message of the agent in that turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<wire::MessageView>,
}

/// Query that sets a time to wait for the reply.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    /// Seconds to wait for the outcome of the message, from 1 to 60. When it takes longer, the
    /// response is the same as without waiting: the message is accepted, and its stream reports the
    /// rest.
    #[param(minimum = 1, maximum = 60)]
    wait_s: Option<u64>,
}

impl Wait {
    fn patience(&self) -> Result<Option<Duration>, Problem> {
        match self.wait_s {
            None => Ok(None),
            Some(seconds) if (1..=WAIT_S_MAX).contains(&seconds) => {
                Ok(Some(Duration::from_secs(seconds)))
            }
            Some(seconds) => {
                let detail = format!(
                    "wait_s: {seconds} is out of its range: it must be from 1 to {WAIT_S_MAX}"
                );
                Err(Problem::bad_request("INVALID_QUERY", detail).at(Place::Query("wait_s")))
            }
        }
    }
}

/// Sends a message in a session, and waits for the reply on request.
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
        Target::Path(_) | Target::Definition(_) => {
            broker.agent_id(&caller.user, &target).await?.to_string()
        }
    };
    let NewMessage {
        content,
        model,
        queue,
        priority,
    } = new;
    let queue = queue.map(QueueOverride::from).unwrap_or_default();
    let command = PostMessage {
        target,
        session,
        content: content.0,
        model,
        queue,
        priority,
        user: caller.user,
        idempotency_key: key,
    };
    let said = broker.say(command).await?;
    let became = match (&said, patience) {
        (PostOutcome::Accepted(receipt), Some(patience)) => {
            broker.await_reply(receipt.input, patience).await?
        }
        _ => None,
    };
    let status = if became.is_some() {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    Ok((status, axum::Json(accepted(said, &stream, session, became))))
}

/// Describes the outcome of a message to a session of the agent with this id.
pub(super) fn accepted(
    said: PostOutcome,
    agent: &str,
    session: SessionId,
    became: Option<TurnOutcome>,
) -> Accepted {
    let (outcome, reply) = became.map_or((None, None), told);
    match said {
        PostOutcome::Accepted(receipt) => Accepted {
            input_id: Some(receipt.input.to_string()),
            session_id: receipt.session.to_string(),
            position: Some(receipt.position),
            stream_url: Some(format!(
                "/api/agents/{agent}/stream?session={}&after={}",
                receipt.session, receipt.position
            )),
            replayed: receipt.replayed,
            waits_for: Some(wire::waits_for(&receipt.waits_for)),
            dropped: receipt.dropped.iter().map(ToString::to_string).collect(),
            queue: None,
            outcome,
            reply,
        },
        PostOutcome::Configured(said) => Accepted {
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

fn told(became: TurnOutcome) -> (Option<&'static str>, Option<wire::MessageView>) {
    match became {
        TurnOutcome::Answered { end, reply } => {
            (Some(end.as_str()), reply.as_ref().map(wire::message))
        }
        TurnOutcome::Undone { word } => (Some(word), None),
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
    let invalid = |error: NotAnId| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "INVALID_FIELD",
            error.to_string(),
        )
        .at(Place::Body("/call_id"))
    };
    text.parse().map_err(invalid)
}

/// The reason why a session is ended.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    /// The reason, for the record.
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
    let ended = api
        .command()?
        .terminate_current(key.by(&caller.user), &target, reason)
        .await;
    let ended =
        ended.map_err(|error| Problem::from(error).moved("/reason", Place::Query("reason")))?;
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
    input_ids: Option<Vec<String>>,
}

/// Stops the turn in progress; no turn follows it.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/cancel", tag = "sessions",
    params(
        ("id" = String, Path, description = "UUID or path of the agent."), ("sid" = String, Path, description = "UUID of the session."),
        IdempotencyKey,
    ),
    request_body = Option<Cancellation>, responses((status = 200, description = "No turn is in the \
        making any more.", body = Cancelled))
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
        let broker::Cancelled { run, inputs } = broker
            .cancel_with_waiting(by, &target, session, reason)
            .await?;
        Cancelled {
            cancelled: run,
            input_ids: Some(inputs.iter().map(ToString::to_string).collect()),
        }
    } else {
        Cancelled {
            cancelled: broker.cancel(by, &target, session, reason).await?,
            input_ids: None,
        }
    }))
}
