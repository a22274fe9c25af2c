//! The exports of the `connector-plugin` world, for any connector.

use crate::bindings::connector_plugin::exports::agent_host::plugin::connector as wire;
use crate::connector::{
    Attachment, Batch, Body, Choice, Connector, ConnectorError, Delivery, Incoming, Intake, Moved,
    OutgoingMessage, Quotation, QuotationKind, Said, Undelivered,
};
use crate::log;
use crate::wire::json_of_host;

/// The result of `describe`.
pub type WireConnectorDescription = wire::Description;
/// The call of the service that `receive` takes.
pub type WireDelivery = wire::Delivery;
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
    let intake = described.intake.iter().map(|intake| match intake {
        Intake::Webhook => wire::Intake::Webhook,
        Intake::Polling => wire::Intake::Polling,
    });
    wire::Description {
        intake: intake.collect(),
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
/// What the connector says.
pub fn receive(
    connector: &impl Connector,
    configuration: &str,
    delivery: WireDelivery,
) -> WireBatch {
    log::send_panics_to_the_host();
    let delivery = Delivery {
        headers: delivery.headers,
        query: delivery.query,
        body: delivery.body,
    };
    let received = connector.receive(&json_of_host(configuration), &delivery);
    received.map(batch_to_host).map_err(error_to_host)
}

/// The export `poll`.
///
/// # Errors
/// What the connector says.
pub fn poll(connector: &impl Connector, configuration: &str, cursor: Option<&str>) -> WireBatch {
    log::send_panics_to_the_host();
    let polled = connector.poll(&json_of_host(configuration), cursor);
    polled.map(batch_to_host).map_err(error_to_host)
}

/// The export `send`.
///
/// # Errors
/// What the connector says.
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
/// What the connector says.
pub fn fetch(connector: &impl Connector, configuration: &str, handle: &str) -> WireFetched {
    log::send_panics_to_the_host();
    let fetched = connector.fetch(&json_of_host(configuration), handle);
    fetched.map_err(error_to_host)
}

fn body_from_host(body: wire::Body) -> Body {
    match body {
        wire::Body::Text(text) => Body::Text(text),
        wire::Body::Question((text, choices)) => Body::Question {
            text,
            choices: choices.into_iter().map(choice_from_host).collect(),
        },
        wire::Body::Typing => Body::Typing,
        wire::Body::Edit((id, text)) => Body::Edit { id, text },
        wire::Body::Acknowledgement(handle) => Body::Acknowledgement(handle),
    }
}

fn choice_from_host(choice: wire::Choice) -> Choice {
    Choice {
        label: choice.label,
        value: choice.value,
    }
}

fn batch_to_host(batch: Batch) -> wire::Batch {
    wire::Batch {
        messages: batch.messages.into_iter().map(incoming_to_host).collect(),
        moved: batch.moved.into_iter().map(moved_to_host).collect(),
        undelivered: batch
            .undelivered
            .into_iter()
            .map(undelivered_to_host)
            .collect(),
        cursor: batch.cursor,
        next_ms: batch.next_ms,
        answer: batch.answer,
    }
}

fn incoming_to_host(message: Incoming) -> wire::Incoming {
    let attachments = message.attachments.into_iter();
    wire::Incoming {
        attachments: attachments.map(attachment_to_host).collect(),
        id: message.id,
        sender: message.sender,
        sender_name: message.sender_name,
        group: message.group,
        chat: message.chat,
        said: match message.said {
            Said::Text(text) => wire::Said::Text(text),
            Said::Button(value) => wire::Said::Button(value),
            Said::Aside(text) => wire::Said::Aside(text),
        },
        quotations: message
            .quotations
            .into_iter()
            .map(quotation_to_host)
            .collect(),
        sent_ms: message.sent_ms,
        acknowledge: message.acknowledge,
        overheard: message.overheard,
        replies_to: message.replies_to,
    }
}

fn undelivered_to_host(undelivered: Undelivered) -> wire::Undelivered {
    wire::Undelivered {
        id: undelivered.id,
        reason: undelivered.reason,
    }
}

fn moved_to_host(moved: Moved) -> wire::Moved {
    wire::Moved {
        from: moved.from,
        to: moved.to,
        is_group: moved.is_group,
    }
}

fn quotation_to_host(quotation: Quotation) -> wire::Quotation {
    wire::Quotation {
        kind: match quotation.kind {
            QuotationKind::Forwarded => wire::QuotationKind::Forwarded,
            QuotationKind::Quoted => wire::QuotationKind::Quoted,
        },
        author: quotation.author,
        text: quotation.text,
    }
}

fn attachment_to_host(attachment: Attachment) -> wire::Attachment {
    wire::Attachment {
        name: attachment.name,
        media_type: attachment.media_type,
        handle: attachment.handle,
        size: attachment.size,
    }
}

fn error_to_host(error: ConnectorError) -> wire::ConnectorError {
    match error {
        ConnectorError::Rejected(reason) => wire::ConnectorError::Rejected(reason),
        ConnectorError::Unauthorised(reason) => wire::ConnectorError::Unauthorised(reason),
        ConnectorError::RetryLater(ms) => wire::ConnectorError::RetryLater(ms),
        ConnectorError::Unknown(reason) => wire::ConnectorError::Unknown(reason),
        ConnectorError::Moved { chat, moved } => {
            wire::ConnectorError::Moved((chat, moved_to_host(moved)))
        }
    }
}
