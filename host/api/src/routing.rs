//! Routes with their handlers, described with the codes of each handler's error.

use crate::codes::{ErrorCodes, Refused};
use crate::openapi::{CODES, extend, operations};
use crate::problem::Problem;
use axum::response::Response;
use axum::routing::MethodRouter;
use domain::error_code::ErrorCode;
use serde_json::json;
use std::collections::BTreeSet;
use utoipa::openapi::path::Paths;
use utoipa_axum::router::UtoipaMethodRouter;

/// The result of a handler, which knows its error's codes.
pub(crate) trait Outcome {
    /// The codes that do not follow from the form of the request.
    fn codes() -> BTreeSet<ErrorCode> {
        BTreeSet::new()
    }
}

impl<T, S: ErrorCodes> Outcome for Result<T, Refused<S>> {
    fn codes() -> BTreeSet<ErrorCode> {
        S::codes()
    }
}

impl<T> Outcome for Result<T, Problem> {}
impl<T> Outcome for axum::Json<T> {}
impl Outcome for Response {}
impl Outcome for &str {}

/// A handler of a route with these arguments.
pub(crate) trait RouteFn<Arguments> {
    /// The codes of its outcome.
    fn codes(&self) -> BTreeSet<ErrorCode>;
}

macro_rules! handlers {
    ($(($($argument:ident),*))+) => {$(
        impl<F, Answer, $($argument),*> RouteFn<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Answer,
            Answer: Future<Output: Outcome>,
        {
            fn codes(&self) -> BTreeSet<ErrorCode> {
                <Answer::Output as Outcome>::codes()
            }
        }
    )+};
}
handlers! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, G) (A, B, C, D, E, G, H) }

/// The routes of one path, by their handlers, described with the codes of their errors.
macro_rules! routes {
    ($($handler:path),+ $(,)?) => {
        $crate::routing::join([
            $($crate::routing::with_codes(utoipa_axum::routes!($handler), &$handler)),+
        ])
    };
}
pub(crate) use routes;

/// Puts the codes of a handler into the description of its route.
pub(crate) fn with_codes<S, A>(
    mut route: UtoipaMethodRouter<S>,
    handler: &impl RouteFn<A>,
) -> UtoipaMethodRouter<S> {
    let codes = handler.codes().into_iter();
    let codes: Vec<_> = codes.map(|code| (code.status(), code.as_str())).collect();
    for (_, operation) in route.1.paths.values_mut().flat_map(operations) {
        extend(&mut operation.extensions, CODES, json!(codes));
    }
    route
}

/// Joins the routes of one path.
pub(crate) fn join<S: Clone + Send + Sync + 'static, const N: usize>(
    routes: [UtoipaMethodRouter<S>; N],
) -> UtoipaMethodRouter<S> {
    let mut all = (Vec::new(), Paths::new(), MethodRouter::new());
    for (schemas, paths, router) in routes {
        all.0.extend(schemas);
        all.1.merge(paths);
        all.2 = all.2.merge(router);
    }
    all
}
