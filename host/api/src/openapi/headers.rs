//! Headers of many responses, in the description of the API. Headers of a single operation are
//! described with it.

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Deprecated, RefOr};

/// Headers of every response of a deprecated operation.
const DEPRECATED: [(&str, &str); 2] = [
    ("Deprecation", "Since when it is deprecated (RFC 9745)."),
    (
        "Link",
        "What to use instead (RFC 8288), as `successor-version`.",
    ),
];
/// Headers by status.
const OF_STATUS: [(&str, &str, &str); 3] = [
    (
        "401",
        "WWW-Authenticate",
        "`Bearer`: how to say who you are.",
    ),
    ("429", "Retry-After", "After how many seconds to try again."),
    (
        "503",
        "Retry-After",
        "After how many seconds to try again; not with every code.",
    ),
];

/// Adds them to the answers of an operation.
pub(super) fn add(operation: &mut Operation) {
    let is_deprecated = operation.deprecated == Some(Deprecated::True);
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        let of_status = OF_STATUS
            .iter()
            .filter(|(of, ..)| of == status)
            .map(|(_, name, told)| (name, told));
        let deprecated = DEPRECATED
            .iter()
            .filter(|_| is_deprecated)
            .map(|(name, told)| (name, told));
        for (name, told) in of_status.chain(deprecated) {
            let header = HeaderBuilder::new().description(Some(*told)).build();
            response.headers.insert((*name).to_owned(), header.into());
        }
    }
}
