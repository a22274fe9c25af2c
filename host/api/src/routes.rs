//! The routes, as a list.

mod agents;
mod audit;
mod components;
mod dead_letters;
mod definitions;
mod events;
mod operator;
mod probes;
mod sessions;

use crate::openapi::{Document, add_problems};
use crate::problem::Problem;
use crate::state::Api;
use crate::stream;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use http::{Method, StatusCode, Uri};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Every route that needs the token.
fn guarded() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(agents::create, agents::list))
        .routes(routes!(agents::show))
        .routes(routes!(sessions::open, sessions::list))
        .routes(routes!(sessions::terminate_current))
        .routes(routes!(sessions::show))
        .routes(routes!(sessions::post_message))
        .routes(routes!(sessions::cancel))
        .routes(routes!(sessions::respond))
        .routes(routes!(sessions::find))
        .routes(routes!(stream::follow))
        .routes(routes!(events::list))
        .routes(routes!(audit::list))
        .routes(routes!(components::list))
        .routes(routes!(definitions::list))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::requeue))
        .routes(routes!(operator::back_up))
        .routes(routes!(operator::verify))
}

/// Every route that needs none. They pass through no middleware: whoever watches the host asks them all the time.
fn open() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(probes::healthz)).routes(routes!(probes::readyz)).routes(routes!(probes::openapi))
}

/// The description of all routes.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = OpenApiRouter::with_openapi(Document::openapi()).merge(guarded()).merge(open()).into_openapi();
    add_problems(&mut document);
    document
}

/// The router of a host.
pub fn router(api: &Api) -> Router {
    let (guarded, _) = guarded().split_for_parts();
    let (open, _) = open().split_for_parts();
    guarded
        .route_layer(middleware::from_fn_with_state(api.clone(), admit))
        .merge(open)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(api.clone())
}

/// Lets in whoever may come in.
async fn admit(State(api): State<Api>, request: Request, next: Next) -> Result<Response, Problem> {
    api.access().check(request.uri(), request.headers())?;
    Ok(next.run(request).await)
}

async fn no_route(uri: Uri) -> Problem {
    let detail = format!("there is nothing at `{}`; GET /openapi.json lists what there is", uri.path());
    Problem::new(StatusCode::NOT_FOUND, "ROUTE_NOT_FOUND", detail)
}

async fn no_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("`{}` does not take {method}; GET /openapi.json lists what it takes", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail)
}
