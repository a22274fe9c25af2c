//! Messages to people outside: list them, have one sent again.

use super::named;
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{
    Idempotency, IdempotencyKey, InPath, Params, Position, next_after, page_query, read_path,
    read_query,
};
use crate::state::Api;
use crate::wire::{self, OutboundMessageView};
use axum::extract::State;
use domain::id::OutboundMessageId;
use edge::OutboundMessageQuery;
use http::StatusCode;
use serde::Serialize;
use store::OutboundMessageState;

error_codes! {
    ListErrors = [ConnectorNotFound];
    RequeueErrors = [ConnectorNotFound, OutboundMessageNotDead, OutboundMessageNotFound] + Recording;
}

page_query! {
    /// Query that selects a page of outbound messages.
    pub(in crate::routes) struct OutboundMessageParams: Position, 100 of 500 {
        /// Only in this state: `queued`, `started`, `failed`, `delivered`, `unknown` or `dead`.
        #[param(value_type = Option<OutboundMessageState>)]
        state: Option<String>,
    }
}

/// One page of outbound messages.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(in crate::routes) struct OutboundMessageList {
    /// The newest first.
    outbound_messages: Vec<OutboundMessageView>,
    /// The `after` of the next page, which has older ones; none on the last.
    next_after: Option<u64>,
}

/// Lists the messages that a connector sends, the newest first.
///
/// Their words are not shown: those of a turn are in its session.
#[utoipa::path(
    get, path = "/api/connectors/{connector}/outbound-messages", tag = "connectors",
    operation_id = "listOutboundMessages",
    security(("token" = ["admin"])),
    params(("connector" = String, Path, description = "The connector."), OutboundMessageParams),
    responses((status = 200, description = "A page.", body = OutboundMessageList)),
)]
pub(in crate::routes) async fn list(
    State(api): State<Api>,
    InPath(name): InPath<String>,
    Params(params): Params<OutboundMessageParams>,
) -> Result<axum::Json<OutboundMessageList>, Refused<ListErrors>> {
    let name = named(&name)?;
    let limit = params.limit()?;
    let query = OutboundMessageQuery {
        state: read_query("state", params.state.as_deref())?,
        before: params.after.map(|Position(before)| before),
        // One more tells whether there is another page.
        limit: limit + 1,
    };
    let mut rows = api
        .edge()?
        .connectors()
        .outbound_messages(&name, query)
        .await?;
    Ok(axum::Json(OutboundMessageList {
        next_after: next_after(&mut rows, limit, |last| last.position),
        outbound_messages: rows.iter().map(wire::outbound_message).collect(),
    }))
}

/// Has a message sent again that was given up, or of which nobody knows whether it was sent.
///
/// It takes its old place in the order of its chat. Of one that is `unknown` look into the chat
/// before: it may be there twice then.
#[utoipa::path(
    post, path = "/api/connectors/{connector}/outbound-messages/{outbound_message}/requeue", tag = "connectors",
    operation_id = "requeueOutboundMessage",
    security(("token" = ["admin"])),
    params(
        ("connector" = String, Path, description = "The connector."),
        ("outbound_message" = OutboundMessageId, Path, description = "The `outbound_message_id`."),
        IdempotencyKey,
    ),
    responses((status = 202, description = "It is to be sent.", body = OutboundMessageView)),
)]
pub(in crate::routes) async fn requeue(
    State(api): State<Api>,
    caller: Caller,
    InPath((name, outbound_message)): InPath<(String, String)>,
    key: Idempotency,
) -> Result<(StatusCode, axum::Json<OutboundMessageView>), Refused<RequeueErrors>> {
    let name = named(&name)?;
    let outbound_message: OutboundMessageId = read_path("outbound_message", &outbound_message)?;
    let by = key.by(&caller.user);
    let connectors = api.commanded_edge()?.connectors();
    let row = connectors.requeue(by, &name, outbound_message).await?;
    Ok((
        StatusCode::ACCEPTED,
        axum::Json(wire::outbound_message(&row)),
    ))
}
