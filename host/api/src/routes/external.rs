//! External agents: attach a program to a session, take its answers.

use super::files::FileContent;
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{InPath, Json, Params, RawBody, read_field, read_path, read_query};
use crate::problem::{Problem, RequestPart};
use crate::state::Api;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use broker::{AttachExternal, ExternalPost};
use domain::definition::DefinitionId;
use domain::error_code::{ErrorCode, ErrorKind};
use domain::external::{ExternalName, SIGNATURE_HEADER, TIME_HEADER};
use domain::id::{AgentId, SessionId};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

error_codes! {
    AttachErrors = [AgentNotExternal, SessionClosed, SessionTaken] + Opening + Session;
    AnswerErrors = [
        AnswerTooLarge, Invalid, NothingToAnswer, SessionQuarantined, SignatureInvalid,
        SignatureStale,
    ] + Recording + Open + Bytes;
}

/// The session of an external agent that a program is attached to.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "agent": "weather", "session": "weather-1" }))]
pub(super) struct NewExternalSession {
    /// The external agent: the id of its definition.
    agent: String,
    /// The name of the session: 1 to 128 of `A-Z`, `a-z`, `0-9`, `_` and `-`. A UUID names the
    /// session with that id.
    #[schema(min_length = 1, max_length = 128)]
    session: String,
}

/// A session that a program is attached to.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ExternalSession {
    /// The name of the session.
    session: String,
    /// The session's id.
    session_id: SessionId,
    /// The agent's id.
    agent_id: AgentId,
    /// True if the session was opened for this.
    created: bool,
}

/// Attaches a program to a session of its agent's.
///
/// The session is opened if it is not there. To attach again changes nothing. A session of another
/// agent, or of another user, is refused.
#[utoipa::path(
    post, path = "/external/sessions", tag = "external",
    operation_id = "createExternalSession",
    security(("token" = ["write"])),
    request_body = NewExternalSession,
    responses(
        (status = 200, description = "It was there.", body = ExternalSession),
        (status = 201, description = "It was opened.", body = ExternalSession),
    ),
)]
pub(super) async fn attach(
    State(api): State<Api>,
    caller: Caller,
    Json(new): Json<NewExternalSession>,
) -> Result<Response, Refused<AttachErrors>> {
    let name: ExternalName = read_field("/session", &new.session)?;
    let share = api.session_share(&caller, None).await?;
    let command = AttachExternal {
        definition: DefinitionId(new.agent),
        name,
        user: caller.user,
    };
    let attached = api.command()?.external_agents().attach(command).await?;
    let status = if attached.created {
        share.keep();
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let view = ExternalSession {
        session: new.session,
        session_id: attached.session,
        agent_id: attached.agent,
        created: attached.created,
    };
    Ok((status, axum::Json(view)).into_response())
}

/// The message that is answered.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Answered {
    /// The message, by its `messageId`. Without it, the one that has waited longest.
    message: Option<String>,
}

/// An answer that was taken.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ExternalAnswer {
    /// The position of its event.
    position: u64,
    /// True if the same answer was taken before. Nothing has happened again.
    replayed: bool,
}

/// Takes the answer of an external agent's program to a message that was posted to it.
///
/// The body is the text of the answer. It needs no credential, and is signed with the secret of the
/// session's agent instead: `X-Agent-Host-Signature` is `sha256=` and the HMAC with SHA-256, in
/// hexadecimal digits, over `host.`, the second in `X-Agent-Host-Time`, `.`, the session as in the
/// path, `.`, the `messageId` (empty without), `.` and the body. A signature is good for one answer
/// and five minutes. Each message is answered once; the same answer again is answered as before.
#[utoipa::path(
    post, path = "/external/sessions/{name}/messages", tag = "external",
    operation_id = "answerExternalMessage",
    security(()),
    params(
        ("name" = String, Path, description = "The session, by its name or its id."),
        Answered,
        (
            "X-Agent-Host-Time" = String, Header,
            description = "The second at which the request was signed, since 1970.",
        ),
        (
            "X-Agent-Host-Signature" = String, Header,
            description = "The signature: `sha256=` and 64 hexadecimal digits.",
        ),
    ),
    request_body(
        content = inline(FileContent),
        content_type = "application/octet-stream",
        description = "The text of the answer in UTF-8, of any media type.",
    ),
    responses((status = 200, description = "It was taken.", body = ExternalAnswer)),
)]
pub(super) async fn answer(
    State(api): State<Api>,
    InPath(name): InPath<String>,
    Params(answered): Params<Answered>,
    headers: HeaderMap,
    body: Result<RawBody, Problem>,
) -> Result<axum::Json<ExternalAnswer>, Refused<AnswerErrors>> {
    let name = read_path("name", &name)?;
    let message = read_query("message", answered.message.as_deref())?;
    let time_s = header(&headers, TIME_HEADER, "X-Agent-Host-Time")?;
    let time_s: u64 = time_s
        .parse()
        .map_err(|_| unsigned("X-Agent-Host-Time", "it is no number of seconds"))?;
    let signature = header(&headers, SIGNATURE_HEADER, "X-Agent-Host-Signature")?;
    let body = match body {
        Ok(RawBody(bytes)) => Some(bytes.to_vec()),
        Err(problem) if problem.code.kind() == ErrorKind::TooLarge => None,
        Err(problem) => return Err(problem.into()),
    };
    let post = ExternalPost {
        name,
        message,
        time_s,
        signature: signature.to_owned(),
        body,
    };
    let (position, replayed) = api.command()?.external_agents().answer(post).await?;
    Ok(axum::Json(ExternalAnswer { position, replayed }))
}

/// Returns a header that has to be there.
fn header<'a>(headers: &'a HeaderMap, name: &str, shown: &str) -> Result<&'a str, Problem> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.ok_or_else(|| unsigned(shown, "it is missing"))
}

fn unsigned(header: &str, why: &str) -> Problem {
    let detail = format!("`{header}`: {why}; requests of external agents are signed");
    Problem::new(ErrorCode::SignatureInvalid, detail).at(RequestPart::Header(header))
}
