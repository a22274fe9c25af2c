//! The routes, as a list.

mod agents;
mod all_sessions;
mod assignments;
mod audit;
mod chat;
mod clock;
mod compacting;
mod components;
mod configuration;
mod connectors;
mod dead_letters;
mod definitions;
mod events;
mod external;
mod files;
mod hooks;
mod keys;
mod labels;
mod lists;
mod me;
mod memory;
mod messages;
mod models;
mod operator;
mod paths;
mod probes;
mod prompts;
mod purges;
mod quarantine;
mod queue;
mod route;
mod search;
mod session_stats;
mod sessions;
mod status;
mod switching;
mod tasks;
mod transcripts;
mod trees;
mod triggers;
mod usage;

use crate::credential::caller;
use crate::legacy;
use crate::openapi::{Document, announce_deprecation, complete, to_json};
use crate::problem::Problem;
use crate::reading::reader;
use crate::routing::routes;
use crate::scopes::RouteScopes;
use crate::state::Api;
use crate::stream;
use crate::stream::startup_wait::{self, StartupWait};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use domain::error_code::ErrorCode;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Uri};
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// Every route that needs a credential.
fn guarded() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(agents::create, agents::list))
        .routes(routes!(agents::show, agents::change))
        .routes(routes!(agents::show_preferences, agents::prefer))
        .routes(routes!(agents::archive))
        .routes(routes!(assignments::assign))
        .routes(routes!(assignments::change_role, assignments::unassign))
        .routes(routes!(assignments::hand_off))
        .routes(routes!(sessions::open, lists::sessions))
        .routes(routes!(sessions::terminate_current))
        .routes(routes!(sessions::show))
        .routes(routes!(session_stats::show))
        .routes(routes!(lists::items))
        .routes(routes!(sessions::save_ui))
        .routes(routes!(files::upload, files::list))
        .routes(routes!(files::show))
        .routes(routes!(lists::history))
        .routes(routes!(messages::post_message))
        .routes(routes!(sessions::cancel))
        .routes(routes!(sessions::respond))
        .routes(routes!(sessions::find))
        .routes(routes!(route::post))
        .routes(routes!(route::personas))
        .routes(routes!(stream::follow))
        .routes(routes!(stream::telemetry::follow_telemetry))
        .routes(routes!(events::list))
        .routes(routes!(audit::list))
        .routes(routes!(usage::list))
        .routes(routes!(components::list))
        .routes(routes!(models::list))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::requeue))
        .routes(routes!(dead_letters::show, dead_letters::discard))
        .routes(routes!(quarantine::list))
        .routes(routes!(quarantine::release))
        .routes(routes!(operator::back_up))
        .routes(routes!(operator::verify))
        .routes(routes!(operator::store_state))
        .routes(routes!(status::show))
        .routes(routes!(clock::show))
        .routes(routes!(clock::confirm))
        .merge(of_configuration())
        .routes(routes!(operator::rebuild, operator::rebuilt))
        .routes(routes!(purges::purge))
        .routes(routes!(keys::issue, keys::list))
        .routes(routes!(keys::revoke))
        .routes(routes!(me::show))
        .routes(routes!(labels::change, labels::delete))
        .routes(routes!(labels::clear))
        .routes(routes!(compacting::compact))
        .routes(routes!(prompts::show))
        .routes(routes!(prompts::push))
        .routes(routes!(labels::fork))
        .routes(routes!(trees::show))
        .routes(routes!(trees::tree))
        .routes(routes!(trees::diff))
        .routes(routes!(search::search))
        .routes(routes!(queue::configure, queue::reset))
        .routes(routes!(queue::list))
        .routes(routes!(queue::show, queue::cancel))
        .merge(addresses())
        .merge(switching::routes())
        .merge(memory::routes())
        .merge(tasks::routes())
        .merge(transcripts::routes())
        .merge(definitions::routes())
        .merge(triggers::routes())
        .merge(legacy::routes())
}

/// Returns the routes of the configuration.
fn of_configuration() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(configuration::reload))
        .routes(routes!(configuration::pending))
}

/// The routes of addresses: paths, connectors and their keys, sessions of external agents.
fn addresses() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .merge(paths::routes())
        .merge(connectors::routes())
        .routes(routes!(connectors::bind, connectors::unbind))
        .routes(routes!(connectors::list))
        .routes(routes!(external::attach))
}

