//! Words of others in a message: of those who wrote what was passed on or is replied to.

use crate::incoming::name;
use crate::kinds;
use crate::words::marked;
use agent_host_sdk::{Quotation, QuotationKind};
use serde_json::Value;

/// The message that is replied to, or the part of it that is quoted.
pub(crate) fn quoted(message: &Value) -> Option<Quotation> {
    let replied = message.get("reply_to_message").filter(|it| is_said(it));
    let elsewhere = message.get("external_reply");
    let author = match (replied, elsewhere) {
        (Some(replied), _) => author(replied),
        (None, Some(elsewhere)) => of_origin(&elsewhere["origin"]),
        (None, None) => None,
    };
    let part = message
        .get("quote")
        .and_then(|quote| Some(marked(quote["text"].as_str()?, &quote["entities"])));
    let text = part
        .or_else(|| replied.map(words))
        .or_else(|| elsewhere.map(words))
        .or_else(|| message.get("reply_to_story").map(|_| "[story]".to_owned()))
        .filter(|text| !text.is_empty())?;
    Some(Quotation {
        kind: QuotationKind::Quoted,
        author,
        text,
    })
}

/// The id of the message of a bot that is replied to: whether it is its own, the host knows.
pub(crate) fn replied_to_bot(message: &Value) -> Option<String> {
    let replied = message
        .get("reply_to_message")
        .filter(|it| is_said(it) && it["from"]["is_bot"] == true)?;
    replied["message_id"].as_i64().map(|id| id.to_string())
}

/// The words of a message that was passed on; none if it was not.
pub(crate) fn forwarded(message: &Value) -> Option<Quotation> {
    Some(Quotation {
        kind: QuotationKind::Forwarded,
        author: passed_on_from(message)?,
        text: words(message),
    })
}

/// Returns the author of a message that was passed on, as far as that is told; none if it was not.
fn passed_on_from(message: &Value) -> Option<Option<String>> {
    if let Some(origin) = message.get("forward_origin") {
        return Some(of_origin(origin));
    }
    // Older servers tell the origin so.
    if let Some(from) = message.get("forward_from") {
        return Some(name(from));
    }
    if let Some(chat) = message.get("forward_from_chat") {
        return Some(title(chat));
    }
    if let Some(hidden) = message.get("forward_sender_name") {
        return Some(hidden.as_str().map(str::to_owned));
    }
    if message.get("forward_date").is_some() {
        return Some(None);
    }
    message.get("via_bot").map(name)
}

fn of_origin(origin: &Value) -> Option<String> {
    match origin["type"].as_str()? {
        "user" => name(&origin["sender_user"]),
        "hidden_user" => origin["sender_user_name"].as_str().map(str::to_owned),
        "chat" => title(&origin["sender_chat"]),
        "channel" => title(&origin["chat"]),
        _ => None,
    }
}

fn author(message: &Value) -> Option<String> {
    passed_on_from(message)
        .flatten()
        .or_else(|| title(message.get("sender_chat")?))
        .or_else(|| name(message.get("from")?))
}

/// The name of a chat.
pub(crate) fn title(chat: &Value) -> Option<String> {
    let title = chat["title"].as_str().map(str::to_owned);
    title.or_else(|| name(chat))
}

/// All that a message says, in words.
fn words(message: &Value) -> String {
    let parts = [
        own_words(message),
        kinds::in_words(message),
        kinds::files_in_words(message),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => kinds::unread(message).unwrap_or_default(),
        false => parts.join("\n"),
    }
}

/// The text of a message, or the one beside its files.
pub(crate) fn own_words(message: &Value) -> Option<String> {
    let said = |text: &str, marks: &str| {
        let text = message.get(text)?.as_str()?;
        (!text.is_empty()).then(|| marked(text, &message[marks]))
    };
    said("text", "entities").or_else(|| said("caption", "caption_entities"))
}

/// Returns true if somebody said a message. Whatever is said in a topic replies to the making of
/// it.
fn is_said(message: &Value) -> bool {
    message.get("forum_topic_created").is_none()
}
