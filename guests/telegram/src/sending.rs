//! Messages of the host, as Telegram takes them.

use crate::api::{Api, Refused};
use agent_host_sdk::{Body, Choice, ConnectorError, OutgoingMessage};
use serde_json::{Value, json};

/// The server's words for marks that it does not understand.
const UNPARSED: &str = "can't parse entities";
/// The server's words for an edit that changes nothing.
const UNMODIFIED: &str = "message is not modified";
/// Buttons beside each other.
const ROW: usize = 2;
/// Letters of a button that stands beside another one.
const SHORT_CHARS_MAX: usize = 16;

/// Sends a message and returns Telegram's id of it.
pub(crate) fn send(api: &Api, message: &OutgoingMessage) -> Result<String, ConnectorError> {
    let chat = addressed(&message.chat);
    match &message.body {
        Body::Text(text) => message_id(&shown(api, "sendMessage", &chat, text)?),
        Body::Question { text, choices } => {
            let mut asked = chat;
            asked["reply_markup"] = json!({ "inline_keyboard": keyboard(choices) });
            message_id(&shown(api, "sendMessage", &asked, text)?)
        }
        Body::Typing => {
            let mut asked = chat;
            asked["action"] = json!("typing");
            api.act("sendChatAction", &asked)?;
            Ok(String::new())
        }
        Body::Edit { id, text } => edit(api, &chat, id, text),
        // The button shows until then that it is being worked on.
        Body::Acknowledgement(query) => {
            let asked = json!({ "callback_query_id": query });
            api.act("answerCallbackQuery", &asked)?;
            Ok(String::new())
        }
    }
}

/// The chat, and the topic in it.
fn addressed(chat: &str) -> Value {
    match chat.split_once('/') {
        Some((chat, topic)) => json!({
            "chat_id": chat,
            "message_thread_id": topic.parse::<i64>().unwrap_or_default(),
        }),
        None => json!({ "chat_id": chat }),
    }
}

fn edit(api: &Api, chat: &Value, id: &str, text: &str) -> Result<String, ConnectorError> {
    let mut asked = json!({ "chat_id": chat["chat_id"] });
    asked["message_id"] = json!(id.parse::<i64>().unwrap_or_default());
    match shown(api, "editMessageText", &asked, text) {
        Err(ConnectorError::Rejected(words)) if words.contains(UNMODIFIED) => Ok(id.to_owned()),
        // The id stays, whatever more the answer says.
        edited => edited.map(|_| id.to_owned()),
    }
}

/// Has a text shown with its marks, or without any where the server does not understand them: it
/// has done nothing then.
fn shown(api: &Api, method: &str, asked: &Value, text: &str) -> Result<Value, ConnectorError> {
    let mut marked = asked.clone();
    marked["text"] = json!(markdown::telegram(text));
    marked["parse_mode"] = json!("HTML");
    marked["link_preview_options"] = json!({ "is_disabled": true });
    let result = match api.act(method, &marked) {
        Err(Refused::Wrong(words)) if words.contains(UNPARSED) => {
            let mut plain = asked.clone();
            plain["text"] = json!(markdown::plain(text));
            api.act(method, &plain)
        }
        result => result,
    };
    result.map_err(ConnectorError::from)
}

fn message_id(message: &Value) -> Result<String, ConnectorError> {
    message["message_id"]
        .as_i64()
        .map(|id| id.to_string())
        .ok_or_else(|| ConnectorError::Unknown("the answer has no `message_id`".to_owned()))
}

/// The buttons, in rows: short ones beside each other.
fn keyboard(choices: &[Choice]) -> Vec<Vec<Value>> {
    let are_short = choices
        .iter()
        .all(|choice| choice.label.chars().count() <= SHORT_CHARS_MAX);
    let row = if are_short { ROW } else { 1 };
    choices
        .chunks(row)
        .map(|row| {
            let buttons = row
                .iter()
                .map(|choice| json!({ "text": choice.label, "callback_data": choice.value }));
            buttons.collect()
        })
        .collect()
}
