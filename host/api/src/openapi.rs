//! The description of the API, without its routes.

pub(crate) mod free;
mod headers;
mod session_config;
mod sums;
mod widgets;

pub(crate) use headers::announce_deprecation;

use crate::codes::{self, Reads};
use crate::problem::{Details, MEDIA_TYPE};
use crate::stream::visitor::VisitorFrame;
use crate::wire::{CodedSchema, LogFrame, SessionFrame, telemetry_schemas};
use http::Method;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, Deprecated, Ref, RefOr, Response};
use utoipa::{Modify, OpenApi};

/// The name of the credential among the security schemes.
pub(crate) const TOKEN: &str = "token";
/// The name of a visitor's token among them. It opens one chat, and no account of this host.
pub(crate) const VISITOR: &str = "visitor";
/// The tag of the operations that are deprecated.
const DEPRECATED: &str = "deprecated";
/// The path of the stream of telemetry, which has frames of its own.
const TELEMETRY: &str = "/api/telemetry";
/// The path of the stream of a chat with a visitor, which has frames of its own.
const CHAT: &str = "/chat/{connector}/events";
/// The extension in which a route has the codes of its error, and a response those of its status.
pub(crate) const CODES: &str = "x-codes";
/// The media type of the operations that answer with an event stream.
const EVENT_STREAM: &str = "text/event-stream";
/// The operation that opens sessions.
const OPENING: &str = "/api/agents/{id}/sessions";

/// The description without routes: those bring themselves.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "agent-host",
        description = "Durable conversations with sandboxed agents.\n\nNames are snake_case, times \
                       ISO 8601 in UTC. `{id}` of an agent is its UUID \
            or its path with `/` written as `%2F`; where a session is begun it may be the id of a \
            definition, whose agent is then created \
            if it is not there yet. What takes an `Idempotency-Key` is done once for each key of a \
            user, for seven days; what takes none may be \
            repeated without harm, but for the deprecated operations, which are as they were. \
            Every error is a problem (RFC 9457) with a stable `code`; `x-codes` of a response \
            lists those that it \
            may have. Its `field` says what of the request is at fault: a JSON pointer into the \
            body, such as `/content/0/text`, `body` for a body that \
            is not JSON, or `header:`, `query:` or `path:` and the name, such as \
            `header:Idempotency-Key`, `query:limit` and `path:sid`.\n\nThe scopes that a \
            credential needs stand in `security`: of several entries one will do.\n\nFrames of \
            event streams are described in `x-events` \
            of their operation, by the view and the name of the frame; what sessions of the \
            built-in types are opened with in \
            `x-session-configs` of the operation that opens them.",
    ),
    servers((url = "/", description = "The host that serves this description.")),
    tags(
        (name = "agents", description = "Agents, their users, their preferences and their paths."),
        (
            name = "sessions",
            description = "Sessions of agents: messages, questions, files, threads, event streams.",
        ),
        (name = "external", description = "Agents that are programs elsewhere: their sessions and answers."),
        (
            name = "triggers",
            description = "What makes agents speak without being spoken to: times, webhooks, files.",
        ),
        (
            name = "connectors",
            description = "Messaging services: their state, what is sent, and who senders are.",
        ),
        (name = "chat", description = "Chats of web pages with visitors, who need no account."),
        (name = "tasks", description = "Work that agents handed to each other."),
        (name = "keys", description = "Your credential, API keys, and connector keys of users."),
        (
            name = "operator",
            description = "The host as its operator sees it: events, ledger, store, clock.",
        ),
        (name = "models", description = "Models and their providers: what there is, and whether it answers."),
        (name = "usage", description = "Tokens, calls, cost and time by session, agent, user, day, model."),
        (name = "probes", description = "Health checks and this description; no credential."),
        (
            name = "deprecated",
            description = "The API of the system that this one replaces, and the import from it.",
        ),
    ),
    components(schemas(Details)),
    security(("token" = [])),
    modifiers(&Bearer)
)]
pub(crate) struct Document;

