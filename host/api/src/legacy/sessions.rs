//! `/api/session/*`: the sessions API of the system that this one replaces. Deprecated.
//!
//! A session is led by the caller's agent for its type, which is made when it is not there yet.

use super::view::{
    LegacySession, LegacyState, LegacySummary, legacy_session, legacy_state, legacy_summary,
};
use crate::caller::Caller;
use crate::codes::{self, Refused, error_codes};
use crate::input::{InPath, Json, OptionalJson, Params, read_path};
use crate::problem::{Problem, RequestPart};
use crate::server::Connected;
use crate::state::Api;
use crate::stream::{self, StreamParams, StreamRequest};
use crate::wire::{ControlMode, SessionPhase};
use axum::extract::{Extension, State};
use axum::response::Response;
use broker::{NewSession, Respond, SessionView, Target};
use domain::definition::SESSION_TIME_LIMIT_S_MAX;
use domain::error_code::{ErrorCode, ErrorKind};
use domain::id::{AgentId, ConversationId, NotAnId, OperationId, SessionId};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::UserSessionFilter;

error_codes! {
    CreateErrors = [InvalidSessionType] + Opening;
    RespondErrors = [MalformedToolCallId] + Answering;
    TerminateErrors = [Invalid, NoActiveSession, SessionQuarantined] + LiveAgent + Session;
}

/// Sessions in a list unless others are asked for, and at most.
const LIST: (usize, usize) = (50, 200);
/// Session types of the old system.
const TYPES: [&str; 6] = [
    "thought",
    "learning",
    "validation",
    "survey",
    "workflow",
    "approval",
];

/// A new session.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(super) struct CreateSessionRequest {
    /// `thought`, `learning`, `validation`, `survey`, `workflow` or `approval`.
    session_type: String,
    /// A system prompt of the session's own.
    system_prompt: Option<String>,
    /// The configuration that it is opened with. Its `time_limit_seconds` is the session's time
    /// limit.
    #[schema(value_type = Option<Object>)]
    config: Option<Map<String, Value>>,
    /// The model that its turns use.
    model_id: Option<String>,
}

/// A session has begun.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct CreateSessionResponse {
    /// The session.
    session_id: SessionId,
    /// Its conversation.
    conversation_id: ConversationId,
    /// Its status.
    status: SessionPhase,
    /// Its driver.
    control_mode: ControlMode,
    /// Its event stream.
    stream_url: String,
}

/// Starts a session with your agent for its type. Use `POST /api/agents/{id}/sessions` instead.
#[utoipa::path(
    post, path = "/api/session", tag = "deprecated",
    operation_id = "createLegacySession",
    security(("token" = ["write"])),
    request_body = CreateSessionRequest,
    responses((status = 200, description = "It has begun.", body = CreateSessionResponse)),
)]
pub(super) async fn create(
    State(api): State<Api>,
    caller: Caller,
    Json(new): Json<CreateSessionRequest>,
) -> Result<axum::Json<CreateSessionResponse>, Refused<CreateErrors>> {
    if !TYPES.contains(&new.session_type.as_str()) {
        let detail = format!("Invalid session_type. Must be one of: {}", TYPES.join(", "));
        return Err(Problem::new(ErrorCode::InvalidSessionType, detail).into());
    }
    let broker = api.command()?;
    let catalogue = broker.catalogue();
    let definition = catalogue.leading(&new.session_type).ok_or_else(|| {
        let detail = format!(
            "no agent of this host leads `{}` sessions",
            new.session_type
        );
        Problem::new(ErrorCode::InvalidSessionType, detail)
    })?;
    let mut config = new.config.unwrap_or_default();
    if let Some(prompt) = new.system_prompt {
        config.insert("system_prompt".to_owned(), prompt.into());
    }
    let time_limit_s = time_limit_s(config.get("time_limit_seconds"))?;
    let share = api.quotas().session(&caller, api.limits())?;
    let command = NewSession {
        session_type: Some(new.session_type),
        model: new.model_id,
        config: Some(config),
        time_limit_s,
        ..NewSession::of(Target::Definition(definition.agent_id.clone()), caller.user)
    };
    let view = broker.sessions().open(command).await.map_err(|error| {
        Problem::from(error)
            .moved("/model", RequestPart::Body("/model_id"))
            .moved(
                "/time_limit_s",
                RequestPart::Body("/config/time_limit_seconds"),
            )
    })?;
    share.keep();
    let session = legacy_session(&view, &[]);
    Ok(axum::Json(CreateSessionResponse {
        stream_url: format!("/api/session/{}/stream", session.id),
        session_id: session.id,
        conversation_id: session.conversation_id,
        status: session.status,
        control_mode: session.control_mode,
    }))
}

