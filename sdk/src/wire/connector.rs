//! The exports of the `connector-plugin` world, for any connector.

use crate::bindings::connector_plugin::exports::agent_host::plugin::connector as wire;
use crate::connector::{Body, Connector, ConnectorError, OutgoingMessage};
use crate::log;
use crate::wire::json_of_host;

/// The result of `describe`.
pub type WireConnectorDescription = wire::Description;
/// The call of the service that `receive` takes.
pub type WireIncomingCall = wire::IncomingCall;
/// The result of `receive` and `poll`.
pub type WireBatch = Result<wire::Batch, wire::ConnectorError>;
/// The message that `send` takes.
pub type WireOutgoing = wire::Outgoing;
/// The result of `send`.
pub type WireSent = Result<String, wire::ConnectorError>;
/// The result of `fetch`.
pub type WireFetched = Result<Vec<u8>, wire::ConnectorError>;

/// The export `describe`.
pub fn describe_connector(connector: &impl Connector) -> WireConnectorDescription {
    log::send_panics_to_the_host();
    let described = connector.describe();
    wire::Description {
        intake: described.intake,
        id: described.id,
        summary: described.summary,
        configuration: described.configuration.to_string(),
        text_limit: described.text_limit,
        buttons_max: described.buttons_max,
        edits: described.edits,
        typing: described.typing,
        idempotent: described.idempotent,
    }
}

/// The export `receive`.
///
/// # Errors
/// The error that the connector returns.
pub fn receive(
    connector: &impl Connector,
    configuration: &str,
    incoming_call: &WireIncomingCall,
) -> WireBatch {
    log::send_panics_to_the_host();
    connector
        .receive(&json_of_host(configuration), incoming_call)
        .map_err(error_to_host)
}

/// The export `poll`.
///
/// # Errors
/// The error that the connector returns.
pub fn poll(connector: &impl Connector, configuration: &str, cursor: Option<&str>) -> WireBatch {
    log::send_panics_to_the_host();
    let polled = connector.poll(&json_of_host(configuration), cursor);
    polled.map_err(error_to_host)
}

/// The export `send`.
///
/// # Errors
/// The error that the connector returns.
pub fn send(connector: &impl Connector, configuration: &str, message: WireOutgoing) -> WireSent {
    log::send_panics_to_the_host();
    let message = OutgoingMessage {
        chat: message.chat,
        body: body_from_host(message.body),
        idempotency_key: message.idempotency_key,
    };
    let sent = connector.send(&json_of_host(configuration), &message);
    sent.map_err(error_to_host)
}

/// The export `fetch`.
///
/// # Errors
/// The error that the connector returns.
pub fn fetch(connector: &impl Connector, configuration: &str, handle: &str) -> WireFetched {
    log::send_panics_to_the_host();
    let fetched = connector.fetch(&json_of_host(configuration), handle);
    fetched.map_err(error_to_host)
}

fn body_from_host(body: wire::Body) -> Body {
    match body {
        wire::Body::Text(text) => Body::Text(text),
        wire::Body::Question((text, choices)) => Body::Question { text, choices },
        wire::Body::Typing => Body::Typing,
        wire::Body::Edit((id, text)) => Body::Edit { id, text },
        wire::Body::Acknowledgement(handle) => Body::Acknowledgement(handle),
    }
}

fn error_to_host(error: ConnectorError) -> wire::ConnectorError {
    match error {
        ConnectorError::Rejected(reason) => wire::ConnectorError::Rejected(reason),
        ConnectorError::Unauthorised(reason) => wire::ConnectorError::Unauthorised(reason),
        ConnectorError::RetryLater(ms) => wire::ConnectorError::RetryLater(ms),
        ConnectorError::Unknown(reason) => wire::ConnectorError::Unknown(reason),
        ConnectorError::Moved { chat, moved } => wire::ConnectorError::Moved((chat, moved)),
    }
}
