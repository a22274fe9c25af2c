//! Headers of many responses: their description, and what a deprecated operation says in them.
//! Headers of a single operation are described with it.

use http::header::LINK;
use http::{HeaderMap, HeaderName, HeaderValue};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Deprecated, RefOr};

/// Headers of every response of a deprecated operation.
const DEPRECATED: [(&str, &str); 2] = [
    ("Deprecation", "The date of the deprecation (RFC 9745)."),
    (
        "Link",
        "The replacement (RFC 8288), as `successor-version`.",
    ),
];
/// Headers by status.
const BY_STATUS: [(&str, &str, &str); 3] = [
    (
        "401",
        "WWW-Authenticate",
        "The authentication scheme: `Bearer`.",
    ),
    ("429", "Retry-After", "Seconds after which to try again."),
    (
        "503",
        "Retry-After",
        "Seconds after which to try again; not with every code.",
    ),
];

/// The date of deprecation: 2025-12-15, the day of the design that replaced the API, as a
/// structured date (RFC 9651).
const DEPRECATION: &str = "@1765756800";
/// The replacement, as a `Link` header.
const SUCCESSOR: &str = "</openapi.json>; rel=\"successor-version\"";

/// Says in a response that its operation is deprecated.
pub(crate) fn announce_deprecation(headers: &mut HeaderMap) {
    let deprecation = HeaderName::from_static("deprecation");
    headers.insert(deprecation, HeaderValue::from_static(DEPRECATION));
    headers.insert(LINK, HeaderValue::from_static(SUCCESSOR));
}

/// Adds the headers to the responses of an operation.
pub(super) fn add(operation: &mut Operation) {
    let is_deprecated = operation.deprecated == Some(Deprecated::True);
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        let by_status = BY_STATUS
            .iter()
            .filter(|(of, ..)| of == status)
            .map(|(_, name, description)| (name, description));
        let deprecated = DEPRECATED
            .iter()
            .filter(|_| is_deprecated)
            .map(|(name, description)| (name, description));
        for (name, description) in by_status.chain(deprecated) {
            let header = HeaderBuilder::new().description(Some(*description)).build();
            response.headers.insert((*name).to_owned(), header.into());
        }
    }
}
