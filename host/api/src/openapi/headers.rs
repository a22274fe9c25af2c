//! Headers of many responses, in the description of the API. Headers of a single operation are
//! described with it.

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

/// Adds them to the responses of an operation.
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
