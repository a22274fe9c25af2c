//! The connector to Slack, over the Events API and interactive messages.

#![expect(
    clippy::indexing_slicing,
    reason = "what a JSON value does not have reads as null, and what is written to is an object"
)]

mod api;
mod incoming;
mod sending;

use crate::api::Api;
use agent_host_sdk::{
    Batch, Connector, ConnectorDescription, ConnectorError, IncomingCall, Intake, OutgoingMessage,
    configured, export_connector,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// UTF-16 units of a message: a section of blocks takes 3,000, and some are left for marks.
const TEXT_LIMIT: u32 = 2_800;
/// Buttons of a question.
const BUTTONS_MAX: u32 = 10;

/// The connector.
#[derive(Debug, Clone, Copy)]
pub struct Slack;

/// Its configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Configuration {
    /// The server of the Web API.
    server: String,
    /// The server of files.
    file_server: String,
    /// The name of the secret with the bot's token, which is bound to the header `authorization` of
    /// both servers with the prefix `Bearer `.
    secret: String,
    /// True to read everything in channels that the bot is in, and not only what mentions it or
    /// stands in a thread in which it takes part.
    all_messages: bool,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            server: "https://slack.com".to_owned(),
            file_server: "https://files.slack.com".to_owned(),
            secret: "slack".to_owned(),
            all_messages: false,
        }
    }
}

impl Connector for Slack {
    fn describe(&self) -> ConnectorDescription {
        ConnectorDescription {
            text_limit: TEXT_LIMIT,
            buttons_max: BUTTONS_MAX,
            edits: true,
            ..ConnectorDescription::new(
                "slack",
                "Talks with people on Slack as an app.",
                [Intake::Webhook],
            )
        }
        .configured_by::<Configuration>()
    }

    fn receive(
        &self,
        configuration: &Value,
        incoming_call: &IncomingCall,
    ) -> Result<Batch, ConnectorError> {
        incoming::read(&configured(configuration)?, &incoming_call.body)
    }

    fn send(
        &self,
        configuration: &Value,
        message: &OutgoingMessage,
    ) -> Result<String, ConnectorError> {
        sending::send(&Api::new(configured(configuration)?), message)
    }

    fn fetch(&self, configuration: &Value, handle: &str) -> Result<Vec<u8>, ConnectorError> {
        Api::new(configured(configuration)?).file(handle)
    }
}

export_connector!(Slack, wants: [
    host_by("slack.com", "POST", "sends messages"),
    host("files.slack.com", "reads files that were sent"),
]);

#[cfg(test)]
mod tests;
