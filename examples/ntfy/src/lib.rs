//! A connector to [ntfy](https://ntfy.sh): what is published in one topic is said to an agent, and
//! its replies are published in another one.

use agent_host_sdk::http::{Request, Response};
use agent_host_sdk::{
    Batch, Body, Connector, ConnectorDescription, ConnectorError, Incoming, IncomingCall, Intake,
    OutgoingMessage, Said, configured, export_connector,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// Time between two polls, in milliseconds.
const POLL_MS: u32 = 5_000;
/// Time after which a service that failed is asked again, in milliseconds.
const RETRY_MS: u32 = 30_000;
/// The time that the server has.
const PATIENCE: Duration = Duration::from_secs(10);
/// Messages of one batch.
const BATCH_MAX: usize = 100;
/// UTF-16 units of a message. ntfy takes 4,096 bytes as a message, and a unit has three at most.
const TEXT_LIMIT: u32 = 1_300;

/// The connector.
#[derive(Debug)]
pub struct Ntfy;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Configuration {
    /// The server, such as `https://ntfy.sh`.
    server: String,
    /// The topic that is read.
    inbox: String,
    /// The topic in which replies are published.
    outbox: String,
}

/// A line of the server's answer, as far as it is read.
#[derive(Debug, Deserialize)]
struct Line {
    id: String,
    time: u64,
    event: String,
    #[serde(default)]
    message: String,
}

/// The server's answer to a message.
#[derive(Debug, Deserialize)]
struct Published {
    id: String,
}

impl Connector for Ntfy {
    fn describe(&self) -> ConnectorDescription {
        ConnectorDescription {
            text_limit: TEXT_LIMIT,
            ..ConnectorDescription::new("ntfy", "Talks in two topics of ntfy.", [Intake::Polling])
        }
        .configured_by::<Configuration>()
    }

    fn receive(&self, _: &Value, _: &IncomingCall) -> Result<Batch, ConnectorError> {
        Err(ConnectorError::Rejected("ntfy calls nobody".to_owned()))
    }

    fn poll(&self, configuration: &Value, cursor: Option<&str>) -> Result<Batch, ConnectorError> {
        let Configuration { server, inbox, .. } = configured(configuration)?;
        let response = Request::get(format!("{server}/{inbox}/json"))
            .query("poll", "1")
            .query("since", cursor.unwrap_or("10m"))
            .timeout(PATIENCE)
            .send()
            .map_err(|error| ConnectorError::of_reading(&error, RETRY_MS))?;
        let text = accepted(&response)?;
        let messages: Vec<Incoming> = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Line>(line).ok())
            .filter(|line| line.event == "message" && !line.message.is_empty())
            .take(BATCH_MAX)
            .map(|line| incoming(line, &inbox))
            .collect();
        Ok(Batch {
            cursor: messages.last().map(|last| last.id.clone()),
            next_ms: POLL_MS,
            messages,
            ..Batch::default()
        })
    }

    fn send(
        &self,
        configuration: &Value,
        message: &OutgoingMessage,
    ) -> Result<String, ConnectorError> {
        let Configuration { server, outbox, .. } = configured(configuration)?;
        let (Body::Text(text) | Body::Question { text, .. }) = &message.body else {
            return Err(ConnectorError::Rejected(
                "ntfy shows messages only".to_owned(),
            ));
        };
        let response = Request::post(format!("{server}/{outbox}"))
            .header("markdown", "yes")
            .body(text.as_bytes())
            .timeout(PATIENCE)
            .send()
            .map_err(|error| ConnectorError::of_acting(&error, RETRY_MS))?;
        let published: Published = serde_json::from_str(&accepted(&response)?)
            .map_err(|error| ConnectorError::Unknown(format!("the answer is none: {error}")))?;
        Ok(published.id)
    }
}

/// Returns the text of an answer that is a success.
fn accepted(response: &Response) -> Result<String, ConnectorError> {
    match response.status() {
        200..=299 => response
            .text()
            .map(str::to_owned)
            .map_err(|error| ConnectorError::Unknown(error.to_string())),
        401 | 403 => Err(ConnectorError::Unauthorised(
            "the topic is protected".to_owned(),
        )),
        status @ (429 | 503) => {
            let reported = format!("the server answered {status}");
            Err(ConnectorError::later(&reported, RETRY_MS))
        }
        status @ 500..=599 => Err(ConnectorError::Unknown(format!(
            "the server answered {status}"
        ))),
        status => Err(ConnectorError::Rejected(format!(
            "the server answered {status}"
        ))),
    }
}

fn incoming(line: Line, topic: &str) -> Incoming {
    // Whoever knows the topic may publish in it: the topic is who speaks.
    Incoming {
        sent_ms: line.time.saturating_mul(1_000),
        ..Incoming::new(line.id, topic, topic, Said::Text(line.message))
    }
}

export_connector!(Ntfy, wants: [host_by("ntfy.sh", "GET POST", "reads and publishes messages")]);

#[cfg(test)]
mod tests {
    use super::*;
    use agent_host_sdk::harness::{Exchange, serve_http};
    use serde_json::json;

    const LINES: &str = r#"{"id":"a1","time":1700000000,"event":"open","topic":"in"}
{"id":"a2","time":1700000001,"event":"message","topic":"in","message":"hello"}
"#;

    fn exchange() -> Exchange<Ntfy> {
        let configuration = json!({
            "server": "https://ntfy.sh", "inbox": "in", "outbox": "out",
        });
        Exchange::of(Ntfy).configured(configuration)
    }

    #[test]
    fn a_poll_goes_on_after_the_last_message() {
        let server = serve_http(|_| Ok(Response::new(200).with_text(LINES)));
        let mut exchange = exchange();
        let batch = exchange.poll().unwrap();
        assert_eq!(batch.messages.len(), 1);
        assert_eq!(batch.messages[0].said, Said::Text("hello".to_owned()));
        exchange.poll().unwrap();
        let urls: Vec<String> = server.requests().iter().map(|it| it.url()).collect();
        assert_eq!(
            urls,
            [
                "https://ntfy.sh/in/json?poll=1&since=10m",
                "https://ntfy.sh/in/json?poll=1&since=a2"
            ]
        );
    }

    #[test]
    fn a_reply_is_published_in_the_other_topic() {
        let server = serve_http(|_| Ok(Response::new(200).with_text(r#"{"id":"b1"}"#)));
        assert_eq!(exchange().send("in", "**hi**").unwrap(), "b1");
        assert_eq!(server.requests()[0].url(), "https://ntfy.sh/out");
    }

    #[test]
    fn a_busy_server_is_asked_later() {
        let _server = serve_http(|_| Ok(Response::new(429)));
        let error = exchange().send("in", "hi").unwrap_err();
        assert_eq!(error, ConnectorError::RetryLater(RETRY_MS));
    }
}
