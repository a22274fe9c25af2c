//! The input of a request: strict bodies, queries and ids. For each fault there is a problem that
//! names the field.

mod position;
mod strict;
#[cfg(test)]
mod tests;

use crate::caller::Caller;
use crate::problem::{Problem, RequestPart};
use crate::server::{BODY_BYTES_MAX, BodyFault};
use axum::body::Body;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use broker::{Broker, By, Target};
use bytes::Bytes;
use domain::definition::DefinitionId;
use domain::error_code::ErrorCode;
use domain::id::{AgentId, SessionId};
use domain::json::{self, DEPTH_MAX};
use domain::user::{Scope, UserId};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Uri};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;
use std::fmt::Display;
use std::str::FromStr;
use strict::Strict;

pub(crate) use position::{POSITION_MAX, Position};

/// The prefix that axum puts before the fault of a query.
const QUERY_REJECTED: &str = "Failed to deserialize query string: ";

/// A JSON body. Unknown fields are errors where the type declares so.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

/// A JSON body that may be missing altogether, or be `null`, as its description says.
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
        if bytes.trim_ascii() == b"null" {
            return Ok(Self(T::default()));
        }
        parse(&bytes).map(Self)
    }
}

/// Reads a JSON body of at most so many bytes, for a route that looks at its caller first.
pub(crate) async fn read_json<T: DeserializeOwned>(
    bytes_max: usize,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Problem> {
    require_json(headers)?;
    let too_large = || {
        let detail = format!("the request's body is larger than {bytes_max} bytes");
        Problem::new(ErrorCode::BodyTooLarge, detail)
    };
    parse(&read_at_most(bytes_max, headers, body, too_large).await?)
}

/// Returns the number of bytes that a request says its body has; none if it does not say.
pub(crate) fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    match headers.get(CONTENT_LENGTH) {
        Some(length) => length.to_str().ok()?.parse().ok(),
        None => (!headers.contains_key(TRANSFER_ENCODING)).then_some(0),
    }
}

/// A body of any content, whole.
#[derive(Debug)]
pub(crate) struct RawBody(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        read(&parts.headers, body).await.map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        query(&parts.uri).map(Self)
    }
}

fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let Query(params) = Query::try_from_uri(uri).map_err(|rejection| {
        let text = rejection.body_text();
        // `Failed to deserialize query string: limit: invalid digit found in string`, or with the
        // name in the words.
        let detail = in_words(text.strip_prefix(QUERY_REJECTED).unwrap_or(&text));
        let detail = detail.as_str();
        let named = detail
            .split_once(": ")
            .map(|(name, _)| name)
            .or_else(|| detail.split('`').nth(1));
        let problem = Problem::new(ErrorCode::InvalidQuery, detail);
        match named {
            Some(name) => problem.at(RequestPart::Query(name)),
            None => problem,
        }
    })?;
    Ok(params)
}

/// Returns a parser's message about a value of a query with what is expected in its place.
fn in_words(message: &str) -> String {
    let reported = [
        ("invalid digit found in string", "it must be a whole number"),
        (
            "cannot parse integer from empty string",
            "it is empty, and must be a whole number",
        ),
        (
            "number too large to fit in target type",
            "it is a larger number than any that is taken",
        ),
        (
            "number too small to fit in target type",
            "it is a smaller number than any that is taken",
        ),
        ("invalid float literal", "it must be a number"),
    ];
    let reported = reported
        .into_iter()
        .find_map(|(parser, words)| Some((message.strip_suffix(parser)?, words)));
    reported.map_or_else(
        || message.to_owned(),
        |(before, words)| format!("{before}{words}"),
    )
}

/// The header that makes a repeated request the same request.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The key of a request, if it has one.
#[derive(Debug)]
pub(crate) struct Idempotency(pub(crate) Option<String>);

/// The documentation of that header.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what `Idempotency` reads")]
pub(crate) struct IdempotencyKey {
    /// 1 to 255 bytes. The same key with the same request within seven days is the same request: it
    /// is done once, also when the host fails meanwhile, and answered again as it was. With another
    /// request it is refused. Each user has keys of their own.
    #[param(rename = "Idempotency-Key", min_length = 1, max_length = 255)]
    idempotency_key: Option<String>,
}

impl Idempotency {
    /// Returns the user together with this key.
    pub(crate) fn by<'a>(&'a self, user: &'a UserId) -> By<'a> {
        By {
            user,
            key: self.0.as_deref(),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Idempotency {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut keys = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let key = keys
            .next()
            .map(|value| value.to_str().map(str::to_owned))
            .transpose();
        if keys.next().is_some() {
            let detail = "there is more than one idempotency key; send one";
            return Err(Problem::new(ErrorCode::InvalidIdempotencyKey, detail));
        }
        key.map(Self).map_err(|_| {
            let detail = "the idempotency key must be visible ASCII characters";
            Problem::new(ErrorCode::InvalidIdempotencyKey, detail)
        })
    }
}

/// Query that gives the reason for a request.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reason {
    /// The reason, for the record.
    pub(crate) reason: Option<String>,
}

/// The parameters in the path.
#[derive(Debug)]
pub(crate) struct InPath<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for InPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(named) = Path::<T>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| broken_path(&rejection))?;
        Ok(Self(named))
    }
}

