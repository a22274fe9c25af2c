//! The connector to WhatsApp, over the Cloud API.

#![expect(
    clippy::indexing_slicing,
    reason = "what a JSON value does not have reads as null, and what is written to is an object"
)]

mod api;
mod incoming;

use crate::api::Api;
use agent_host_sdk::{
    Batch, Connector, ConnectorDescription, ConnectorError, IncomingCall, Intake, OutgoingMessage,
    configured, export_connector,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// UTF-16 units of a message. WhatsApp takes 4,096; some are left for marks and for choices in
/// words.
const TEXT_LIMIT: u32 = 3_800;
/// Choices of a question: more than three are a list.
const BUTTONS_MAX: u32 = 10;
/// Letters before the id of a group in the name of its chat.
const GROUP: &str = "group/";

/// The connector.
#[derive(Debug, Clone, Copy)]
pub struct WhatsApp;

/// Its configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Configuration {
    /// The id of the business's phone number, which is a part of the paths.
    #[schemars(regex(pattern = "^[0-9]{1,32}$"))]
    phone_number_id: String,
    /// The server of the Graph API.
    #[serde(default = "server")]
    server: String,
    /// The version of the Graph API.
    #[serde(default = "version")]
    #[schemars(regex(pattern = "^v[0-9]{1,3}\\.[0-9]$"))]
    version: String,
    /// The server of files.
    #[serde(default = "file_server")]
    file_server: String,
    /// The name of the secret with the access token, which is bound to the header `authorization`
    /// of both servers with the prefix `Bearer `.
    #[serde(default = "secret")]
    secret: String,
}

fn server() -> String {
    "https://graph.facebook.com".to_owned()
}

fn version() -> String {
    "v23.0".to_owned()
}

fn file_server() -> String {
    "https://lookaside.fbsbx.com".to_owned()
}

fn secret() -> String {
    "whatsapp".to_owned()
}

impl Connector for WhatsApp {
    fn describe(&self) -> ConnectorDescription {
        ConnectorDescription {
            text_limit: TEXT_LIMIT,
            buttons_max: BUTTONS_MAX,
            ..ConnectorDescription::new(
                "whatsapp",
                "Talks with people on WhatsApp as a business.",
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
        api::send(&Api::new(configured(configuration)?), message)
    }

    fn fetch(&self, configuration: &Value, handle: &str) -> Result<Vec<u8>, ConnectorError> {
        Api::new(configured(configuration)?).file(handle)
    }
}

export_connector!(WhatsApp, wants: [
    host_by("graph.facebook.com", "GET POST", "sends messages and finds files"),
    host("lookaside.fbsbx.com", "reads files that were sent"),
]);

#[cfg(test)]
mod tests;
