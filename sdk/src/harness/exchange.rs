//! A connector's calls, as the host makes them, each held to the host's rules. Its requests are
//! answered by [`serve_http`](crate::harness::serve_http).

use crate::connector::{
    Batch, Body, Choice, Connector, ConnectorDescription, ConnectorError, Incoming, IncomingCall,
    Intake, OutgoingMessage, Said,
};
use crate::harness::bench::declaring;
use crate::harness::trigger_runs::check_id;
use agent_host_shapes::limits::connector::{
    ACKNOWLEDGE_BYTES_MAX, ANSWER_BYTES_MAX, ATTACHMENT_BYTES_MAX, ATTACHMENTS_MAX,
    BATCH_MESSAGES_MAX, BATCH_MOVED_MAX, BATCH_UNDELIVERED_MAX, BUTTON_BYTES_MAX, CURSOR_BYTES_MAX,
    INCOMING_TEXT_BYTES_MAX, SERVICE_ID_BYTES_MAX,
};
use serde_json::{Value, json};

/// The exchange of a connector with its service.
#[derive(Debug)]
pub struct Exchange<C> {
    connector: C,
    configuration: Value,
    cursor: Option<String>,
}

impl<C: Connector> Exchange<C> {
    /// Begins without a cursor and with the configuration `{}`.
    ///
    /// # Panics
    /// When its description is not one that the host takes.
    pub fn of(connector: C) -> Self {
        check_description(&connector.describe());
        Self {
            connector,
            configuration: json!({}),
            cursor: None,
        }
    }

    /// Sets the operator's configuration.
    #[must_use]
    pub fn configured(mut self, configuration: Value) -> Self {
        self.configuration = configuration;
        self
    }

    /// The description.
    pub fn describe(&self) -> ConnectorDescription {
        self.connector.describe()
    }

    /// Polls once, and keeps the cursor.
    ///
    /// # Errors
    /// The error that the connector returns.
    ///
    /// # Panics
    /// When it breaks a rule of the host.
    pub fn poll(&mut self) -> Result<Batch, ConnectorError> {
        self.check_intake(Intake::Polling);
        let cursor = self.cursor.clone();
        let batch = granted(|| self.connector.poll(&self.configuration, cursor.as_deref()))?;
        check_batch(&batch);
        if let Some(cursor) = &batch.cursor {
            self.cursor = Some(cursor.clone());
        }
        Ok(batch)
    }

    /// Hands over a call of the service.
    ///
    /// # Errors
    /// The error that the connector returns.
    ///
    /// # Panics
    /// When it breaks a rule of the host.
    pub fn receive(&self, incoming_call: &IncomingCall) -> Result<Batch, ConnectorError> {
        self.check_intake(Intake::Webhook);
        let batch = granted(|| self.connector.receive(&self.configuration, incoming_call))?;
        check_batch(&batch);
        Ok(batch)
    }

    /// Sends a text, which is within the text limit.
    ///
    /// # Errors
    /// The error that the connector returns.
    pub fn send(&self, chat: &str, text: &str) -> Result<String, ConnectorError> {
        self.deliver(chat, Body::Text(text.to_owned()))
    }

    /// Sends a question with buttons.
    ///
    /// # Errors
    /// The error that the connector returns.
    pub fn ask(
        &self,
        chat: &str,
        question: &str,
        choices: &[(&str, &str)],
    ) -> Result<String, ConnectorError> {
        let choices = choices.iter().map(|(label, value)| Choice {
            label: (*label).to_owned(),
            value: (*value).to_owned(),
        });
        let text = question.to_owned();
        let choices = choices.collect();
        self.deliver(chat, Body::Question { text, choices })
    }

    /// Sends anything that the host may send: into the chat that a connector names in
    /// [`ConnectorError::Moved`], if it does.
    ///
    /// # Errors
    /// The error that the connector returns.
    ///
    /// # Panics
    /// When the host would never send it to this connector, or the id that comes back is none.
    pub fn deliver(&self, chat: &str, body: Body) -> Result<String, ConnectorError> {
        check_body(&self.describe(), &body);
        let is_lossy = matches!(body, Body::Typing | Body::Acknowledgement(_));
        let message = OutgoingMessage {
            chat: chat.to_owned(),
            body,
            idempotency_key: "outbound-message-of-test".to_owned(),
        };
        let send = |message: &_| granted(|| self.connector.send(&self.configuration, message));
        let id = match send(&message) {
            Err(ConnectorError::Moved { chat, .. }) => send(&OutgoingMessage { chat, ..message })?,
            sent => sent?,
        };
        assert!(
            is_lossy || (1..=SERVICE_ID_BYTES_MAX).contains(&id.len()),
            "the service's id of a message has 1 to {SERVICE_ID_BYTES_MAX} bytes, and `{id}` has not"
        );
        Ok(id)
    }

