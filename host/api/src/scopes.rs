//! Which scope each route needs, as a table. A route that is not in it is closed to everybody.

use crate::caller::Caller;
use crate::problem::Problem;
use domain::user::Scope;
use http::{Method, StatusCode};

/// What users do with their agents, and everything below: looking needs `read`, anything else `write`.
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
/// What the operator does: `admin`.
const OPERATE: &[&str] = &[
    "/api/audit",
    "/api/backups",
    "/api/components",
    "/api/dead-letters",
    "/api/dead-letters/{id}",
    "/api/dead-letters/{id}/requeue",
    "/api/events",
    "/api/import",
    // Beyond the scope it takes the host's own token.
    "/api/purges",
    "/api/rebuilds",
    "/api/store",
    "/api/verifications",
    // Binding a key says who somebody is.
    "/api/users/{user}/connectors/{key}",
];
/// Keys: `keys` for one's own. An administrator needs no other scope for anybody's.
const KEYS: &[&str] = &["/api/keys", "/api/keys/{id}"];
/// What services call a user: `read` for one's own. An administrator needs no other scope for anybody's.
const CONNECTORS: &[&str] = &["/api/users/{user}/connectors"];
/// Open to every credential.
const SELF: &[&str] = &["/api/me"];

/// The scopes of which a route needs one; an empty list needs none, and none at all says that the route is not in the table.
pub(crate) fn needed(method: &Method, route: &str) -> Option<&'static [Scope]> {
    let below = |root: &&str| route.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if USE.iter().any(below) {
        let looks = *method == Method::GET || *method == Method::HEAD;
        return Some(if looks { &[Scope::Read] } else { &[Scope::Write] });
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
        None => Err(Problem::new(StatusCode::FORBIDDEN, "SCOPE_MISSING", "nobody said which scope this route needs, so it is closed")),
    }
}