/// The documentation of the path of a session, which [`TargetSession`] reads.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes what the path of a session names")]
pub(crate) struct SessionInPath {
    /// UUID or path of the agent.
    id: String,
    /// UUID of the session.
    #[param(value_type = SessionId)]
    sid: String,
}

/// The agent that the path names.
#[derive(Debug)]
pub(crate) struct TargetAgent(pub(crate) Target);

/// The agent and the session that the path names.
#[derive(Debug)]
pub(crate) struct TargetSession(pub(crate) Target, pub(crate) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for TargetAgent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let InPath(id) = InPath::<String>::from_request_parts(parts, state).await?;
        existing(&id).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TargetSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let InPath((id, session)) =
            InPath::<(String, String)>::from_request_parts(parts, state).await?;
        Ok(Self(existing(&id)?, read_path("sid", &session)?))
    }
}

/// Reads a parameter of the path.
pub(crate) fn read_path<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Problem> {
    text.parse()
        .map_err(|error: T::Err| Problem::invalid_id(name, error.to_string()))
}

/// Reads a parameter of the query, when it is there.
pub(crate) fn read_query<T: FromStr<Err: Display>>(
    name: &str,
    text: Option<&str>,
) -> Result<Option<T>, Problem> {
    text.map(str::parse)
        .transpose()
        .map_err(|error: T::Err| Problem::invalid_query(name, error.to_string()))
}

/// Reads a field of the body, which its JSON pointer names.
pub(crate) fn read_field<T: FromStr<Err: Display>>(
    pointer: &str,
    text: &str,
) -> Result<T, Problem> {
    text.parse()
        .map_err(|error: T::Err| Problem::invalid_field(pointer, error.to_string()))
}

/// Distinguishes `null` from an absent field.
pub(crate) fn given<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Declares the query of a page of a list: its filters, and the place and the size of the page. A
/// page has `$without` items where the query does not say, and `$max` at most.
macro_rules! page_query {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident: String, $without:tt of $max:tt {
        $($filters:tt)*
    }) => {
        $crate::input::page_query!(@ $(#[$meta])* $visibility $name $without $max {
            /// The `next_after` of the page before.
            after: Option<String>,
            $($filters)*
        });
    };
    ($(#[$meta:meta])* $visibility:vis struct $name:ident: Position, $without:tt of $max:tt {
        $($filters:tt)*
    }) => {
        $crate::input::page_query!(@ $(#[$meta])* $visibility $name $without $max {
            /// The `next_after` of the page before; without it the page is the first.
            #[param(inline)]
            after: Option<$crate::input::Position>,
            $($filters)*
        });
    };
    (@ $(#[$meta:meta])* $visibility:vis $name:ident $without:tt $max:tt { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
        #[into_params(parameter_in = Query)]
        #[serde(deny_unknown_fields)]
        $visibility struct $name {
            /// Maximum number of results.
            #[param(minimum = 1, maximum = $max, default = $without)]
            limit: Option<usize>,
            $($fields)*
        }

        impl $name {
            fn limit(&self) -> Result<usize, $crate::problem::Problem> {
                $crate::input::limit(self.limit, $without, $max)
            }
        }
    };
}
pub(crate) use page_query;

/// Cuts a page of which one row more was read than it has. Returns where the next one begins, if
/// there is one.
pub(crate) fn next_after<R, T>(
    rows: &mut Vec<R>,
    limit: usize,
    place: impl FnOnce(&R) -> T,
) -> Option<T> {
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    rows.last().filter(|_| has_more).map(place)
}

/// Returns the requested number of items of a list, or `without` when the query names none.
pub(crate) fn limit(asked: Option<usize>, without: usize, max: usize) -> Result<usize, Problem> {
    match asked.unwrap_or(without) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        limit => {
            let detail = format!("limit: {limit} is out of its range: it must be from 1 to {max}");
            Err(Problem::invalid_query("limit", detail))
        }
    }
}

