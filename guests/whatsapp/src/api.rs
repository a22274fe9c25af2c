//! Calls of the Cloud API, what their failures mean, and messages of the host as it takes them.

use crate::{Configuration, GROUP};
use agent_host_sdk::http::{Request, Response};
use agent_host_sdk::{Body, Choice, ConnectorError, OutgoingMessage};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The time that the server has to answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// Time after which a server that failed is asked again, in milliseconds.
const RETRY_MS: u32 = 5_000;
/// Time after which a server that limits the rate is asked again, in milliseconds.
const LIMITED_MS: u32 = 60_000;
/// Bytes of a file.
const FILE_BYTES_MAX: usize = 8 << 20;
/// Error codes by which the service says that the token does not count, or not for this.
const UNAUTHORISED: [i64; 5] = [0, 3, 10, 190, 131_005];
/// Error codes of permissions that the token has not, or has no longer.
const UNPERMITTED: RangeInclusive<i64> = 200..=299;
/// Error codes of limits on the rate.
const LIMITED: [i64; 6] = [4, 80_007, 130_429, 131_048, 131_056, 133_016];
/// Error codes by which the service says that it did nothing, and may do it later.
const LATER: [i64; 3] = [2, 131_016, 133_004];
/// Error codes after which it cannot be told whether anything was done.
const UNCLEAR: [i64; 2] = [1, 131_000];

/// The Cloud API of one phone number.
pub(crate) struct Api {
    configuration: Configuration,
}

impl Api {
    pub(crate) fn new(configuration: Configuration) -> Self {
        Self { configuration }
    }

    /// Sends a message, once, and returns the service's id of it.
    pub(crate) fn message(&self, asked: &Value) -> Result<String, ConnectorError> {
        let Configuration {
            server,
            version,
            phone_number_id,
            secret,
            ..
        } = &self.configuration;
        let response = Request::post(format!("{server}/{version}/{phone_number_id}/messages"))
            .secret_header("authorization", secret)
            .json(asked)
            .timeout(PATIENCE)
            .send()
            .map_err(|error| ConnectorError::of_acting(&error, RETRY_MS))?;
        let answer = answer(&response)?;
        answer["messages"][0]["id"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| ConnectorError::Unknown("the answer has no id of a message".to_owned()))
    }

    /// Gets the bytes of a file by its id.
    pub(crate) fn file(&self, id: &str) -> Result<Vec<u8>, ConnectorError> {
        let Configuration {
            server,
            version,
            file_server,
            secret,
            ..
        } = &self.configuration;
        let reading = |error| ConnectorError::of_reading(&error, RETRY_MS);
        let found = Request::get(format!("{server}/{version}/{id}"))
            .secret_header("authorization", secret)
            .timeout(PATIENCE)
            .send()
            .map_err(reading)?;
        let found = answer(&found)?;
        let url = found["url"].as_str().unwrap_or_default();
        // A URL of anybody else's would get the token.
        if !url.starts_with(&format!("{file_server}/")) {
            return Err(ConnectorError::Rejected(
                "the file lies elsewhere".to_owned(),
            ));
        }
        let response = Request::get(url)
            .secret_header("authorization", secret)
            .timeout(PATIENCE)
            .body_bytes_max(FILE_BYTES_MAX)
            .send()
            .map_err(reading)?;
        ConnectorError::file_of(&response, RETRY_MS)
    }
}

/// Reads an answer: its content, or why there is none.
fn answer(response: &Response) -> Result<Value, ConnectorError> {
    let status = response.status();
    let unclear = || format!("the server answered {status} without a result");
    let answer: Value = response
        .json()
        .map_err(|_| ConnectorError::Unknown(unclear()))?;
    let Some(error) = answer.get("error") else {
        return if response.is_success() {
            Ok(answer)
        } else {
            Err(ConnectorError::Unknown(unclear()))
        };
    };
    let words = error["error_data"]["details"]
        .as_str()
        .or(error["message"].as_str())
        .unwrap_or("no reason given")
        .to_owned();
    let code = error["code"].as_i64();
    let is_one_of = |codes: &[i64]| code.is_some_and(|code| codes.contains(&code));
    let is_unpermitted = code.is_some_and(|code| UNPERMITTED.contains(&code));
    Err(
        if status == 401 || is_unpermitted || is_one_of(&UNAUTHORISED) {
            ConnectorError::Unauthorised(words)
        } else if status == 429 || is_one_of(&LIMITED) {
            ConnectorError::later(&words, LIMITED_MS)
        } else if is_one_of(&LATER) {
            ConnectorError::later(&words, RETRY_MS)
        } else if is_one_of(&UNCLEAR) || code.is_none() {
            ConnectorError::Unknown(words)
        } else {
            ConnectorError::Rejected(words)
        },
    )
}

