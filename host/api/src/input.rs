//! What a request brings: strict bodies, queries and ids, and a problem that names the field for everything that is wrong with them.

use crate::problem::Problem;
use crate::server::{BODY_BYTES_MAX, Fault};
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use broker::Target;
use bytes::Bytes;
use domain::definition::DefinitionId;
use domain::id::{NotAnId, SessionId};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

/// A JSON body. Unknown fields are errors where the type says so.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

/// A JSON body that may be missing altogether.
#[derive(Debug)]
pub(crate) struct OptionalJson<T>(pub(crate) T);

/// A query string, strict in the same way.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        require_json(&parts.headers)?;
        parse(&read(&parts.headers, body).await?).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(&parts.headers, body).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        require_json(&parts.headers)?;
        parse(&bytes).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(Problem::bad_request("INVALID_QUERY", rejection.body_text())),
        }
    }
}

/// The agent that the path names.
#[derive(Debug)]
pub(crate) struct OfAgent(pub(crate) Target);

/// The agent and the session that the path names.
#[derive(Debug)]
pub(crate) struct OfSession(pub(crate) Target, pub(crate) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for OfAgent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(id) = Path::<String>::from_request_parts(parts, state).await.map_err(|r| invalid_path(&r.body_text()))?;
        existing(&id).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OfSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((id, session)) =
            Path::<(String, String)>::from_request_parts(parts, state).await.map_err(|r| invalid_path(&r.body_text()))?;
        Ok(Self(existing(&id)?, session.parse().map_err(|error: NotAnId| invalid_path(&error.to_string()))?))
    }
}

pub(crate) fn invalid_path(detail: &str) -> Problem {
    Problem::bad_request("INVALID_ID", detail)
}

/// A UUID, a path, or the id of a definition.
pub(crate) fn target(id: &str) -> Target {
    if let Ok(agent) = id.parse() {
        Target::Agent(agent)
    } else if id.starts_with('/') {
        Target::Path(id.to_owned())
    } else {
        Target::Definition(DefinitionId(id.to_owned()))
    }
}

/// A UUID or a path: only sessions are begun with a definition.
fn existing(id: &str) -> Result<Target, Problem> {
    match target(id) {
        Target::Definition(id) => {
            let detail = format!(
                "there is no agent `{id}`: give its UUID, or its path with `/` written as %2F. The id of a definition is taken only \
                 where a session is begun, by POST /api/agents/{{id}}/sessions"
            );
            Err(Problem::new(StatusCode::NOT_FOUND, "AGENT_NOT_FOUND", detail))
        }
        found @ (Target::Agent(_) | Target::Path(_)) => Ok(found),
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json")) {
        return Ok(());
    }
    let detail = match media_type {
        "" => "the body's content type is missing; send `content-type: application/json`".to_owned(),
        other => format!("the body's content type is `{other}`; send `content-type: application/json`"),
    };
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail))
}

async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("the request's body is larger than {BODY_BYTES_MAX} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", detail)
    };
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|value| value.parse::<u64>().ok());
    // Refused before a byte of it is read.
    if announced.is_some_and(|length| length > BODY_BYTES_MAX as u64) {
        return Err(too_large());
    }
    axum::body::to_bytes(body, BODY_BYTES_MAX).await.map_err(|error| match Fault::of(&error) {
        Fault::TooLarge => too_large(),
        Fault::Late => Problem::new(StatusCode::REQUEST_TIMEOUT, "BODY_TIMEOUT", "the request's body was not complete in time"),
        Fault::Broken => Problem::bad_request("BODY_BROKEN", "the request's body ended early or is encoded wrongly"),
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // Otherwise a list would be taken for an object without the names of its fields.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", "the body must be a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| rejected(&error))?;
    match json.end() {
        Ok(()) => Ok(value),
        Err(error) => Err(malformed(&error)),
    }
}

fn malformed(error: &serde_json::Error) -> Problem {
    Problem::bad_request("MALFORMED_JSON", format!("the body is not JSON: {error}"))
}

fn rejected(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    if !error.inner().is_data() {
        return malformed(error.inner());
    }
    let text = error.inner().to_string();
    // The place in the text of the body adds nothing to the field's name.
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    let (code, missing) = if text.starts_with("unknown field") {
        ("UNKNOWN_FIELD", None)
    } else if text.starts_with("missing field") {
        ("MISSING_FIELD", text.split('`').nth(1))
    } else {
        ("INVALID_FIELD", None)
    };
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, text);
    match pointer(error.path(), missing) {
        pointer if pointer.is_empty() => problem,
        pointer => problem.at(pointer),
    }
}

/// The JSON pointer of a path. The parser's path ends at the object that lacks a field; the field's name comes after that.
fn pointer(path: &serde_path_to_error::Path, missing: Option<&str>) -> String {
    let mut pointer = String::new();
    for segment in path.iter() {
        let name = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } | Segment::Enum { variant: key } => key.clone(),
            Segment::Unknown => continue,
        };
        pointer += &format!("/{}", escaped(&name));
    }
    missing.map(|name| format!("{pointer}/{}", escaped(name))).unwrap_or(pointer)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only parsed")]
    struct Outer {
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only parsed")]
    struct Inner {
        count: u32,
    }

    #[test]
    fn what_is_wrong_with_a_body_is_told_with_its_field() {
        for (body, status, code, field) in [
            (r#"{"inner":[{"count":1},{"cuont":2}]}"#, 422, "UNKNOWN_FIELD", Some("/inner/1/cuont")),
            (r#"{"inner":[{}]}"#, 422, "MISSING_FIELD", Some("/inner/0/count")),
            (r#"{"inner":[{"count":"x"}]}"#, 422, "INVALID_FIELD", Some("/inner/0/count")),
            (r#"{"inner":[],"in/ner":1}"#, 422, "UNKNOWN_FIELD", Some("/in~1ner")),
            ("[]", 422, "INVALID_FIELD", None),
            (r#"[[{"count":1}]]"#, 422, "INVALID_FIELD", None),
            (r#"{"inner":[}"#, 400, "MALFORMED_JSON", None),
            (r#"{"inner":[]} x"#, 400, "MALFORMED_JSON", None),
            ("", 400, "MALFORMED_JSON", None),
            ("\"\u{0}", 400, "MALFORMED_JSON", None),
        ] {
            let problem = parse::<Outer>(body.as_bytes()).unwrap_err();
            assert_eq!((problem.status.as_u16(), problem.code, problem.field.as_deref()), (status, code, field), "{body}: {problem:?}");
        }
        let deep = format!("{}0{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(parse::<serde_json::Value>(deep.as_bytes()).unwrap_err().code, "MALFORMED_JSON");
    }

    #[test]
    fn an_agent_is_named_by_uuid_or_path_and_a_definition_only_where_sessions_begin() {
        assert!(matches!(target("7b3c2a54-8a75-4c7b-9d7e-0d7f3c1d2e3f"), Target::Agent(_)));
        assert!(matches!(target("/local/agent/assistant"), Target::Path(_)));
        assert!(matches!(target("assistant"), Target::Definition(_)));
        assert_eq!(existing("assistant").unwrap_err().code, "AGENT_NOT_FOUND");
    }
}
