//! The functions of connectors.

use super::{Exported, Version, call};
use crate::bindings::agent::agent_host::plugin::types::Part;
use crate::bindings::connector::exports::agent_host::plugin::connector;
use crate::bindings::connector_0_1::exports::agent_host::plugin::connector as connector_0_1;
use crate::call::CallState;
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, InstancePre};

/// The result of a connector's function.
pub(crate) type Answered<T> = Result<T, connector::ConnectorError>;
type Answered01<T> = Result<T, connector_0_1::ConnectorError>;

/// The functions of a connector.
pub(crate) struct ConnectorExports {
    pre: InstancePre<CallState>,
    version: Version,
    describe: ComponentExportIndex,
    receive: ComponentExportIndex,
    poll: ComponentExportIndex,
    send: ComponentExportIndex,
    /// None in version 0.1.0, in which no files come with messages.
    fetch: Option<ComponentExportIndex>,
}

impl ConnectorExports {
    pub(super) fn new(found: &Exported<'_>, version: Version) -> wasmtime::Result<Self> {
        match version {
            Version::V0_1 => Self::of_0_1(found),
            Version::V0_2 => Self::of_0_2(found),
        }
    }

    fn of_0_1(found: &Exported<'_>) -> wasmtime::Result<Self> {
        type Received = Answered01<Vec<connector_0_1::Incoming>>;
        type Polled = Answered01<connector_0_1::Batch>;
        Ok(Self {
            pre: found.pre.clone(),
            version: Version::V0_1,
            describe: found.function::<(), connector_0_1::Description>("describe")?,
            receive: found.function::<(&str, &connector_0_1::Delivery), Received>("receive")?,
            poll: found.function::<(&str, Option<&str>), Polled>("poll")?,
            send: found.function::<(&str, &connector_0_1::Outgoing), Answered01<String>>("send")?,
            fetch: None,
        })
    }

    fn of_0_2(found: &Exported<'_>) -> wasmtime::Result<Self> {
        type Received = Answered<connector::Batch>;
        let fetch = found.function::<(&str, &str), Answered<Vec<u8>>>("fetch")?;
        Ok(Self {
            pre: found.pre.clone(),
            version: Version::V0_2,
            describe: found.function::<(), connector::Description>("describe")?,
            receive: found.function::<(&str, &connector::IncomingCall), Received>("receive")?,
            poll: found.function::<(&str, Option<&str>), Received>("poll")?,
            send: found.function::<(&str, &connector::Outgoing), Answered<String>>("send")?,
            fetch: Some(fetch),
        })
    }

    /// Asks what it is.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<connector::Description> {
        match self.version {
            Version::V0_1 => {
                let description = call(&self.pre, store, &self.describe, ()).await?;
                Ok(described(description))
            }
            Version::V0_2 => call(&self.pre, store, &self.describe, ()).await,
        }
    }

    /// Has it read a call of the service.
    pub(crate) async fn receive(
        &self,
        store: &mut Store<CallState>,
        configuration: &str,
        incoming_call: &connector::IncomingCall,
    ) -> wasmtime::Result<Answered<connector::Batch>> {
        if self.version == Version::V0_2 {
            let arguments = (configuration, incoming_call);
            return call(&self.pre, store, &self.receive, arguments).await;
        }
        let incoming_call = older_call(incoming_call);
        let arguments = (configuration, &incoming_call);
        let answer = call(&self.pre, store, &self.receive, arguments).await?;
        Ok(received(answer))
    }

    /// Has it ask the service for news.
    pub(crate) async fn poll(
        &self,
        store: &mut Store<CallState>,
        configuration: &str,
        cursor: Option<&str>,
    ) -> wasmtime::Result<Answered<connector::Batch>> {
        let arguments = (configuration, cursor);
        if self.version == Version::V0_2 {
            return call(&self.pre, store, &self.poll, arguments).await;
        }
        let answer = call(&self.pre, store, &self.poll, arguments).await?;
        Ok(polled(answer))
    }

    /// Has it deliver a message.
    pub(crate) async fn send(
        &self,
        store: &mut Store<CallState>,
        configuration: &str,
        message: &connector::Outgoing,
    ) -> wasmtime::Result<Answered<String>> {
        if self.version == Version::V0_2 {
            let arguments = (configuration, message);
            return call(&self.pre, store, &self.send, arguments).await;
        }
        let message = match older_message(message) {
            Ok(message) => message,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let sent: Answered01<String> =
            call(&self.pre, store, &self.send, (configuration, &message)).await?;
        Ok(sent.map_err(error))
    }

    /// Has it get a file.
    pub(crate) async fn fetch(
        &self,
        store: &mut Store<CallState>,
        configuration: &str,
        handle: &str,
    ) -> wasmtime::Result<Answered<Vec<u8>>> {
        match &self.fetch {
            Some(fetch) => call(&self.pre, store, fetch, (configuration, handle)).await,
            None => Ok(Err(no_files())),
        }
    }
}