fn broken_path(rejection: &PathRejection) -> Problem {
    let problem = Problem::new(ErrorCode::InvalidId, rejection.body_text());
    match rejection {
        PathRejection::FailedToDeserializePathParams(error) => match error.kind() {
            ErrorKind::InvalidUtf8InPathParam { key } => problem.at(RequestPart::Path(key)),
            _ => problem,
        },
        _ => problem,
    }
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

/// Returns the problem of a request whose path names the definition: no field is to blame for it.
pub(crate) fn blameless(error: broker::Error) -> Problem {
    let mut problem = Problem::from(error);
    problem.field = problem
        .field
        .filter(|_| problem.code != ErrorCode::DefinitionNotFound);
    problem
}

/// A UUID or a path: only sessions are begun with a definition.
pub(crate) fn existing(id: &str) -> Result<Target, Problem> {
    match target(id) {
        Target::Definition(id) => {
            let detail = format!(
                "there is no agent `{id}`: give its UUID, or its path with `/` written as %2F. The \
                 id of a definition is taken only \
                 where a session is begun, by POST /api/agents/{{id}}/sessions"
            );
            Err(Problem::new(ErrorCode::AgentNotFound, detail))
        }
        found @ (Target::Agent(_) | Target::Path(_)) => Ok(found),
    }
}

/// Returns the agent that the parameter `agent` of a query names, by its UUID or its path.
///
/// By a path an administrator means any agent, others one of theirs.
pub(crate) async fn queried_agent(
    broker: &Broker,
    caller: &Caller,
    asked: Option<&str>,
) -> Result<Option<AgentId>, Problem> {
    let path = match asked {
        None => return Ok(None),
        Some(path) if path.starts_with('/') => path,
        Some(id) => return queried_agent_id(id).map(Some),
    };
    if !caller.scopes.contains(&Scope::Admin) {
        let target = Target::Path(path.to_owned());
        return Ok(Some(broker.agents().id(&caller.user, &target).await?));
    }
    match broker.agents().at(path).await? {
        Some(agent) => Ok(Some(agent)),
        None => {
            let detail = format!("there is no agent `{path}`");
            let problem = Problem::new(ErrorCode::AgentNotFound, detail);
            Err(problem.at(RequestPart::Query("agent")))
        }
    }
}

/// Reads the parameter `agent` of a query that is no path.
pub(crate) fn queried_agent_id(id: &str) -> Result<AgentId, Problem> {
    id.parse::<AgentId>().map_err(|_| {
        let detail = format!(
            "`{id}` is neither the UUID of an agent nor the path of one, which begins with `/`"
        );
        Problem::invalid_query("agent", detail)
    })
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
    {
        return Ok(());
    }
    let is = match media_type {
        "" => "missing".to_owned(),
        other => format!("`{other}`"),
    };
    let detail = format!("the body's content type is {is}; send `content-type: application/json`");
    Err(Problem::new(ErrorCode::UnsupportedMediaType, detail))
}

async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("the request's body is larger than {BODY_BYTES_MAX} bytes");
        Problem::new(ErrorCode::BodyTooLarge, detail)
    };
    read_at_most(BODY_BYTES_MAX, headers, body, too_large).await
}

/// A body of at most so many bytes.
pub(crate) async fn read_at_most(
    bytes_max: usize,
    headers: &HeaderMap,
    body: Body,
    too_large: impl Fn() -> Problem,
) -> Result<Bytes, Problem> {
    // Refused before a byte of it is read.
    if announced_bytes(headers).is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large());
    }
    axum::body::to_bytes(body, bytes_max)
        .await
        .map_err(|error| match BodyFault::from_error(&error) {
            BodyFault::TooLarge => too_large(),
            BodyFault::Late => Problem::new(
                ErrorCode::BodyTimeout,
                "the request's body did not arrive in time",
            ),
            BodyFault::Broken => Problem::new(
                ErrorCode::BodyBroken,
                "the request's body ended early or is encoded wrongly",
            ),
        })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if json::depth(bytes) > DEPTH_MAX {
        let detail =
            format!("the body is nested deeper than {DEPTH_MAX} levels of lists and objects");
        return Err(Problem::new(ErrorCode::NestedTooDeep, detail));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value =
        serde_path_to_error::deserialize(Strict(&mut json)).map_err(|error| rejected(&error))?;
    match json.end() {
        Ok(()) => Ok(value),
        Err(error) => Err(malformed(&error)),
    }
}

fn malformed(error: &serde_json::Error) -> Problem {
    Problem::new(
        ErrorCode::MalformedJson,
        format!("the body is not JSON: {error}"),
    )
}

fn rejected(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    if !error.inner().is_data() {
        return malformed(error.inner());
    }
    let text = error.inner().to_string();
    // The place in the text of the body adds nothing to the field's name.
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(text, _)| text);
    // What a type is called here is nothing to clients.
    let text = text.split_once(", expected struct ").map_or_else(
        || text.to_owned(),
        |(found, _)| format!("{found}, expected an object"),
    );
    let named = || text.split('`').nth(1);
    let (code, field) = if text.starts_with("unknown field") {
        (ErrorCode::UnknownField, None)
    } else if text.starts_with("missing field") {
        (ErrorCode::MissingField, named())
    } else if text.starts_with("duplicate field") {
        (ErrorCode::InvalidField, named())
    } else {
        (ErrorCode::InvalidField, None)
    };
    let problem = Problem::new(code, text.as_str());
    match pointer(error.path(), field) {
        pointer if pointer.is_empty() => problem,
        pointer => problem.at(RequestPart::Body(&pointer)),
    }
}

/// The JSON pointer of a path. The parser's path ends at the object that lacks a field or has it
/// twice; the field's name comes after that.
fn pointer(path: &serde_path_to_error::Path, field: Option<&str>) -> String {
    let mut pointer = String::new();
    for segment in path.iter() {
        let name = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } | Segment::Enum { variant: key } => key.clone(),
            Segment::Unknown => continue,
        };
        pointer += &format!("/{}", escaped(&name));
    }
    field
        .map(|name| format!("{pointer}/{}", escaped(name)))
        .unwrap_or(pointer)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
