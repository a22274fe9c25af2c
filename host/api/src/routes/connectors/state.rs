//! Connectors as they are served: list them, test one.

use super::named;
use crate::caller::Caller;
use crate::codes::{Refused, error_codes};
use crate::input::{Idempotency, IdempotencyKey, InPath, Json, read_field};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire::{self, ConnectorStateView};
use axum::extract::State;
use domain::id::OutboundMessageId;
use edge::TestTarget;
use http::StatusCode;
use serde::{Deserialize, Serialize};

error_codes! {
    TestErrors = [ConnectorDisabled, ConnectorKeyNotFound, ConnectorNotFound, Invalid] + Recording;
}

/// The connectors of a host.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(in crate::routes) struct ServedConnectors {
    /// The connectors, by name.
    connectors: Vec<ConnectorStateView>,
}

/// Lists the connectors that are configured, with their state.
#[utoipa::path(
    get, path = "/api/connectors", tag = "connectors",
    operation_id = "listConnectors",
    security(("token" = ["admin"])),
    responses((status = 200, description = "All of them.", body = ServedConnectors)),
)]
pub(in crate::routes) async fn list(
    State(api): State<Api>,
) -> Result<axum::Json<ServedConnectors>, Problem> {
    let states = api.edge()?.connectors().list().await?;
    Ok(axum::Json(ServedConnectors {
        connectors: states.iter().map(wire::connector_state).collect(),
    }))
}

/// A message that tests a connector: into a chat, or to a user.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "user": "alice", "text": "Do you hear me?" }))]
pub(in crate::routes) struct ConnectorTest {
    /// The chat, in the service's terms.
    chat: Option<String>,
    /// The user, who needs a connector key of this connector.
    user: Option<String>,
    /// The text that is sent; a sentence of the host's own without.
    text: Option<String>,
}

/// A test that is to be sent.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(in crate::routes) struct ConnectorTested {
    /// The outbound message, which `GET /api/connectors/{connector}/outbound-messages` lists.
    outbound_message_id: OutboundMessageId,
}

/// Sends a text through a connector, to see whether it arrives.
#[utoipa::path(
    post, path = "/api/connectors/{connector}/test", tag = "connectors",
    operation_id = "sendConnectorTest",
    security(("token" = ["admin"])),
    params(("connector" = String, Path, description = "The connector."), IdempotencyKey),
    request_body = ConnectorTest,
    responses((status = 202, description = "It is to be sent.", body = ConnectorTested)),
)]
pub(in crate::routes) async fn test(
    State(api): State<Api>,
    caller: Caller,
    InPath(name): InPath<String>,
    key: Idempotency,
    Json(test): Json<ConnectorTest>,
) -> Result<(StatusCode, axum::Json<ConnectorTested>), Refused<TestErrors>> {
    let name = named(&name)?;
    let to = match (test.chat, test.user) {
        (Some(chat), None) => TestTarget::Chat(chat),
        (None, Some(user)) => TestTarget::User(read_field("/user", &user)?),
        (Some(_), Some(_)) | (None, None) => {
            let detail = "give either `chat` or `user`: who is to get the text";
            return Err(Problem::invalid_field("/chat", detail).into());
        }
    };
    let by = key.by(&caller.user);
    let connectors = api.commanded_edge()?.connectors();
    let outbound_message = connectors.test(by, &name, to, test.text).await?;
    let tested = ConnectorTested {
        outbound_message_id: outbound_message,
    };
    Ok((StatusCode::ACCEPTED, axum::Json(tested)))
}
