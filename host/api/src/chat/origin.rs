//! The web pages that may use a chat: those of the origins that the operator lists for it.
//!
//! Programs that are no browsers send no origin and are let through: what protects a visitor is
//! their token, and no cookie goes with any request.

use super::visitor::chat_named;
use crate::problem::Problem;
use crate::state::Api;
use axum::RequestExt;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::error_code::ErrorCode;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

/// The headers that a page may send.
const HEADERS: &str = "authorization, content-type, last-event-id";
/// The methods that a page may use.
const METHODS: &str = "GET, POST";
/// Seconds for which a browser may remember what a page may do.
const MAX_AGE_S: &str = "600";

/// Answers a request to a chat as far as the page that sends it may use the chat, and tells the
/// browser so.
///
/// While the host starts, nobody knows which pages may. Any page is told then that it starts, so
/// that it comes again: each request is looked at when it comes, whatever a browser was told.
pub(crate) async fn cross_origin(
    State(api): State<Api>,
    mut request: Request,
    next: Next,
) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let is_asked_beforehand = request.method() == Method::OPTIONS;
    let response = match admitted(&api, &mut request).await {
        Ok(()) => next.run(request).await,
        Err(_) if api.edge().is_err() && is_asked_beforehand => next.run(request).await,
        Err(problem) if api.edge().is_err() => problem.into_response(),
        Err(problem) => return varied(problem.into_response()),
    };
    let mut response = varied(response);
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static("retry-after");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}

/// Answers a browser that asks beforehand what a page may send.
pub(crate) async fn preflight() -> (StatusCode, HeaderMap) {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (ACCESS_CONTROL_MAX_AGE, MAX_AGE_S),
    ];
    let headers = headers
        .into_iter()
        .map(|(name, value)| (name, HeaderValue::from_static(value)));
    (StatusCode::NO_CONTENT, headers.collect())
}

/// Checks that the page that sends a request may, if a page does.
async fn admitted(api: &Api, request: &mut Request) -> Result<(), Problem> {
    let Some(origin) = request.headers().get(ORIGIN).cloned() else {
        return Ok(());
    };
    let params = request.extract_parts::<RawPathParams>().await;
    let named = params.ok().and_then(|params| {
        let mut params = params.iter().filter(|(name, _)| *name == "connector");
        params.next().map(|(_, value)| value.to_owned())
    });
    let chat = chat_named(api, &named.unwrap_or_default())?;
    let shown = origin.to_str().unwrap_or_default();
    if chat.spec.admits(shown) {
        return Ok(());
    }
    let shown: String = shown.chars().take(256).collect();
    let detail = format!(
        "pages from `{shown}` may not use this chat; the operator lists the origins that may"
    );
    Err(Problem::new(ErrorCode::OriginNotAllowed, detail))
}

/// Says that the answer depends on the origin, so that no cache gives one page another's.
fn varied(mut response: Response) -> Response {
    let origin = HeaderValue::from_static("origin");
    response.headers_mut().append(VARY, origin);
    response
}