/// Adds the bearer tokens.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "The token of this host (`agent-host token show` prints it), an API key (`POST \
                 /api/keys`), or a token of an issuer that the host trusts.",
            ))
            .build();
        let visitor = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "The token of a visitor of a chat (`POST /chat/{connector}/visitors`).",
            ))
            .build();
        let components = document.components.get_or_insert_default();
        for (name, scheme) in [(TOKEN, scheme), (VISITOR, visitor)] {
            components
                .security_schemes
                .insert(name.to_owned(), RefOr::T(SecurityScheme::Http(scheme)));
        }
    }
}

/// Completes the description of the routes: the errors of each, and the parts described by code.
pub(crate) fn complete(document: &mut utoipa::openapi::OpenApi) {
    // The router's mark of a parameter that takes the rest of a path is no part of its name.
    document.paths.paths = std::mem::take(&mut document.paths.paths)
        .into_iter()
        .map(|(path, item)| (path.replace("{*", "{"), item))
        .collect();
    for (path, item) in &mut document.paths.paths {
        for (_, operation) in operations(item) {
            if is_deprecated(operation) {
                operation.deprecated = Some(Deprecated::True);
            }
            add_problems(operation, path);
            headers::add(operation);
        }
    }
    describe_streams(document);
    describe_configs(document);
}

/// Returns a description as JSON, with what no route and no type says: the widgets, the objects
/// that may have any fields, and names for the alternatives of sums.
pub(crate) fn to_json(document: &utoipa::openapi::OpenApi) -> Value {
    // The document is made of text, numbers and lists: it always has a JSON form.
    let mut description = serde_json::to_value(document).unwrap_or_default();
    widgets::add(&mut description);
    free::add(&mut description);
    sums::name_alternatives(&mut description);
    description
}

/// Returns whether an operation is deprecated, as its tag says.
pub(crate) fn is_deprecated(operation: &Operation) -> bool {
    let tags = operation.tags.as_deref().unwrap_or_default();
    tags.iter().any(|tag| tag == DEPRECATED)
}

/// Returns the operations of a path, by method.
pub(crate) fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all = [
        (Method::GET, &mut item.get),
        (Method::POST, &mut item.post),
        (Method::PUT, &mut item.put),
        (Method::PATCH, &mut item.patch),
        (Method::DELETE, &mut item.delete),
    ];
    all.into_iter()
        .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Adds the problems that an operation may answer with, by status.
fn add_problems(operation: &mut Operation, path: &str) {
    let common = codes::common(reads(operation, path)).into_iter();
    let mut all: BTreeSet<(u16, String)> = common
        .map(|code| (code.status(), code.to_string()))
        .collect();
    all.extend(declared_codes(operation));
    let mut by_status: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for (status, code) in all {
        by_status.entry(status).or_default().push(code);
    }
    for (status, codes) in by_status {
        let listed: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
        let mut response = problem(&format!("A problem: {}.", listed.join(", ")));
        response.extensions = Some([(CODES, json!(codes))].into_iter().collect());
        operation
            .responses
            .responses
            .insert(status.to_string(), RefOr::T(response));
    }
    // What comes before a route is found.
    let otherwise = "A problem: see its `code`. What the server refuses before it looks for a \
                     route, such as one connection too many.";
    operation
        .responses
        .responses
        .insert("default".to_owned(), RefOr::T(problem(otherwise)));
}

/// Returns whether an operation has a parameter in this place, of this name if one is given.
fn has_parameter(operation: &Operation, place: &ParameterIn, name: Option<&str>) -> bool {
    let is_it = |parameter: &RefOr<Parameter>| match parameter {
        RefOr::T(parameter) => {
            parameter.parameter_in == *place && name.is_none_or(|name| parameter.name == name)
        }
        RefOr::Ref(_) => false,
    };
    operation.parameters.iter().flatten().any(is_it)
}

/// Returns the parts of a request that an operation reads.
fn reads(operation: &Operation, path: &str) -> Reads {
    let open = [
        SecurityRequirement::default(),
        SecurityRequirement::new(VISITOR, [""; 0]),
    ];
    let is_open = operation
        .security
        .iter()
        .flatten()
        .any(|one| open.contains(one));
    Reads {
        credential: !is_open,
        body: matches!(
            &operation.request_body,
            Some(RefOr::T(body)) if body.content.contains_key("application/json")
        ),
        query: has_parameter(operation, &ParameterIn::Query, None),
        path: path.contains('{'),
        key: has_parameter(operation, &ParameterIn::Header, Some("Idempotency-Key")),
    }
}

/// Takes the codes of a handler's error out of its description.
fn declared_codes(operation: &mut Operation) -> Vec<(u16, String)> {
    let declared = operation
        .extensions
        .as_mut()
        .and_then(|extensions| extensions.remove(CODES));
    // Written by `crate::routing`: it always has this form.
    declared
        .and_then(|codes| serde_json::from_value(codes).ok())
        .unwrap_or_default()
}

fn problem(description: &str) -> Response {
    let mut response = Response::new(description);
    let content = Content::new(Some(RefOr::Ref(Ref::from_schema_name("Problem"))));
    response
        .content
        .insert(MEDIA_TYPE.to_owned(), RefOr::T(content));
    response
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(crate) fn extend(extensions: &mut Option<Extensions>, name: &str, value: Value) {
    extensions
        .get_or_insert_default()
        .merge([(name, value)].into_iter().collect());
}

/// Adds schemas to a description, and returns the references to them by key.
fn add_schemas(
    document: &mut utoipa::openapi::OpenApi,
    schemas: Vec<CodedSchema>,
) -> Map<String, Value> {
    let components = document.components.get_or_insert_default();
    let mut references = Map::new();
    for CodedSchema {
        key,
        name,
        schema,
        others,
    } in schemas
    {
        references.insert(key, reference(&name));
        components.schemas.extend(others);
        components.schemas.insert(name, schema);
    }
    references
}

/// Returns whether an operation answers with an event stream.
pub(crate) fn is_stream(operation: &Operation) -> bool {
    let answer = operation.responses.responses.get("200");
    matches!(answer, Some(RefOr::T(answer)) if answer.content.contains_key(EVENT_STREAM))
}

/// Describes the frames of event streams, by view and name.
fn describe_streams(document: &mut utoipa::openapi::OpenApi) {
    let session = add_schemas(document, CodedSchema::frames::<SessionFrame<'_>>(""));
    let mut log = add_schemas(document, CodedSchema::frames::<LogFrame<'_>>(""));
    log.insert("*".to_owned(), reference("Event"));
    let telemetry = add_schemas(document, telemetry_schemas());
    let chat = add_schemas(document, CodedSchema::frames::<VisitorFrame<'_>>("Visitor"));
    let paths = document.paths.paths.iter_mut();
    for (path, operation) in paths.filter_map(|(path, item)| Some((path, item.get.as_mut()?))) {
        if !is_stream(operation) {
            continue;
        }
        if path == TELEMETRY || path == CHAT {
            let own = if path == CHAT { &chat } else { &telemetry };
            extend(&mut operation.extensions, "x-events", json!(own));
            continue;
        }
        // A stream without a choice of views has one of them.
        let events = match has_parameter(operation, &ParameterIn::Query, Some("view")) {
            true => json!({ "session": session, "log": log }),
            false => json!({ "session": session }),
        };
        extend(&mut operation.extensions, "x-events", events);
    }
}

/// Describes the configurations with which sessions of the built-in types are opened, by type.
fn describe_configs(document: &mut utoipa::openapi::OpenApi) {
    let by_type = add_schemas(document, session_config::schemas());
    if let Some(operation) = document
        .paths
        .paths
        .get_mut(OPENING)
        .and_then(|item| item.post.as_mut())
    {
        extend(
            &mut operation.extensions,
            "x-session-configs",
            by_type.into(),
        );
    }
}
