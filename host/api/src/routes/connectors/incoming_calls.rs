//! Calls of messaging services, which prove themselves as the operator says.

use crate::codes::{Refused, error_codes};
use crate::input::InPath;
use crate::problem::Problem;
use crate::routes::files::FileContent;
use crate::routes::hooks::{
    OutsideCall, crowded, malformed, outside_call, too_large, unavailable, unverified,
};
use crate::state::Api;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use domain::connector::{CALL_BYTES_MAX, CallMethod};
use domain::path::ConnectorName;
use edge::{ReceivedCall, ServiceAnswer};
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

error_codes! {
    ShakeHandsErrors = [CallNotTaken] + Call;
}

/// Takes the handshake of a service that is about to call.
///
/// It needs no credential of this host: the service brings the secret that the operator gave it,
/// and gets its challenge back.
#[utoipa::path(
    get, path = "/connectors/{connector}/webhook", tag = "connectors",
    operation_id = "checkConnectorWebhook",
    security(()),
    params(("connector" = String, Path, description = "The connector.")),
    responses(
        (
            status = 200,
            description = "The challenge.",
            body = String,
            content_type = "text/plain",
        ),
    ),
)]
pub(super) async fn shake_hands(
    State(api): State<Api>,
    InPath(name): InPath<String>,
    request: Request,
) -> Result<Response, Refused<ShakeHandsErrors>> {
    Ok(taken(&api, &name, CallMethod::Get, request).await?)
}

/// Takes a call of a service, with messages of people.
///
/// It needs no credential of this host: the call proves itself by a signature or a token, as the
/// operator says of the connector. It is answered once all that it brings is stored; the same call
/// again adds nothing.
#[utoipa::path(
    post, path = "/connectors/{connector}/webhook", tag = "connectors",
    operation_id = "sendConnectorWebhook",
    security(()),
    params(("connector" = String, Path, description = "The connector.")),
    request_body(
        content = inline(FileContent),
        content_type = "application/octet-stream",
        description = "What the service sends, of any media type, 3 MiB at most.",
    ),
    responses(
        (
            status = 200,
            description = "It was taken: the answer that the service wants, which may be empty.",
            body = String,
            content_type = "text/plain",
        ),
    ),
)]
pub(super) async fn call(
    State(api): State<Api>,
    InPath(name): InPath<String>,
    request: Request,
) -> Result<Response, Refused<ShakeHandsErrors>> {
    Ok(taken(&api, &name, CallMethod::Post, request).await?)
}

/// Hands a call to its connector, which stores what it brings before this returns.
async fn taken(
    api: &Api,
    name: &str,
    method: CallMethod,
    request: Request,
) -> Result<Response, Problem> {
    let edge = api.commanded_edge()?;
    let OutsideCall {
        headers,
        query,
        body,
    } = outside_call(api, request, CALL_BYTES_MAX).await?;
    // What is no name is the name of no connector.
    let name: ConnectorName = name.parse().map_err(|_| unverified())?;
    let call = ReceivedCall {
        method,
        headers,
        query,
        body: body.to_vec(),
    };
    match edge.connectors().webhook(&name, call).await? {
        ServiceAnswer::Answer { body } => {
            let headers = [
                (CONTENT_TYPE, "text/plain; charset=utf-8"),
                // What a stranger may have written is no page of this host.
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            Ok((headers, body.unwrap_or_default()).into_response())
        }
        ServiceAnswer::Unverified => Err(unverified()),
        ServiceAnswer::Malformed { detail } => Err(malformed(detail)),
        ServiceAnswer::TooLarge { bytes_max } => Err(too_large(bytes_max as u64)),
        ServiceAnswer::Crowded { retry_after_ms } => Err(crowded(retry_after_ms)),
        ServiceAnswer::Unavailable { retry_after_ms } => Err(unavailable(retry_after_ms)),
    }
}