/// The time limit that a config names; 0 and `null` are none.
fn time_limit_s(named: Option<&Value>) -> Result<Option<u32>, Problem> {
    match named {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value
            .as_u64()
            .and_then(|seconds| u32::try_from(seconds).ok())
        {
            Some(0) => Ok(None),
            Some(seconds) if seconds <= SESSION_TIME_LIMIT_S_MAX => Ok(Some(seconds)),
            _ => {
                let detail = format!(
                    "`time_limit_seconds` is a whole number of seconds from 0 (none) to \
                             {SESSION_TIME_LIMIT_S_MAX}"
                );
                Err(Problem::invalid_field("/config/time_limit_seconds", detail))
            }
        },
    }
}

/// Query that selects sessions.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only those that have not ended.
    #[serde(default)]
    active_only: bool,
    /// Only of this type.
    session_type: Option<String>,
    /// Maximum number of results, from 1 to 200; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// Lists your sessions, the latest first. Use `GET /api/agents/{id}/sessions` instead.
#[utoipa::path(
    get, path = "/api/session", tag = "deprecated",
    operation_id = "listLegacySessions",
    security(("token" = ["read"])),
    params(ListParams),
    responses((status = 200, description = "The sessions.", body = Vec<LegacySummary>)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<axum::Json<Vec<LegacySummary>>, Problem> {
    let limit = crate::input::limit(params.limit, LIST.0, LIST.1)?;
    let filter = UserSessionFilter {
        session_type: params.session_type,
        open: params.active_only,
        conversation: None,
    };
    let sessions = api
        .broker()?
        .sessions()
        .of_user(&caller.user, filter, limit)
        .await?;
    Ok(axum::Json(sessions.iter().map(legacy_summary).collect()))
}

/// Looks at a session. Use `GET /api/agents/{id}/sessions/{sid}` instead.
#[utoipa::path(
    get, path = "/api/session/{sid}", tag = "deprecated",
    operation_id = "getLegacySession",
    security(("token" = ["read"])),
    params(("sid" = SessionId, Path, description = "UUID of the session.")),
    responses((status = 200, description = "The session.", body = LegacySession)),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    InPath(sid): InPath<String>,
) -> Result<axum::Json<LegacySession>, Refused<codes::Session>> {
    let (agent, session) = found(&api, &sid).await?;
    Ok(axum::Json(shown(&api, &caller, agent, session).await?))
}

/// Shows what a client needs to restore a session's page. Use `GET /api/agents/{id}/sessions/{sid}`
/// instead.
#[utoipa::path(
    get, path = "/api/session/{sid}/state", tag = "deprecated",
    operation_id = "getLegacySessionState",
    security(("token" = ["read"])),
    params(("sid" = SessionId, Path, description = "UUID of the session.")),
    responses((status = 200, description = "The session's state.", body = LegacyState)),
)]
pub(super) async fn state(
    State(api): State<Api>,
    caller: Caller,
    InPath(sid): InPath<String>,
) -> Result<axum::Json<LegacyState>, Refused<codes::Session>> {
    let (agent, session) = found(&api, &sid).await?;
    Ok(axum::Json(legacy_state(
        shown(&api, &caller, agent, session).await?,
    )))
}

/// An answer.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(super) struct SubmitResponseRequest {
    /// The `tool_call_id` of the pending action.
    #[schema(value_type = OperationId)]
    tool_call_id: String,
    /// The answer.
    #[schema(value_type = Object)]
    response: Value,
}

/// Answers the pending action. Use `POST /api/agents/{id}/respond` instead.
#[utoipa::path(
    post, path = "/api/session/{sid}/respond", tag = "deprecated",
    operation_id = "answerLegacySession",
    security(("token" = ["write"])),
    params(("sid" = SessionId, Path, description = "UUID of the session.")),
    request_body = SubmitResponseRequest,
    responses((status = 200, description = "The session.", body = LegacySession)),
)]
pub(super) async fn respond(
    State(api): State<Api>,
    caller: Caller,
    InPath(sid): InPath<String>,
    Json(answer): Json<SubmitResponseRequest>,
) -> Result<axum::Json<LegacySession>, Refused<RespondErrors>> {
    let (agent, session) = found(&api, &sid).await?;
    // First, so that nobody answers in another session than the one they name, or in one that they
    // do not see.
    shown(&api, &caller, agent, session).await?;
    let invalid = |error: NotAnId| Problem::new(ErrorCode::MalformedToolCallId, error.to_string());
    let call: OperationId = answer.tool_call_id.parse().map_err(invalid)?;
    let command = Respond {
        target: Target::Agent(agent),
        call,
        session: Some(session),
        response: answer.response,
        user: caller.user.clone(),
        idempotency_key: None,
    };
    api.command()?.runs().respond(command).await?;
    Ok(axum::Json(shown(&api, &caller, agent, session).await?))
}

