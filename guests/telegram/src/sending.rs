//! Messages of the host, as Telegram takes them.

use crate::api::{Api, Refused};
use crate::incoming::items;
use agent_host_sdk::{Body, Choice, ConnectorError, OutgoingMessage};
use serde_json::{Value, json};

/// The server's words for marks that it does not understand.
const UNPARSED: &str = "can't parse entities";
/// The server's words for an edit that changes nothing.
const UNMODIFIED: &str = "message is not modified";
/// Buttons beside each other.
const ROW: usize = 2;
/// Letters of what was pressed that are told, of the 200 that Telegram shows.
const REPORTED_CHARS_MAX: usize = 190;
/// Letters of a button that stands beside another one.
const SHORT_CHARS_MAX: usize = 16;

/// Sends a message and returns Telegram's id of it.
pub(crate) fn send(api: &Api, message: &OutgoingMessage) -> Result<String, ConnectorError> {
    match done(api, message) {
        Ok(id) => Ok(id),
        Err(refused) => Err(refused.in_chat(&message.chat)),
    }
}

fn done(api: &Api, message: &OutgoingMessage) -> Result<String, Refused> {
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
        Body::Acknowledgement(handle) => {
            acknowledge(api, &chat, handle)?;
            Ok(String::new())
        }
    }
}

/// The handle by which a pressed button is acknowledged.
pub(crate) fn handle_of(query: &Value) -> Option<String> {
    let message = &query["message"];
    let pressed = items(&message["reply_markup"]["inline_keyboard"])
        .iter()
        .flat_map(items)
        .find(|button| button["callback_data"] == query["data"]);
    let label = pressed.map_or(&Value::Null, |button| &button["text"]);
    let handle = json!({
        "query": query["id"].as_str()?,
        "message": message["message_id"],
        "label": label,
    });
    Some(handle.to_string())
}

/// Says what was pressed, and takes the buttons away. The button shows until then that it is being
/// worked on.
fn acknowledge(api: &Api, chat: &Value, handle: &str) -> Result<(), Refused> {
    // A handle of another form is the id of the press alone.
    let handle: Value = serde_json::from_str(handle).unwrap_or(json!({ "query": handle }));
    let mut asked = json!({ "callback_query_id": handle["query"] });
    if let Some(label) = handle["label"].as_str() {
        let label: String = label.chars().take(REPORTED_CHARS_MAX).collect();
        asked["text"] = json!(format!("✓ {label}"));
    }
    match api.act("answerCallbackQuery", &asked) {
        // It is too late to answer, and not to take the buttons away.
        Ok(_) | Err(Refused::Wrong(_)) => {}
        Err(refused) => return Err(refused),
    }
    if handle["message"].is_null() {
        return Ok(());
    }
    let asked = json!({
        "chat_id": chat["chat_id"],
        "message_id": handle["message"],
        "reply_markup": { "inline_keyboard": [] },
    });
    match api.act("editMessageReplyMarkup", &asked) {
        // They are gone already, or the message is.
        Ok(_) | Err(Refused::Wrong(_)) => Ok(()),
        Err(refused) => Err(refused),
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

fn edit(api: &Api, chat: &Value, id: &str, text: &str) -> Result<String, Refused> {
    let mut asked = json!({ "chat_id": chat["chat_id"] });
    asked["message_id"] = json!(id.parse::<i64>().unwrap_or_default());
    match shown(api, "editMessageText", &asked, text) {
        Err(Refused::Wrong(words)) if words.contains(UNMODIFIED) => Ok(id.to_owned()),
        // The id stays, whatever more the answer says.
        edited => edited.map(|_| id.to_owned()),
    }
}

/// Has a text shown with its marks, or without any where the server does not understand them: it
/// has done nothing then.
fn shown(api: &Api, method: &str, asked: &Value, text: &str) -> Result<Value, Refused> {
    let mut marked = asked.clone();
    marked["text"] = json!(markdown::telegram(text));
    marked["parse_mode"] = json!("HTML");
    marked["link_preview_options"] = json!({ "is_disabled": true });
    match api.act(method, &marked) {
        Err(Refused::Wrong(words)) if words.contains(UNPARSED) => {
            let mut plain = asked.clone();
            plain["text"] = json!(markdown::plain(text));
            api.act(method, &plain)
        }
        result => result,
    }
}

fn message_id(message: &Value) -> Result<String, Refused> {
    message["message_id"]
        .as_i64()
        .map(|id| id.to_string())
        .ok_or_else(|| {
            let reported = "the answer has no `message_id`".to_owned();
            Refused::Other(ConnectorError::Unknown(reported))
        })
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
