//! Connector keys, the names of users at services: bind, unbind, list. What else there is of
//! connectors stands in the folder of this name.

mod incoming_calls;
mod outbound_messages;
mod pairings;
mod state;

use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, InPath, read_path};
use crate::problem::{Problem, RequestPart};
use crate::routing::routes;
use crate::state::Api;
use crate::wire::{self, ConnectorView};
use axum::extract::State;
use domain::error_code::ErrorCode;
use domain::path::{ConnectorKey, ConnectorName};
use domain::user::UserId;
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;

error_codes! {
    BindErrors = [ConnectorKeyBound, ConnectorNotFound, TooManyConnectorKeys] + Recording;
    UnbindErrors = [ConnectorKeyNotFound] + Recording;
}

/// The routes about connectors that need a credential, but for those of connector keys.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(state::list))
        .routes(routes!(state::test))
        .routes(routes!(outbound_messages::list))
        .routes(routes!(outbound_messages::requeue))
        .routes(routes!(pairings::list))
        .routes(routes!(pairings::confirm, pairings::decline))
}

/// The routes that services call.
pub(super) fn open_routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(incoming_calls::shake_hands, incoming_calls::call))
}

/// Reads the name of a connector in a path.
fn named(name: &str) -> Result<ConnectorName, Problem> {
    read_path("connector", name)
}

/// The connector keys of a user.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ConnectorList {
    /// The keys in the order of their texts: 100 at most.
    connectors: Vec<ConnectorView>,
}

/// Binds a connector key, a service's id of a user, to that user.
///
/// Whatever comes from that id at the service then belongs to the user. A key that is bound to the
/// user already stays as it was. A key begins with the name of a connector of the configuration.
#[utoipa::path(
    put, path = "/api/users/{user}/connectors/{key}", tag = "keys",
    operation_id = "bindConnectorKey",
    security(("token" = ["admin"])),
    params(
        ("user" = String, Path, description = "The user."),
        ("key" = String, Path, description = "The key, such as `telegram:123456`."),
        IdempotencyKey,
    ),
    responses((status = 200, description = "It is bound to the user.", body = ConnectorView)),
)]
pub(super) async fn bind(
    State(api): State<Api>,
    caller: Caller,
    InPath((user, key)): InPath<(String, String)>,
    by: Idempotency,
) -> Result<axum::Json<ConnectorView>, Refused<BindErrors>> {
    let user: UserId = read_path("user", &user)?;
    let key: ConnectorKey = read_path("key", &key)?;
    let broker = api.command()?;
    let by = by.by(&caller.user);
    // A request that was made before is answered as it was then.
    if !broker.requests().is_remembered(by).await? {
        check_configured(&api, key.connector(), RequestPart::Path("key")).await?;
    }
    let bound = broker.connectors().bind(by, &user, &key).await?;
    Ok(axum::Json(wire::connector(&bound)))
}

/// Checks that there is a connector, which a part of the request names.
async fn check_configured(
    api: &Api,
    name: &ConnectorName,
    named: RequestPart<'_>,
) -> Result<(), Problem> {
    let connectors = api.edge()?.connectors();
    if connectors.spec(name).is_some() {
        return Ok(());
    }
    let known = connectors.list().await?;
    let known: Vec<&str> = known.iter().map(|it| it.name.as_str()).collect();
    let detail = match known.as_slice() {
        [] => format!(
            "there is no connector `{name}`, nor any other; add it to `connectors` in the \
             configuration"
        ),
        known => format!(
            "there is no connector `{name}`; there are `{}`",
            known.join("`, `")
        ),
    };
    let problem = Problem::new(ErrorCode::ConnectorNotFound, detail);
    Err(problem.at(named))
}

/// A key that is no longer bound to a user.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Unbound {
    /// The key.
    #[schema(value_type = String)]
    key: ConnectorKey,
    /// The user for whom it stood.
    user_id: UserId,
}

/// Unbinds a connector key: it is no longer bound to any user.
#[utoipa::path(
    delete, path = "/api/users/{user}/connectors/{key}", tag = "keys",
    operation_id = "unbindConnectorKey",
    security(("token" = ["admin"])),
    params(
        ("user" = String, Path, description = "The user."),
        ("key" = String, Path, description = "The key, such as `telegram:123456`."),
        IdempotencyKey,
    ),
    responses((status = 200, description = "It is bound to nobody.", body = Unbound)),
)]
pub(super) async fn unbind(
    State(api): State<Api>,
    caller: Caller,
    InPath((user, key)): InPath<(String, String)>,
    by: Idempotency,
) -> Result<axum::Json<Unbound>, Refused<UnbindErrors>> {
    let user: UserId = read_path("user", &user)?;
    let key: ConnectorKey = read_path("key", &key)?;
    api.command()?
        .connectors()
        .unbind(by.by(&caller.user), &user, &key)
        .await?;
    Ok(axum::Json(Unbound { key, user_id: user }))
}

/// Lists what services call a user: you, or for an administrator anybody.
#[utoipa::path(
    get, path = "/api/users/{user}/connectors", tag = "keys",
    operation_id = "listConnectorKeys",
    security(("token" = ["read"]), ("token" = ["admin"])),
    params(("user" = String, Path, description = "The user.")),
    responses((status = 200, description = "All of them.", body = ConnectorList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    InPath(user): InPath<String>,
) -> Result<axum::Json<ConnectorList>, Problem> {
    let user: UserId = read_path("user", &user)?;
    let rows = api
        .broker()?
        .connectors()
        .list(&caller.user, &caller.scopes, &user)
        .await?;
    Ok(axum::Json(ConnectorList {
        connectors: rows.iter().map(wire::connector).collect(),
    }))
}
