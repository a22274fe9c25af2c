//! Messages of the host, as WhatsApp takes them.

use crate::api::Api;
use agent_host_sdk::{Body, Choice, ConnectorError, OutgoingMessage};
use serde_json::{Value, json};

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
    let mut asked = json!({
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": message.chat,
    });
    match &message.body {
        Body::Text(text) => {
            asked["type"] = json!("text");
            asked["text"] = json!({ "body": markdown::whatsapp(text), "preview_url": false });
        }
        Body::Question { text, choices } => {
            asked["type"] = json!("interactive");
            asked["interactive"] = interactive(&markdown::whatsapp(text), choices);
        }
        Body::Typing | Body::Edit { .. } => {
            let none = "WhatsApp neither edits nor shows who is typing".to_owned();
            return Err(ConnectorError::Rejected(none));
        }
    }
    api.message(&asked)
}

fn interactive(text: &str, choices: &[Choice]) -> Value {
    let body = json!({ "text": text });
    if choices.len() <= BUTTONS_MAX && text.chars().count() <= ABOVE_BUTTONS_MAX {
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
