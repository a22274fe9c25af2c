//! Messages of the host, as WhatsApp takes them.

use crate::GROUP;
use crate::api::Api;
use agent_host_sdk::{Body, Choice, ConnectorError, OutgoingMessage};
use serde_json::{Value, json};
use std::collections::BTreeSet;

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
