//! Webhooks: calls from outside that make triggers speak.
//!
//! They need no credential of this host; the trigger says how a call proves itself. Whoever cannot
//! prove it learns nothing: a name that is no webhook is answered as a wrong signature is.

use super::files::FileContent;
use crate::codes::{self, Refused};
use crate::input::{InPath, announced_bytes, read_at_most};
use crate::problem::Problem;
use crate::routing::routes;
use crate::state::Api;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::error_code::ErrorCode;
use domain::id::TriggerEventId;
use domain::trigger::{PAYLOAD_BYTES_MAX, WebhookAnswer};
use edge::{HookAnswer, HookCall, HookForm};
use http::request::Parts;
use http::{HeaderMap, StatusCode, Uri};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;

/// The webhook whose callers bring a text for an agent.
const WAKE: &str = "wake";
/// The webhook whose callers bring a message for an agent of their choice.
const AGENT: &str = "agent";

/// The routes.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(call))
        .routes(routes!(call_path))
}

/// A call that was taken. It is durable: it will be dealt with even if the host fails.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct HookTaken {
    /// The trigger event that it is.
    trigger_event_id: TriggerEventId,
    /// True if a call with the same call id was taken within seven days. Nothing has happened
    /// again.
    replayed: bool,
}

/// Calls a webhook.
///
/// It needs no credential of this host: the trigger of this name says how a call proves itself, by
/// a token or by a signature of the body as it was sent. A call is answered once it is stored, and
/// is not answered by the agent. CloudEvents are taken in both modes.
///
/// `/hooks/wake` takes `{"text": …}`, and `/hooks/agent` `{"message": …, "agentId": …}`, where the
/// operator has switched them on.
#[utoipa::path(
    post, path = "/hooks/{name}", tag = "triggers",
    operation_id = "sendHook",
    security(()),
    params(("name" = String, Path, description = "The trigger.")),
    request_body(
        content = inline(FileContent),
        content_type = "application/octet-stream",
        description = "The payload, of any media type, 1 MiB at most: JSON, a form or a text.",
    ),
    responses(
        (status = 200, description = "It was taken, now or before.", body = HookTaken),
        (status = 202, description = "It is taken.", body = HookTaken),
    ),
)]
async fn call(
    State(api): State<Api>,
    InPath(name): InPath<String>,
    request: Request,
) -> Result<Response, Refused<codes::Call>> {
    Ok(taken(&api, &name, String::new(), request).await?)
}

/// Calls a webhook, with a path of the sender's own behind its name.
///
/// As `sendHook`; the trigger is told the rest of the path.
#[utoipa::path(
    post, path = "/hooks/{name}/{*rest}", tag = "triggers",
    operation_id = "sendHookAt",
    security(()),
    params(
        ("name" = String, Path, description = "The trigger."),
        ("rest" = String, Path, description = "The rest of the path."),
    ),
    request_body(
        content = inline(FileContent),
        content_type = "application/octet-stream",
        description = "The payload, of any media type, 1 MiB at most: JSON, a form or a text.",
    ),
    responses(
        (status = 200, description = "It was taken, now or before.", body = HookTaken),
        (status = 202, description = "It is taken.", body = HookTaken),
    ),
)]
async fn call_path(
    State(api): State<Api>,
    InPath((name, rest)): InPath<(String, String)>,
    request: Request,
) -> Result<Response, Refused<codes::Call>> {
    Ok(taken(&api, &name, rest, request).await?)
}

/// Hands a call to its trigger, which stores it before this returns.
async fn taken(api: &Api, name: &str, path: String, request: Request) -> Result<Response, Problem> {
    let edge = api.commanded_edge()?;
    let OutsideCall {
        headers,
        query,
        body,
    } = outside_call(api, request, PAYLOAD_BYTES_MAX).await?;
    let form = match name {
        WAKE => HookForm::Wake,
        AGENT => HookForm::Agent,
        _ => HookForm::Any,
    };
    let call = HookCall {
        path,
        headers,
        query,
        body,
        form,
    };
    let (trigger_event, answer) = match edge.triggers().hook(name, call).await? {
        HookAnswer::Accepted {
            trigger_event,
            answer,
        } => (trigger_event, Some(answer)),
        HookAnswer::Before { trigger_event } => (trigger_event, None),
        HookAnswer::Unverified => return Err(unverified()),
        HookAnswer::Malformed { detail } => return Err(malformed(detail)),
        HookAnswer::TooLarge { bytes_max } => return Err(too_large(bytes_max)),
        HookAnswer::Crowded { retry_after_ms } => return Err(crowded(retry_after_ms)),
    };
    let status = match answer {
        Some(WebhookAnswer::Accepted) => StatusCode::ACCEPTED,
        Some(WebhookAnswer::Now) | None => StatusCode::OK,
    };
    let taken = HookTaken {
        trigger_event_id: trigger_event,
        replayed: answer.is_none(),
    };
    Ok((status, axum::Json(taken)).into_response())
}

/// A call from outside, with its body as it was sent: signatures are of its bytes.
#[derive(Debug)]
pub(super) struct OutsideCall {
    /// Its headers, names in lower case. Those that are no text are left out.
    pub(super) headers: Vec<(String, String)>,
    /// Its query, decoded.
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Bytes,
}

/// Reads a call from outside. A body that says it is too large is refused before a byte of it is
/// read, whoever sends it.
pub(super) async fn outside_call(
    api: &Api,
    request: Request,
    bytes_max: usize,
) -> Result<OutsideCall, Problem> {
    let (parts, body) = request.into_parts();
    let Parts { headers, uri, .. } = parts;
    let _permit = api.call_permit(announced_bytes(&headers))?;
    let query = query_of(&uri)?;
    let body = read_at_most(bytes_max, &headers, body, || too_large(bytes_max as u64)).await?;
    Ok(OutsideCall {
        headers: texts_of(&headers),
        query,
        body,
    })
}

fn texts_of(headers: &HeaderMap) -> Vec<(String, String)> {
    let texts = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?)));
    texts
        .map(|(name, value)| (name, value.to_owned()))
        .collect()
}

fn query_of(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    let Query(query) = Query::try_from_uri(uri)
        .map_err(|_| malformed("the query is no list of names and values"))?;
    Ok(query)
}

/// The answer to everybody who cannot prove a call, in one form whatever the reason.
pub(super) fn unverified() -> Problem {
    Problem::new(
        ErrorCode::CallUnverified,
        "there is no such webhook, or the call does not prove that it may use it",
    )
}

pub(super) fn malformed(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::CallMalformed, detail)
}

pub(super) fn too_large(bytes_max: u64) -> Problem {
    let detail = format!("the request's body is larger than {bytes_max} bytes");
    Problem::new(ErrorCode::BodyTooLarge, detail)
}

pub(super) fn crowded(retry_after_ms: u64) -> Problem {
    let detail = "too many calls wait to be dealt with; try again later";
    Problem::new(ErrorCode::TooManyCalls, detail).retry_after(seconds(retry_after_ms))
}

pub(super) fn unavailable(retry_after_ms: u64) -> Problem {
    let detail = "the call cannot be dealt with at this moment; send it again";
    Problem::new(ErrorCode::CallNotTaken, detail).retry_after(seconds(retry_after_ms))
}

fn seconds(ms: u64) -> u64 {
    ms.div_ceil(1_000).max(1)
}
