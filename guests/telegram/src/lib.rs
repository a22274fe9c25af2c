//! The connector to Telegram, over the Bot API: by long polling or by webhook.

#![expect(
    clippy::indexing_slicing,
    reason = "what a JSON value does not have reads as null, and what is written to is an object"
)]

mod api;
mod incoming;
mod kinds;
mod sending;

use crate::api::Api;
use agent_host_sdk::{
    Batch, Connector, ConnectorDescription, ConnectorError, IncomingCall, Intake, OutgoingMessage,
    configured, export_connector,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// UTF-16 units of a message. Telegram takes 4,096; some are left for marks.
const TEXT_LIMIT: u32 = 4_000;
/// Buttons of a question that fit on the screen of a phone.
const BUTTONS_MAX: u32 = 10;
/// Updates of one poll: Telegram gives 100 at most.
const UPDATES_MAX: usize = 100;
/// Kinds of updates that are read. Reactions come only to those who ask for them.
const UPDATES: [&str; 4] = [
    "message",
    "edited_message",
    "message_reaction",
    "callback_query",
];

/// The connector.
#[derive(Debug, Clone, Copy)]
pub struct Telegram;

/// Its configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Configuration {
    /// The server of the Bot API.
    server: String,
    /// The name of the secret with the bot's token, which is bound to the paths `/bot` and
    /// `/file/bot` of the server.
    secret: String,
    /// Seconds that a poll waits for news; the component's `wallMsMax` is longer.
    #[schemars(range(min = 0, max = 50))]
    long_poll_s: u32,
    /// False to read in groups only what mentions the bot, replies to it or is a command to it.
    all_messages: bool,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            server: "https://api.telegram.org".to_owned(),
            secret: "telegram".to_owned(),
            long_poll_s: 20,
            all_messages: true,
        }
    }
}

impl Connector for Telegram {
    fn describe(&self) -> ConnectorDescription {
        ConnectorDescription {
            text_limit: TEXT_LIMIT,
            buttons_max: BUTTONS_MAX,
            edits: true,
            typing: true,
            ..ConnectorDescription::new(
                "telegram",
                "Talks with people on Telegram as a bot.",
                [Intake::Polling, Intake::Webhook],
            )
        }
        .configured_by::<Configuration>()
    }

    fn receive(
        &self,
        configuration: &Value,
        incoming_call: &IncomingCall,
    ) -> Result<Batch, ConnectorError> {
        let configuration: Configuration = configured(configuration)?;
        let update: Value = serde_json::from_slice(&incoming_call.body)
            .map_err(|error| ConnectorError::Rejected(format!("an update is JSON: {error}")))?;
        let hears_all = configuration.all_messages;
        read(&Api::new(configuration), hears_all, &[update])
    }

    fn poll(&self, configuration: &Value, cursor: Option<&str>) -> Result<Batch, ConnectorError> {
        let configuration: Configuration = configured(configuration)?;
        let wait_s = configuration.long_poll_s;
        let hears_all = configuration.all_messages;
        let api = Api::new(configuration);
        let asked = json!({
            "timeout": wait_s,
            "limit": UPDATES_MAX,
            "offset": cursor.and_then(|cursor| cursor.parse::<i64>().ok()),
            "allowed_updates": UPDATES,
        });
        let answer = api.read("getUpdates", &asked, wait_s)?;
        let updates = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Batch {
            cursor: incoming::cursor_after(updates),
            next_ms: if wait_s == 0 { 1_000 } else { 0 },
            ..read(&api, hears_all, updates)?
        })
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

/// Reads updates. In groups, only what is said to the bot is read where not all is.
fn read(api: &Api, hears_all: bool, updates: &[Value]) -> Result<Batch, ConnectorError> {
    let asks_who_it_is = !hears_all && updates.iter().any(incoming::is_in_group);
    let bot = match asks_who_it_is {
        true => Some(api.bot()?),
        false => None,
    };
    Ok(Batch {
        messages: incoming::of_updates(updates, bot.as_ref()),
        moved: incoming::moved(updates),
        ..Batch::default()
    })
}

export_connector!(Telegram, wants: [
    host_by("api.telegram.org", "GET POST", "reads and sends messages"),
]);

#[cfg(test)]
mod tests;