/// Every route that needs no credential. They pass through no middleware, because monitors call
/// them all the time. Answers of external agents are signed instead, and calls of webhooks and
/// services prove themselves as the operator says.
fn open() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(probes::healthz))
        .routes(routes!(probes::readyz))
        .routes(routes!(probes::startupz))
        .routes(routes!(probes::version))
        .routes(routes!(probes::prove))
        .routes(routes!(probes::openapi))
        .routes(routes!(external::answer))
        .merge(hooks::routes())
        .merge(connectors::open_routes())
}

/// The description of all routes.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = OpenApiRouter::with_openapi(Document::openapi())
        .merge(guarded())
        .merge(open())
        .merge(chat::routes())
        .into_openapi();
    complete(&mut document);
    document
}

/// The same as JSON, complete.
pub(crate) fn description() -> serde_json::Value {
    to_json(&document())
}

/// The scopes of all routes that need a credential.
pub(crate) fn scopes() -> RouteScopes {
    RouteScopes::declared(guarded().into_openapi())
}

/// The router of a host.
pub fn router(api: &Api) -> Router {
    let (guarded, _) = guarded().split_for_parts();
    let (open, _) = open().split_for_parts();
    let (visited, _) = chat::routes().split_for_parts();
    let gate = RequestGate {
        api: api.clone(),
        scopes: Arc::new(scopes()),
    };
    guarded
        .route_layer(middleware::from_fn_with_state(gate, admit))
        .merge(open)
        .merge(chat::guarded(visited.merge(chat::preflights()), api))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(api.clone())
}

/// The routes that answer health checks when all connections are taken. Every other request is told
/// that they are.
pub fn checks(api: &Api) -> Router {
    let ends = |mut response: Response| async move {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        response
    };
    let (probes, _) = OpenApiRouter::new()
        .routes(routes!(probes::healthz))
        .routes(routes!(probes::readyz))
        .routes(routes!(probes::startupz))
        .split_for_parts();
    probes
        .fallback(crowded)
        .method_not_allowed_fallback(crowded)
        .layer(middleware::map_response(ends))
        .with_state(api.clone())
}

async fn crowded() -> Problem {
    let detail = "all connections of this host, or of your address, are taken; close one, or try \
                  again later";
    Problem::new(ErrorCode::TooManyConnections, detail)
}

/// The parts that admit a request.
#[derive(Debug, Clone)]
struct RequestGate {
    api: Api,
    scopes: Arc<RouteScopes>,
}

/// Answers a request that is admitted, and refuses any other. A route that is deprecated says so to
/// everybody, also to whoever is not let in.
async fn admit(State(gate): State<RequestGate>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let is_deprecated = route.is_some_and(|route| gate.scopes.is_deprecated(route.as_str()));
    let mut response = gate.pass(request, next).await.into_response();
    if is_deprecated {
        announce_deprecation(response.headers_mut());
    }
    response
}

impl RequestGate {
    /// Lets a request pass, as far as its credential permits.
    async fn pass(&self, mut request: Request, next: Next) -> Result<Response, Problem> {
        let Self { api, scopes } = self;
        let presented = api.access().check(request.uri(), request.headers())?;
        let route = request.extensions().get::<MatchedPath>();
        if scopes.is_stream(request.method(), route.map(MatchedPath::as_str))
            && let StartupWait::ComeBack(response) =
                startup_wait::until_ready(api, request.uri()).await
        {
            return Ok(response);
        }
        let caller = caller(api, presented).await?;
        scopes.check(&caller, request.method(), route.map(MatchedPath::as_str))?;
        api.quotas().request(&caller, api.limits())?;
        let caller = reader(api, caller, &mut request).await?;
        let key = caller.credential.key().cloned();
        request.extensions_mut().insert(caller);
        Ok(store::under_api_key(key, next.run(request)).await)
    }
}

async fn no_route(uri: Uri) -> Problem {
    let detail = format!(
        "there is no route at `{}`; GET /openapi.json lists all routes",
        uri.path()
    );
    Problem::new(ErrorCode::RouteNotFound, detail)
}

async fn no_method(method: Method, uri: Uri) -> Problem {
    let detail = format!(
        "`{}` does not accept {method}; GET /openapi.json lists the methods that it accepts",
        uri.path()
    );
    Problem::new(ErrorCode::MethodNotAllowed, detail)
}