/// Choices that are buttons; more are a list.
const BUTTONS_MAX: usize = 3;
/// Letters of a question above buttons; a longer one has a list.
const ABOVE_BUTTONS_MAX: usize = 1_024;
/// Letters of a button.
const BUTTON_CHARS_MAX: usize = 20;
/// Letters of a line in a list.
const ROW_CHARS_MAX: usize = 24;

/// Sends a message and returns the service's id of it.
pub(crate) fn send(api: &Api, message: &OutgoingMessage) -> Result<String, ConnectorError> {
    let mut asked = addressed(&message.chat);
    match &message.body {
        Body::Text(text) => say(&mut asked, &markdown::whatsapp(text)),
        // Groups have neither buttons nor lists. The label of a choice is an answer too.
        Body::Question { text, choices } if message.chat.starts_with(GROUP) => {
            say(&mut asked, &in_words(&markdown::whatsapp(text), choices));
        }
        Body::Question { text, choices } => {
            asked["type"] = json!("interactive");
            asked["interactive"] = interactive(&markdown::whatsapp(text), choices);
        }
        Body::Typing | Body::Edit { .. } => {
            let none = "WhatsApp neither edits nor shows who is typing".to_owned();
            return Err(ConnectorError::Rejected(none));
        }
        Body::Acknowledgement(_) => {
            let none = "WhatsApp takes the answer to its call as the acknowledgement".to_owned();
            return Err(ConnectorError::Rejected(none));
        }
    }
    api.message(&asked)
}

/// The recipient: a group, or a person by phone number or by the id that the service gave them for
/// this business, such as `US.1234`.
fn addressed(chat: &str) -> Value {
    let mut asked = json!({ "messaging_product": "whatsapp", "recipient_type": "individual" });
    if let Some(group) = chat.strip_prefix(GROUP) {
        asked["recipient_type"] = json!("group");
        asked["to"] = json!(group);
    } else if chat.contains('.') {
        asked["recipient"] = json!(chat);
    } else {
        asked["to"] = json!(chat);
    }
    asked
}

fn say(asked: &mut Value, text: &str) {
    asked["type"] = json!("text");
    asked["text"] = json!({ "body": text, "preview_url": false });
}

fn in_words(text: &str, choices: &[Choice]) -> String {
    let labels: Vec<&str> = choices.iter().map(|choice| choice.label.as_str()).collect();
    format!("{text}\n\nReply with one of: {}", labels.join(", "))
}

fn interactive(text: &str, choices: &[Choice]) -> Value {
    let body = json!({ "text": text });
    let titles: BTreeSet<String> = choices
        .iter()
        .map(|choice| short(&choice.label, BUTTON_CHARS_MAX))
        .collect();
    // The service refuses buttons that say the same.
    let fit = choices.len() <= BUTTONS_MAX && titles.len() == choices.len();
    if fit && text.chars().count() <= ABOVE_BUTTONS_MAX {
        let button = |choice: &Choice| {
            let title = short(&choice.label, BUTTON_CHARS_MAX);
            json!({ "type": "reply", "reply": { "id": choice.value, "title": title } })
        };
        let buttons: Vec<Value> = choices.iter().map(button).collect();
        return json!({ "type": "button", "body": body, "action": { "buttons": buttons } });
    }
    let row = |choice: &Choice| json!({ "id": choice.value, "title": short(&choice.label, ROW_CHARS_MAX) });
    let rows: Vec<Value> = choices.iter().map(row).collect();
    let action = json!({ "button": "Choose", "sections": [{ "title": "Choices", "rows": rows }] });
    json!({ "type": "list", "body": body, "action": action })
}

/// The text, cut where it is longer than the service takes.
fn short(label: &str, chars_max: usize) -> String {
    if label.chars().count() <= chars_max {
        return label.to_owned();
    }
    let kept: String = label.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{kept}…")
}