/// The reason why a session is ended.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
pub(super) struct TerminateSessionRequest {
    /// The reason, for the record; `User terminated` by default.
    reason: Option<String>,
}

/// Ends a session. Use `DELETE /api/agents/{id}/sessions/current` instead.
#[utoipa::path(
    delete, path = "/api/session/{sid}", tag = "deprecated",
    operation_id = "terminateLegacySession",
    security(("token" = ["write"])),
    params(("sid" = SessionId, Path, description = "UUID of the session.")),
    request_body = Option<TerminateSessionRequest>,
    responses((status = 200, description = "The session.", body = LegacySession)),
)]
pub(super) async fn terminate(
    State(api): State<Api>,
    caller: Caller,
    InPath(sid): InPath<String>,
    OptionalJson(request): OptionalJson<TerminateSessionRequest>,
) -> Result<axum::Json<LegacySession>, Refused<TerminateErrors>> {
    let (agent, session) = found(&api, &sid).await?;
    let before = view(&api, &caller, agent, session).await?;
    if before.active.is_none() {
        return Err(Problem::new(
            ErrorCode::NoActiveSession,
            "Cannot terminate: the session has ended already",
        )
        .into());
    }
    api.command()?
        .sessions()
        .terminate(&caller.user, &Target::Agent(agent), session, request.reason)
        .await?;
    Ok(axum::Json(shown(&api, &caller, agent, session).await?))
}

/// Follows a session. Use `GET /api/agents/{id}/stream` instead, which has the same frames.
#[utoipa::path(
    get, path = "/api/session/{sid}/stream", tag = "deprecated",
    operation_id = "followLegacySession",
    security(("token" = ["read"])),
    params(("sid" = SessionId, Path, description = "UUID of the session.")),
    responses(
        (
            status = 200,
            description = "The stream.",
            body = String,
            content_type = "text/event-stream",
        ),
    ),
)]
pub(super) async fn follow(
    State(api): State<Api>,
    caller: Caller,
    InPath(sid): InPath<String>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Result<Response, Refused<codes::ResumedStreams>> {
    let (agent, session) = found(&api, &sid).await?;
    view(&api, &caller, agent, session).await?;
    let request = StreamRequest {
        target: Target::Agent(agent),
        params: StreamParams::for_session(session),
        caller,
        connected,
        headers,
    };
    Ok(stream::begin(&api, request).await?)
}

async fn found(api: &Api, sid: &str) -> Result<(AgentId, SessionId), Problem> {
    let session: SessionId = read_path("sid", sid)?;
    let agent = api.broker()?.sessions().agent_of(session).await?;
    let agent = agent.ok_or_else(|| not_found(session))?;
    Ok((agent, session))
}

fn not_found(session: SessionId) -> Problem {
    Problem::new(
        ErrorCode::SessionNotFound,
        format!("Session {session} not found"),
    )
}

async fn view(
    api: &Api,
    caller: &Caller,
    agent: AgentId,
    session: SessionId,
) -> Result<SessionView, Problem> {
    let found = caller
        .reading(api)?
        .sessions()
        .get(&caller.user, &Target::Agent(agent), session, Some((1, 0)))
        .await;
    found.map_err(|error| match error {
        // Of somebody else's agent nobody learns that it has this session.
        broker::Error::Refused(refusal) if refusal.kind() == ErrorKind::NotFound => {
            not_found(session)
        }
        error => error.into(),
    })
}

async fn shown(
    api: &Api,
    caller: &Caller,
    agent: AgentId,
    session: SessionId,
) -> Result<LegacySession, Problem> {
    let view = view(api, caller, agent, session).await?;
    // The old format has no pages.
    let mut items = Vec::new();
    loop {
        let page = caller
            .reading(api)?
            .sessions()
            .items(
                &caller.user,
                &Target::Agent(agent),
                session,
                items.len() as u64,
                LIST.1,
            )
            .await?;
        let is_last = page.len() < LIST.1;
        items.extend(page);
        if is_last {
            return Ok(legacy_session(&view, &items));
        }
    }
}
