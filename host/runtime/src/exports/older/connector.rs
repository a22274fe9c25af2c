//! Connectors of version 0.1.0: texts only, without files, buttons and edits.

use crate::bindings::agent::agent_host::plugin::types::Part;
use crate::bindings::connector::exports::agent_host::plugin::connector as newer;
use crate::bindings::connector_0_1::exports::agent_host::plugin::connector as older;

/// Returns its description. Its limit counts characters, each of which is one UTF-16 code unit or
/// two: as many units are never too many characters.
pub(in crate::exports) fn description(description: older::Description) -> newer::Description {
    let older::Description {
        id,
        summary,
        configuration,
        intake,
        text_limit,
    } = description;
    let way = |way: older::Intake| match way {
        older::Intake::Webhook => newer::Intake::Webhook,
        older::Intake::Polling => newer::Intake::Polling,
    };
    newer::Description {
        id,
        summary,
        configuration,
        intake: intake.into_iter().map(way).collect(),
        text_limit,
        buttons_max: 0,
        edits: false,
        typing: false,
        idempotent: false,
    }
}

/// Returns a call of the service as it reads it.
pub(in crate::exports) fn incoming_call(incoming_call: &newer::IncomingCall) -> older::Delivery {
    older::Delivery {
        headers: incoming_call.headers.clone(),
        body: incoming_call.body.clone(),
    }
}

/// Returns what it read in a call of the service.
pub(in crate::exports) fn received(
    received: Result<Vec<older::Incoming>, older::ConnectorError>,
) -> Result<newer::Batch, newer::ConnectorError> {
    let messages = received.map_err(error)?;
    Ok(newer::Batch {
        messages: incoming(messages)?,
        moved: Vec::new(),
        undelivered: Vec::new(),
        cursor: None,
        next_ms: 0,
        answer: None,
    })
}

/// Returns what a poll brought.
pub(in crate::exports) fn polled(
    polled: Result<older::Batch, older::ConnectorError>,
) -> Result<newer::Batch, newer::ConnectorError> {
    let older::Batch {
        messages,
        cursor,
        next_ms,
    } = polled.map_err(error)?;
    Ok(newer::Batch {
        messages: incoming(messages)?,
        moved: Vec::new(),
        undelivered: Vec::new(),
        cursor,
        next_ms,
        answer: None,
    })
}

fn incoming(messages: Vec<older::Incoming>) -> Result<Vec<newer::Incoming>, newer::ConnectorError> {
    let one = |message: older::Incoming| {
        let older::Incoming {
            id,
            sender,
            reply_to,
            content,
            sent_ms,
        } = message;
        Ok(newer::Incoming {
            id,
            sender,
            sender_name: None,
            group: None,
            chat: reply_to,
            said: newer::Said::Text(text(content)?),
            quotations: Vec::new(),
            attachments: Vec::new(),
            sent_ms,
            acknowledge: None,
            overheard: false,
            replies_to: None,
        })
    };
    messages.into_iter().map(one).collect()
}

/// Returns the text of a message. There is nothing else that a connector can put into one.
fn text(content: Vec<Part>) -> Result<String, newer::ConnectorError> {
    let one = |part: Part| match part {
        Part::Text(text) => Ok(text),
        Part::Blob(_) | Part::Call(_) | Part::Opaque(_) => Err(newer::ConnectorError::Rejected(
            "a message has a part that is no text, which only the host can make".to_owned(),
        )),
    };
    let texts = content.into_iter().map(one);
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// Returns a message as it sends it.
///
/// # Errors
/// Its version has no such message. The description says so, and no host sends one.
pub(in crate::exports) fn outgoing(
    message: &newer::Outgoing,
) -> Result<older::Outgoing, newer::ConnectorError> {
    let newer::Body::Text(text) = &message.body else {
        return Err(newer::ConnectorError::Rejected(
            "the component is built for version 0.1.0 of the interface, which sends texts only"
                .to_owned(),
        ));
    };
    Ok(older::Outgoing {
        reply_to: message.chat.clone(),
        content: vec![Part::Text(text.clone())],
        idempotency_key: message.idempotency_key.clone(),
    })
}

/// Returns its error.
pub(in crate::exports) fn error(error: older::ConnectorError) -> newer::ConnectorError {
    match error {
        older::ConnectorError::Rejected(reason) => newer::ConnectorError::Rejected(reason),
        older::ConnectorError::RetryLater(ms) => newer::ConnectorError::RetryLater(ms),
        older::ConnectorError::Unknown(reason) => newer::ConnectorError::Unknown(reason),
    }
}

/// Returns the error of whoever asks it for a file.
pub(in crate::exports) fn no_files() -> newer::ConnectorError {
    newer::ConnectorError::Rejected(
        "the component is built for version 0.1.0 of the interface, in which no files come with \
         messages"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending(body: newer::Body) -> Result<older::Outgoing, newer::ConnectorError> {
        outgoing(&newer::Outgoing {
            chat: "7".into(),
            body,
            idempotency_key: "key".into(),
        })
    }

    #[test]
    fn an_older_connector_sends_texts_only() {
        let sent = sending(newer::Body::Text("hello".into())).unwrap();
        assert_eq!(sent.reply_to, "7");
        assert!(matches!(&sent.content[..], [Part::Text(text)] if text == "hello"));
        assert!(sending(newer::Body::Typing).is_err());
    }

    #[test]
    fn an_older_connectors_messages_come_from_its_chats() {
        let message = older::Incoming {
            id: "1".into(),
            sender: "anna".into(),
            reply_to: "7".into(),
            content: vec![Part::Text("one".into()), Part::Text("two".into())],
            sent_ms: 5,
        };
        let batch = received(Ok(vec![message])).unwrap();
        let [message] = &batch.messages[..] else {
            panic!("one went in");
        };
        assert_eq!(message.chat, "7");
        assert!(matches!(&message.said, newer::Said::Text(text) if text == "one\ntwo"));
    }
}