/// Returns its description. Its limit counts characters, each of which is one UTF-16 code unit or
/// two: as many units are never too many characters.
fn described(description: connector_0_1::Description) -> connector::Description {
    let connector_0_1::Description {
        id,
        summary,
        configuration,
        intake,
        text_limit,
    } = description;
    let way = |way: connector_0_1::Intake| match way {
        connector_0_1::Intake::Webhook => connector::Intake::Webhook,
        connector_0_1::Intake::Polling => connector::Intake::Polling,
    };
    connector::Description {
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
fn older_call(incoming_call: &connector::IncomingCall) -> connector_0_1::Delivery {
    connector_0_1::Delivery {
        headers: incoming_call.headers.clone(),
        body: incoming_call.body.clone(),
    }
}

/// Returns what it read in a call of the service.
fn received(
    received: Result<Vec<connector_0_1::Incoming>, connector_0_1::ConnectorError>,
) -> Result<connector::Batch, connector::ConnectorError> {
    let messages = received.map_err(error)?;
    Ok(connector::Batch {
        messages: incoming(messages)?,
        moved: Vec::new(),
        undelivered: Vec::new(),
        cursor: None,
        next_ms: 0,
        answer: None,
    })
}

/// Returns what a poll brought.
fn polled(
    polled: Result<connector_0_1::Batch, connector_0_1::ConnectorError>,
) -> Result<connector::Batch, connector::ConnectorError> {
    let connector_0_1::Batch {
        messages,
        cursor,
        next_ms,
    } = polled.map_err(error)?;
    Ok(connector::Batch {
        messages: incoming(messages)?,
        moved: Vec::new(),
        undelivered: Vec::new(),
        cursor,
        next_ms,
        answer: None,
    })
}

fn incoming(
    messages: Vec<connector_0_1::Incoming>,
) -> Result<Vec<connector::Incoming>, connector::ConnectorError> {
    let one = |message: connector_0_1::Incoming| {
        let connector_0_1::Incoming {
            id,
            sender,
            reply_to,
            content,
            sent_ms,
        } = message;
        Ok(connector::Incoming {
            id,
            sender,
            sender_name: None,
            group: None,
            chat: reply_to,
            said: connector::Said::Text(text(content)?),
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
fn text(content: Vec<Part>) -> Result<String, connector::ConnectorError> {
    let one = |part: Part| match part {
        Part::Text(text) => Ok(text),
        Part::Blob(_) | Part::Call(_) | Part::Opaque(_) => {
            Err(connector::ConnectorError::Rejected(
                "a message has a part that is no text, which only the host can make".to_owned(),
            ))
        }
    };
    let texts = content.into_iter().map(one);
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// Returns a message as it sends it.
///
/// # Errors
/// Its version has no such message. The description says so, and no host sends one.
fn older_message(
    message: &connector::Outgoing,
) -> Result<connector_0_1::Outgoing, connector::ConnectorError> {
    let connector::Body::Text(text) = &message.body else {
        return Err(connector::ConnectorError::Rejected(
            "the component is built for version 0.1.0 of the interface, which sends texts only"
                .to_owned(),
        ));
    };
    Ok(connector_0_1::Outgoing {
        reply_to: message.chat.clone(),
        content: vec![Part::Text(text.clone())],
        idempotency_key: message.idempotency_key.clone(),
    })
}

/// Returns its error.
fn error(error: connector_0_1::ConnectorError) -> connector::ConnectorError {
    match error {
        connector_0_1::ConnectorError::Rejected(reason) => {
            connector::ConnectorError::Rejected(reason)
        }
        connector_0_1::ConnectorError::RetryLater(ms) => connector::ConnectorError::RetryLater(ms),
        connector_0_1::ConnectorError::Unknown(reason) => {
            connector::ConnectorError::Unknown(reason)
        }
    }
}

/// Returns the error of whoever asks it for a file.
fn no_files() -> connector::ConnectorError {
    connector::ConnectorError::Rejected(
        "the component is built for version 0.1.0 of the interface, in which no files come with \
         messages"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending(
        body: connector::Body,
    ) -> Result<connector_0_1::Outgoing, connector::ConnectorError> {
        older_message(&connector::Outgoing {
            chat: "7".into(),
            body,
            idempotency_key: "key".into(),
        })
    }

    #[test]
    fn an_older_connector_sends_texts_only() {
        let sent = sending(connector::Body::Text("hello".into())).unwrap();
        assert_eq!(sent.reply_to, "7");
        assert!(matches!(&sent.content[..], [Part::Text(text)] if text == "hello"));
        assert!(sending(connector::Body::Typing).is_err());
    }

    #[test]
    fn an_older_connectors_messages_come_from_its_chats() {
        let message = connector_0_1::Incoming {
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
        assert!(matches!(&message.said, connector::Said::Text(text) if text == "one\ntwo"));
    }
}
