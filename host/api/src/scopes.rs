//! The scopes that each route needs, as it declares them in `security` of its `utoipa::path`, and
//! whether it is deprecated or answers with an event stream. A route that declares no scopes is
//! closed to everybody.

use crate::caller::Caller;
use crate::openapi::{TOKEN, is_deprecated, is_stream, operations};
use crate::problem::Problem;
use domain::error_code::ErrorCode;
use domain::user::Scope;
use http::Method;
use std::collections::{HashMap, HashSet};
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::SecurityRequirement;

/// The credentials that a route admits.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Admits {
    /// Every valid credential.
    Any,
    /// Every valid credential with one of these scopes.
    OneOf(Vec<Scope>),
}

/// The credentials that each route admits.
#[derive(Debug)]
pub(crate) struct RouteScopes {
    /// By path, without a slash at its end, and method.
    admitted: HashMap<(String, Method), Admits>,
    /// Paths, without a slash at their end.
    deprecated: HashSet<String>,
    /// Paths, without a slash at their end, where GET answers with an event stream.
    streams: HashSet<String>,
}

impl RouteScopes {
    /// Collects what the routes of a description declare.
    pub(crate) fn declared(document: OpenApi) -> Self {
        let mut admitted = HashMap::new();
        let mut deprecated = HashSet::new();
        let mut streams = HashSet::new();
        for (path, mut item) in document.paths.paths {
            for (method, operation) in operations(&mut item) {
                let required = operation.security.as_deref().and_then(read_requirements);
                if let Some(admits) = required {
                    admitted.insert((key(&path), method), admits);
                }
                deprecated.extend(is_deprecated(operation).then(|| key(&path)));
                streams.extend(is_stream(operation).then(|| key(&path)));
            }
        }
        Self {
            admitted,
            deprecated,
            streams,
        }
    }

    /// Returns whether a route is deprecated.
    pub(crate) fn is_deprecated(&self, route: &str) -> bool {
        self.deprecated.contains(&key(route))
    }

    /// Returns whether a request begins an event stream.
    pub(crate) fn is_stream(&self, method: &Method, route: Option<&str>) -> bool {
        *method == Method::GET && route.is_some_and(|route| self.streams.contains(&key(route)))
    }

    /// Checks that a caller's credential may be used for a route, as the router knows it.
    pub(crate) fn check(
        &self,
        caller: &Caller,
        method: &Method,
        route: Option<&str>,
    ) -> Result<(), Problem> {
        // The router answers HEAD with the handler of GET.
        let method = if *method == Method::HEAD {
            Method::GET
        } else {
            method.clone()
        };
        let admits = route.and_then(|route| self.admitted.get(&(key(route), method)));
        match admits {
            Some(Admits::Any) => Ok(()),
            Some(Admits::OneOf(scopes)) => caller.needs_any(scopes),
            None => Err(Problem::new(
                ErrorCode::ScopeMissing,
                "this route does not say which scope it needs, so it is closed",
            )),
        }
    }
}

/// Returns the path under which a route is kept. The old API is served with and without a slash at
/// its end.
fn key(path: &str) -> String {
    path.trim_end_matches('/').to_owned()
}

/// Reads the security requirements of an operation; none if they admit nobody.
fn read_requirements(requirements: &[SecurityRequirement]) -> Option<Admits> {
    if requirements.contains(&SecurityRequirement::new(TOKEN, [""; 0])) {
        return Some(Admits::Any);
    }
    let is_required =
        |scope: &Scope| requirements.contains(&SecurityRequirement::new(TOKEN, [scope.as_str()]));
    let scopes: Vec<Scope> = Scope::ALL.into_iter().filter(is_required).collect();
    (!scopes.is_empty()).then_some(Admits::OneOf(scopes))
}
