//! Problem details (RFC 9457), the only form of this API's errors.

use axum::response::{IntoResponse, Response};
use domain::error_code::{ErrorCategory, ErrorCode};
use domain::refusal::Refusal;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use store::ReadError;

/// The media type of a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";
/// Bytes of a detail, and of what names a field; what is longer is cut.
const TEXT_BYTES_MAX: usize = 4_096;

/// The reason why a request did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: ErrorCode,
    /// A description of this occurrence and how to fix it.
    pub(crate) detail: String,
    /// The part of the request that is at fault; see [`RequestPart`] for how it is written.
    pub(crate) field: Option<String>,
    retry_after_s: Option<u64>,
    /// Further facts by name, for programs. A list, because every result carries the room for it.
    details: Vec<(&'static str, Value)>,
}

/// The part of a request that is at fault. Codes and refusals of domain and broker write the same
/// forms, and `body` for a body as a whole that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestPart<'a> {
    /// A field of the body, as a JSON pointer: `/content/0/text`.
    Body(&'a str),
    /// A header: `header:Idempotency-Key`.
    Header(&'a str),
    /// A parameter of the query: `query:limit`.
    Query(&'a str),
    /// A parameter of the path: `path:sid`.
    Path(&'a str),
}

impl fmt::Display for RequestPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body(pointer) => f.write_str(pointer),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Path(name) => write!(f, "path:{name}"),
        }
    }
}

/// A problem on the wire.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Details {
    /// A URN that follows from `code`.
    #[serde(rename = "type")]
    #[schema(example = "urn:agent-host:problem:session-not-found")]
    kind: String,
    /// The kind of problem, in words; it depends on `code` alone.
    #[schema(example = "Session not found")]
    title: String,
    /// The HTTP status.
    #[schema(example = 404)]
    status: u16,
    /// A description of this occurrence and how to fix it. For people: it may change between
    /// versions.
    detail: String,
    /// A stable code. For programs.
    #[schema(example = "SESSION_NOT_FOUND")]
    code: &'static str,
    /// The part of the request that is at fault. It is a JSON pointer into the body
    /// (`/content/0/text`), `body` for a body that is not JSON, or `header:`, `query:` or `path:`
    /// and a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/content")]
    field: Option<String>,
    /// True if the same request may succeed later without a correction. It depends on `code`
    /// alone.
    #[schema(example = false)]
    retryable: bool,
    /// The stage at which it went wrong; none for codes without one. It depends on `code` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "MESSAGE_INVALID")]
    category: Option<&'static str>,
    /// Further facts, where there are any. `retry_after_s`: the seconds after which another try
    /// makes sense. `scopes`: the scopes of which the credential lacks all. `limit`: the key of the
    /// limit that is met, and `max`, its value.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Option<Object>)]
    details: Map<String, Value>,
}

impl Problem {
    /// A problem with what follows from its code.
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Refusal::new(code, detail).into()
    }

    /// A field of the body that is refused, 422, by its JSON pointer.
    pub(crate) fn invalid_field(pointer: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidField, detail).at(RequestPart::Body(pointer))
    }

    /// A field of the body that is missing, 422, by its JSON pointer.
    pub(crate) fn missing_field(pointer: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::MissingField, detail).at(RequestPart::Body(pointer))
    }

    /// A parameter of the query that is refused, 400.
    pub(crate) fn invalid_query(name: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidQuery, detail).at(RequestPart::Query(name))
    }

    /// A parameter of the path that is refused, 400.
    pub(crate) fn invalid_id(name: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidId, detail).at(RequestPart::Path(name))
    }

    /// The host is not ready yet, 503.
    pub(crate) fn starting() -> Self {
        let detail = "the host is starting; try again in a moment";
        Self::new(ErrorCode::Starting, detail)
    }

    /// The host is about to end, 503.
    pub(crate) fn shutting_down() -> Self {
        let detail = "the host is shutting down; try again when it is back";
        Self::new(ErrorCode::ShuttingDown, detail)
    }

    /// There is no room to record anything, 503.
    pub(crate) fn disk_full() -> Self {
        let detail = "the disk that holds the data directory is full, so nothing was recorded; \
                      free some space and try again";
        Self::new(ErrorCode::DiskFull, detail)
    }

    /// Reports with 503 that the store does not answer. Its error is only logged.
    pub(crate) fn unavailable() -> Self {
        let detail =
            "the event store is not available, so nothing was recorded; try again in a moment";
        Self::new(ErrorCode::StoreUnavailable, detail)
    }

    /// Reports with 503 that the store records nothing at this moment, as `/readyz` does.
    pub(crate) fn not_recording() -> Self {
        let detail = "the event store records nothing at this moment: its disk fails or does not \
                      answer, or another program has locked it";
        Self::new(ErrorCode::StoreUnavailable, detail)
    }

    /// Reports with 503 that the store cannot be read at this moment, as `/readyz` does.
    pub(crate) fn not_reading() -> Self {
        let detail =
            "the event store cannot be read at this moment: its disk fails or does not answer";
        Self::new(ErrorCode::StoreUnavailable, detail)
    }

    /// Reports with 503 that the host depends on services which it cannot use at present.
    pub(crate) fn dependency_down(services: &str) -> Self {
        let detail = format!("the host works, and cannot use: {services}");
        Self::new(ErrorCode::DependencyDown, detail)
    }

    /// Its HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        // The kinds of errors are statuses.
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The same, with what of the request is at fault.
    pub(crate) fn at(mut self, place: RequestPart<'_>) -> Self {
        self.field = Some(cut(place.to_string()));
        self
    }

    /// The same, where what is at fault is called otherwise in the request than where it was found.
    pub(crate) fn moved(self, from: &str, to: RequestPart<'_>) -> Self {
        if self.field.as_deref() == Some(from) {
            self.at(to)
        } else {
            self
        }
    }

    /// The same, with the seconds after which it makes sense to try again.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The same, with a further fact for programs.
    pub(crate) fn with(mut self, name: &'static str, fact: impl Into<Value>) -> Self {
        self.details.push((name, fact.into()));
        self
    }
}