    /// Gets the bytes of a file.
    ///
    /// # Errors
    /// The error that the connector returns.
    ///
    /// # Panics
    /// When they are too many.
    pub fn fetch(&self, handle: &str) -> Result<Vec<u8>, ConnectorError> {
        let bytes = granted(|| self.connector.fetch(&self.configuration, handle))?;
        assert!(
            bytes.len() as u64 <= ATTACHMENT_BYTES_MAX,
            "a file has {ATTACHMENT_BYTES_MAX} bytes at most"
        );
        Ok(bytes)
    }

    fn check_intake(&self, intake: Intake) {
        assert!(
            self.describe().intake.contains(&intake),
            "the description does not list {intake:?} in `intake`, so the host never calls this"
        );
    }
}

/// Calls with what a connector always has: requests and secrets, as far as they are granted.
fn granted<T>(call: impl FnOnce() -> T) -> T {
    declaring(vec!["net.http".to_owned(), "secrets.use".to_owned()], call)
}

fn check_description(described: &ConnectorDescription) {
    check_id(&described.id);
    assert!(
        !described.intake.is_empty(),
        "the description lists no `intake`, so nothing arrives"
    );
    assert!(
        described.configuration.is_object(),
        "`configuration` is a JSON Schema, which is an object"
    );
    assert!(
        described.text_limit >= 200,
        "`text_limit` is 200 UTF-16 units at least"
    );
}

fn check_body(described: &ConnectorDescription, body: &Body) {
    let within = |text: &str| text.encode_utf16().count() <= described.text_limit as usize;
    match body {
        Body::Text(text) => assert!(within(text), "the host splits longer texts before"),
        Body::Question { text, choices } => {
            assert!(within(text), "the host splits longer texts before");
            assert!(
                choices.len() <= described.buttons_max as usize,
                "the host numbers the choices where there are more than `buttons_max`"
            );
            assert!(
                choices
                    .iter()
                    .all(|choice| choice.value.len() <= BUTTON_BYTES_MAX),
                "a button's value has {BUTTON_BYTES_MAX} bytes at most"
            );
        }
        Body::Typing => assert!(described.typing, "the description says `typing: false`"),
        Body::Edit { text, .. } => {
            assert!(described.edits, "the description says `edits: false`");
            assert!(within(text), "the host never edits more into a message");
        }
        Body::Acknowledgement(handle) => assert!(
            is_handle(handle),
            "the host never acknowledges with a handle of {} bytes",
            handle.len()
        ),
    }
}

fn check_batch(batch: &Batch) {
    assert!(
        batch.messages.len() <= BATCH_MESSAGES_MAX,
        "a batch has {BATCH_MESSAGES_MAX} messages at most, and this one has {}",
        batch.messages.len()
    );
    for (text, max) in [
        (&batch.cursor, CURSOR_BYTES_MAX),
        (&batch.answer, ANSWER_BYTES_MAX),
    ] {
        assert!(
            text.as_deref().is_none_or(|text| text.len() <= max),
            "a cursor or an answer has {max} bytes at most"
        );
    }
    assert!(
        batch.moved.len() <= BATCH_MOVED_MAX,
        "a batch tells of {BATCH_MOVED_MAX} other ids at most"
    );
    assert!(
        batch.undelivered.len() <= BATCH_UNDELIVERED_MAX,
        "a batch tells of {BATCH_UNDELIVERED_MAX} messages that were not delivered at most"
    );
    batch.messages.iter().for_each(check_incoming);
}

fn check_incoming(message: &Incoming) {
    let others = message.group.iter().chain(&message.replies_to);
    for id in [&message.id, &message.sender, &message.chat]
        .into_iter()
        .chain(others)
    {
        assert!(
            (1..=SERVICE_ID_BYTES_MAX).contains(&id.len()) && !id.chars().any(char::is_control),
            "ids, senders, groups and chats have 1 to {SERVICE_ID_BYTES_MAX} bytes, and `{id}` has not"
        );
    }
    assert!(
        message.attachments.len() <= ATTACHMENTS_MAX,
        "a message has {ATTACHMENTS_MAX} files at most"
    );
    assert!(
        message.acknowledge.as_deref().is_none_or(is_handle),
        "`acknowledge` has 1 to {ACKNOWLEDGE_BYTES_MAX} bytes; the host leaves any other one out"
    );
    let (Said::Text(said) | Said::Button(said) | Said::Aside(said)) = &message.said;
    assert!(
        said.len() <= INCOMING_TEXT_BYTES_MAX,
        "a message has {INCOMING_TEXT_BYTES_MAX} bytes at most"
    );
}

fn is_handle(handle: &str) -> bool {
    (1..=ACKNOWLEDGE_BYTES_MAX).contains(&handle.len())
}

#[cfg(test)]
mod tests;
