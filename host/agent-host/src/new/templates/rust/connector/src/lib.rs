//! A connector: talks with people at a chat service over HTTP.
//!
//! `GET /messages?after=<id>` of the service lists what people said after a message, and
//! `POST /messages` sends something to one of them. `examples/chat.rs` is such a service. For
//! another one, write its requests and its answers in place of these.

use agent_host_sdk::http::{Request, Response};
use agent_host_sdk::{
    Batch, Body, Connector, ConnectorDescription, ConnectorError, Incoming, IncomingCall, Intake,
    OutgoingMessage, Said, configured, export_connector,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Time between two polls, in milliseconds.
const POLL_MS: u32 = 1_000;
/// Time after which a service that is busy or away is asked again, in milliseconds.
const RETRY_MS: u32 = 2_000;
/// The time that the service has for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Messages of one batch: the host takes no more.
const BATCH_MAX: usize = 100;

/// The connector. Each call has a fresh instance: what is to be kept, the host keeps.
#[derive(Debug)]
pub struct Plugin;

/// The things that the operator writes below `configuration`. The host checks it against this type.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Configuration {
    /// The service, such as `https://chat.example.com`.
    server: String,
}

/// Something that a person said at the service.
#[derive(Debug, Deserialize)]
struct Message {
    id: u64,
    from: String,
    text: String,
    sent_ms: u64,
}

/// The service's answer to a message that was sent.
#[derive(Debug, Deserialize)]
struct Sent {
    id: u64,
}

impl Connector for Plugin {
    fn describe(&self) -> ConnectorDescription {
        ConnectorDescription {
            // The service sends a message once, however often it comes with the same key. Without
            // that, a message of an unknown fate is never sent again.
            idempotent: true,
            ..ConnectorDescription::new(
                "{{name}}",
                "Talks with people at a chat service.",
                [Intake::Polling],
            )
        }
        .configured_by::<Configuration>()
    }

    fn receive(&self, _: &Value, _: &IncomingCall) -> Result<Batch, ConnectorError> {
        Err(ConnectorError::Rejected(
            "the service calls nobody".to_owned(),
        ))
    }

    fn poll(&self, configuration: &Value, cursor: Option<&str>) -> Result<Batch, ConnectorError> {
        let Configuration { server } = configured(configuration)?;
        let response = Request::get(format!("{server}/messages"))
            .query("after", cursor.unwrap_or("0"))
            .timeout(PATIENCE)
            .send()
            .map_err(|error| ConnectorError::of_reading(&error, RETRY_MS))?;
        accept(&response)?;
        let mut messages: Vec<Message> = response
            .json()
            .map_err(|error| ConnectorError::of_reading(&error, RETRY_MS))?;
        messages.truncate(BATCH_MAX);
        Ok(Batch {
            // The host stores it and the messages in one commit.
            cursor: messages.last().map(|last| last.id.to_string()),
            messages: messages.into_iter().map(incoming).collect(),
            next_ms: POLL_MS,
            ..Batch::default()
        })
    }

    fn send(
        &self,
        configuration: &Value,
        message: &OutgoingMessage,
    ) -> Result<String, ConnectorError> {
        let Configuration { server } = configured(configuration)?;
        // The host numbers the choices of a question where a service has no buttons.
        let (Body::Text(text) | Body::Question { text, .. }) = &message.body else {
            return Err(ConnectorError::Rejected(
                "the service shows messages only".to_owned(),
            ));
        };
        let response = Request::post(format!("{server}/messages"))
            .header("idempotency-key", &message.idempotency_key)
            .json(&json!({ "to": message.chat, "text": text }))
            .timeout(PATIENCE)
            .send()
            .map_err(|error| ConnectorError::of_acting(&error, RETRY_MS))?;
        accept(&response)?;
        let Sent { id } = response
            .json()
            .map_err(|error| ConnectorError::Unknown(error.to_string()))?;
        Ok(id.to_string())
    }
}

/// Returns the error of an answer that is no success: it says whether anything was done.
fn accept(response: &Response) -> Result<(), ConnectorError> {
    match response.status() {
        200..=299 => Ok(()),
        401 | 403 => Err(ConnectorError::Unauthorised(
            "the service takes no message of this host".to_owned(),
        )),
        429 | 503 => Err(ConnectorError::RetryLater(RETRY_MS)),
        status @ 500..=599 => Err(ConnectorError::Unknown(format!(
            "the service answered {status}"
        ))),
        status => Err(ConnectorError::Rejected(format!(
            "the service answered {status}"
        ))),
    }
}

fn incoming(message: Message) -> Incoming {
    let Message {
        id,
        from,
        text,
        sent_ms,
    } = message;
    // Each person has one chat here, which has their name.
    let chat = from.clone();
    Incoming {
        sent_ms,
        ..Incoming::new(id.to_string(), from, chat, Said::Text(text))
    }
}

export_connector!(Plugin);

#[cfg(test)]
mod tests {
    use super::{Plugin, RETRY_MS};
    use agent_host_sdk::harness::{Exchange, serve_http};
    use agent_host_sdk::http::Response;
    use agent_host_sdk::{ConnectorError, Said};
    use serde_json::{Value, json};

    fn exchange() -> Exchange<Plugin> {
        Exchange::of(Plugin).configured(json!({ "server": "https://chat.example.com" }))
    }

    #[test]
    fn a_poll_goes_on_after_the_last_message() {
        let messages = json!([{ "id": 7, "from": "ann", "text": "hello", "sent_ms": 1_000 }]);
        let server = serve_http(move |_| Ok(Response::new(200).with_json(&messages)));
        let mut exchange = exchange();
        let batch = exchange.poll().unwrap();
        assert_eq!(batch.messages.len(), 1);
        assert_eq!(batch.messages[0].sender, "ann");
        assert_eq!(batch.messages[0].said, Said::Text("hello".to_owned()));
        exchange.poll().unwrap();
        let requests = server.requests();
        let after: Vec<Option<String>> = requests.iter().map(|it| it.parameter("after")).collect();
        assert_eq!(after, [Some("0".to_owned()), Some("7".to_owned())]);
    }

    #[test]
    fn a_reply_is_sent_to_its_chat_with_the_key_of_its_outbound_message() {
        let server = serve_http(|_| Ok(Response::new(200).with_json(&json!({ "id": 8 }))));
        assert_eq!(exchange().send("ann", "hi").unwrap(), "8");
        let request = &server.requests()[0];
        let body: Value = request.json().unwrap();
        assert_eq!(body, json!({ "to": "ann", "text": "hi" }));
        assert!(request.header("idempotency-key").is_some());
    }

    #[test]
    fn a_busy_service_is_asked_again_and_a_broken_one_may_have_sent_the_message() {
        let _server = serve_http(|_| Ok(Response::new(429)));
        let busy = exchange().send("ann", "hi").unwrap_err();
        assert_eq!(busy, ConnectorError::RetryLater(RETRY_MS));
        let _server = serve_http(|_| Ok(Response::new(500)));
        let broken = exchange().send("ann", "hi").unwrap_err();
        assert!(matches!(broken, ConnectorError::Unknown(_)), "{broken}");
    }
}