/// Shortens a text. A detail repeats its input, which may be megabytes.
fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}

/// `SESSION_NOT_FOUND` as "Session not found".
fn title(code: &str) -> String {
    let words = code.to_ascii_lowercase().replace('_', " ");
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + chars.as_str()
    })
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self {
            code: refusal.code,
            detail: cut(refusal.message),
            field: refusal.field,
            retry_after_s: refusal.code.retry_after_s(),
            details: refusal.details,
        }
    }
}

impl From<broker::Error> for Problem {
    fn from(error: broker::Error) -> Self {
        match error {
            broker::Error::Refused(refusal) => refusal.into(),
            broker::Error::DiskFull => Self::disk_full(),
            broker::Error::Unavailable(source) => {
                tracing::warn!(
                    error = &*source as &dyn std::error::Error,
                    "the event store did not answer a request"
                );
                Self::unavailable()
            }
            broker::Error::ShuttingDown => Self::shutting_down(),
        }
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        broker::Error::from(error).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let Self {
            code,
            detail,
            field,
            retry_after_s,
            mut details,
        } = self;
        if let Some(seconds) = retry_after_s {
            details.push(("retry_after_s", seconds.into()));
        }
        let kind = format!(
            "urn:agent-host:problem:{}",
            code.as_str().to_ascii_lowercase().replace('_', "-")
        );
        let details = Details {
            kind,
            title: title(code.as_str()),
            status: status.as_u16(),
            detail,
            code: code.as_str(),
            field,
            retryable: code.is_retryable(),
            category: code.category().map(ErrorCategory::as_str),
            details: details
                .into_iter()
                .map(|(name, fact)| (name.to_owned(), fact))
                .collect(),
        };
        // A record of text and numbers always has a JSON form.
        let body = serde_json::to_string(&details).unwrap_or_default();
        let mut response = (status, [(CONTENT_TYPE, MEDIA_TYPE)], body).into_response();
        if let Some(seconds) = retry_after_s {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"agent-host\""),
            );
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_becomes_a_problem_of_its_code() {
        for (code, status, named, retry_after) in [
            (ErrorCode::AgentNotFound, 404, "Agent not found", None),
            (ErrorCode::PathForbidden, 403, "Path forbidden", None),
            (ErrorCode::NoActiveSession, 409, "No active session", None),
            (ErrorCode::Invalid, 422, "Invalid", None),
            (ErrorCode::MessageTooLarge, 413, "Message too large", None),
            (ErrorCode::AgentPurged, 410, "Agent purged", None),
            (ErrorCode::Busy, 429, "Busy", Some("1")),
            (
                ErrorCode::UserStorageLimit,
                429,
                "User storage limit",
                Some("3600"),
            ),
        ] {
            let problem = Problem::from(Refusal::new(code, "there is none").at("/session"));
            assert_eq!(problem.status(), status);
            assert_eq!(title(code.as_str()), named);
            assert_eq!(problem.field.as_deref(), Some("/session"));
            let response = problem.into_response();
            assert_eq!(response.headers()[CONTENT_TYPE], MEDIA_TYPE);
            let reported = response.headers().get(RETRY_AFTER);
            assert_eq!(
                reported.map(|seconds| seconds.to_str().unwrap()),
                retry_after
            );
        }
    }

    #[test]
    fn the_field_of_a_code_stands_in_its_problem() {
        let problem = Problem::new(ErrorCode::QueueFull, "it is");
        assert_eq!(problem.field.as_deref(), Some("/queue"));
    }
}
