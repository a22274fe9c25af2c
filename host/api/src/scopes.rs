//! The scopes that each route needs, as a table. A route that is not listed is closed to everybody.

use crate::caller::Caller;
use crate::problem::Problem;
use domain::user::Scope;
use http::{Method, StatusCode};

/// Routes of users and their agents, and everything below: reading needs `read`, anything else
/// `write`.
const USE: &[&str] = &[
    "/api/agents",
    "/api/sessions",
    "/api/session",
    "/api/definitions",
    "/api/messages",
    "/api/paths",
    "/api/personas",
    "/api/search",
    "/api/turns",
];
/// Routes of the operator: `admin`.
const OPERATE: &[&str] = &[
    "/api/audit",
    "/api/backups",
    "/api/clock",
    "/api/clock/confirm",
    "/api/components",
    "/api/dead-letters",
    "/api/dead-letters/{id}",
    "/api/dead-letters/{id}/requeue",
    "/api/events",
    "/api/import",
    // Beyond the scope it takes the host's own token.
    "/api/purges",
    "/api/quarantine",
    "/api/quarantine/{id}/release",
    "/api/rebuilds",
    "/api/store",
    "/api/verifications",
    // Binding a key says who somebody is.
    "/api/users/{user}/connectors/{key}",
];
/// Keys: `keys` for one's own. An administrator needs no other scope for anybody's.
const KEYS: &[&str] = &["/api/keys", "/api/keys/{id}"];
/// Connector keys of a user: `read` for one's own. An administrator needs no other scope for
/// anybody's.
const CONNECTORS: &[&str] = &["/api/users/{user}/connectors"];
/// Open to every credential.
const SELF: &[&str] = &["/api/me"];

/// Returns the scopes of which a route needs one. An empty list needs none; none at all means that
/// the route is not in the table.
pub(crate) fn needed(method: &Method, route: &str) -> Option<&'static [Scope]> {
    let below = |root: &&str| {
        route
            .strip_prefix(*root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if USE.iter().any(below) {
        let looks = *method == Method::GET || *method == Method::HEAD;
        return Some(if looks {
            &[Scope::Read]
        } else {
            &[Scope::Write]
        });
    }
    if OPERATE.contains(&route) {
        return Some(&[Scope::Admin]);
    }
    if KEYS.contains(&route) {
        return Some(&[Scope::Keys, Scope::Admin]);
    }
    if CONNECTORS.contains(&route) {
        return Some(&[Scope::Read, Scope::Admin]);
    }
    SELF.contains(&route).then_some(&[])
}

/// Checks that a caller's credential may be used for a route, as the router knows it.
pub(crate) fn check(caller: &Caller, method: &Method, route: Option<&str>) -> Result<(), Problem> {
    match route.and_then(|route| needed(method, route)) {
        Some([]) => Ok(()),
        Some([scope]) => caller.needs(*scope),
        Some(scopes) => caller.needs_any(scopes),
        None => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "SCOPE_MISSING",
            "nobody said which scope this route needs, so it is closed",
        )),
    }
}
