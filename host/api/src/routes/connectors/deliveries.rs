//! Messages to people outside: list them, have one sent again.

use super::named;
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Params, Position, next_after, page_query, read_path,
    read_query,
};
use crate::state::Api;
use crate::wire::{self, DeliveryView};
use axum::extract::State;
use domain::id::DeliveryId;
use edge::DeliveryQuery;
use http::StatusCode;
use serde::Serialize;
use store::DeliveryState;

error_codes! {
    ListErrors = [ConnectorNotFound];
    RequeueErrors = [ConnectorNotFound, DeliveryNotDead, DeliveryNotFound] + Recording;
}

page_query! {
    /// Query that selects a page of deliveries.
    pub(in crate::routes) struct DeliveryParams: Position, 100 of 500 {
        /// Only in this state: `queued`, `started`, `failed`, `delivered`, `unknown` or `dead`.
        #[param(value_type = Option<DeliveryState>)]
        state: Option<String>,
    }
}

/// One page of deliveries.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(in crate::routes) struct DeliveryList {
    /// The newest first.
    deliveries: Vec<DeliveryView>,
    /// The `after` of the next page, which has older ones; none on the last.
    next_after: Option<u64>,
}

/// Lists the messages that a connector sends, the newest first.
///
/// Their words are not shown: those of a turn are in its session.
#[utoipa::path(
    get, path = "/api/connectors/{connector}/deliveries", tag = "connectors",
    operation_id = "listDeliveries",
    security(("token" = ["admin"])),
    params(("connector" = String, Path, description = "The connector."), DeliveryParams),
    responses((status = 200, description = "A page.", body = DeliveryList)),
)]
pub(in crate::routes) async fn list(
    State(api): State<Api>,
    InPath(name): InPath<String>,
    Params(params): Params<DeliveryParams>,
) -> Result<axum::Json<DeliveryList>, Refused<ListErrors>> {
    let name = named(&name)?;
    let limit = params.limit()?;
    let query = DeliveryQuery {
        state: read_query("state", params.state.as_deref())?,
        before: params.after.map(|Position(before)| before),
        // One more tells whether there is another page.
        limit: limit + 1,
    };
    let mut rows = api.edge()?.connectors().deliveries(&name, query).await?;
    Ok(axum::Json(DeliveryList {
        next_after: next_after(&mut rows, limit, |last| last.position),
        deliveries: rows.iter().map(wire::delivery).collect(),
    }))
}

/// Has a message sent again that was given up, or of which nobody knows whether it was sent.
///
/// It takes its old place in the order of its chat. Of one that is `unknown` look into the chat
/// before: it may be there twice then.
#[utoipa::path(
    post, path = "/api/connectors/{connector}/deliveries/{delivery}/requeue", tag = "connectors",
    operation_id = "requeueDelivery",
    security(("token" = ["admin"])),
    params(
        ("connector" = String, Path, description = "The connector."),
        ("delivery" = DeliveryId, Path, description = "The `delivery_id`."),
        IdempotencyKey,
    ),
    responses((status = 202, description = "It is to be sent.", body = DeliveryView)),
)]
pub(in crate::routes) async fn requeue(
    State(api): State<Api>,
    caller: Caller,
    InPath((name, delivery)): InPath<(String, String)>,
    key: Idempotency,
) -> Result<(StatusCode, axum::Json<DeliveryView>), Refused<RequeueErrors>> {
    let name = named(&name)?;
    let delivery: DeliveryId = read_path("delivery", &delivery)?;
    let by = key.by(&caller.user);
    let connectors = api.commanded_edge()?.connectors();
    let row = connectors.requeue(by, &name, delivery).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(wire::delivery(&row))))
}
