//! What the description of the API says besides its routes.

pub(crate) mod widgets;

use crate::problem::{Details, MEDIA_TYPE};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, Deprecated, Ref, RefOr, Response};
use utoipa::{Modify, OpenApi};

/// The beginning of every path that is deprecated.
const DEPRECATED: &str = "/api/session/";

/// The description without routes: those bring themselves.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "agent-host",
        description = "Durable conversations with sandboxed agents.\n\nNames are snake_case, times ISO 8601 in UTC. `{id}` of an agent is its UUID \
            or its path with `/` written as `%2F`; where a session is begun it may be the id of a definition, whose agent is then created \
            if it is not there yet. Every error is a problem (RFC 9457) with a stable `code`. Its `field` says what of the request is at \
            fault: a JSON pointer into the body, such as `/content/0/text`, `body` for a body that is not JSON, or `header:`, `query:` or `path:` and the name, such as \
            `header:Idempotency-Key`, `query:limit` and `path:sid`.",
    ),
    components(schemas(Details)),
    security(("token" = [])),
    modifiers(&Bearer)
)]
pub(crate) struct Document;

/// Adds the bearer token, and to every operation the problem that it may answer.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The token of this host (`agent-host token show` prints it), an API key (`POST /api/keys`), or a token of an issuer that the host trusts."))
            .build();
        let components = document.components.get_or_insert_default();
        components.security_schemes.insert("token".to_owned(), RefOr::T(SecurityScheme::Http(scheme)));
    }
}

/// Says of every operation that it may answer with a problem.
pub(crate) fn add_problems(document: &mut utoipa::openapi::OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            if path.starts_with(DEPRECATED) {
                operation.deprecated = Some(Deprecated::True);
            }
            let mut response = Response::new("A problem: see its `code`.");
            let content = Content::new(Some(RefOr::Ref(Ref::from_schema_name("Problem"))));
            response.content.insert(MEDIA_TYPE.to_owned(), RefOr::T(content));
            operation.responses.responses.insert("default".to_owned(), RefOr::T(response));
        }
    }
}
