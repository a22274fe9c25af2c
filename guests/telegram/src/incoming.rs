//! Updates of Telegram, as messages for the host.

use agent_host_sdk::{Attachment, Incoming, Said};
use serde_json::Value;

/// Files of one message that are taken.
const ATTACHMENTS_MAX: usize = 10;

/// The messages in updates. What is neither said nor pressed is left out.
pub(crate) fn of_updates(updates: &[Value]) -> Vec<Incoming> {
    updates.iter().filter_map(of_update).collect()
}

/// The id from which the next poll goes on; none if there was no update.
pub(crate) fn cursor_after(updates: &[Value]) -> Option<String> {
    let ids = updates
        .iter()
        .filter_map(|update| update["update_id"].as_i64());
    ids.max().map(|last| last.saturating_add(1).to_string())
}

fn of_update(update: &Value) -> Option<Incoming> {
    let id = format!("update-{}", update.get("update_id")?.as_i64()?);
    if let Some(query) = update.get("callback_query") {
        return of_button(id, query);
    }
    let message = update.get("message")?;
    let said = ["text", "caption"]
        .iter()
        .filter_map(|key| message.get(key)?.as_str())
        .find(|said| !said.is_empty())
        .unwrap_or_default();
    let attachments = attachments(message);
    if said.is_empty() && attachments.is_empty() {
        return None;
    }
    let mut incoming = begun(id, message.get("from")?, message)?;
    incoming.said = Said::Text(said.to_owned());
    incoming.attachments = attachments;
    Some(incoming)
}

fn of_button(id: String, query: &Value) -> Option<Incoming> {
    let message = query.get("message")?;
    let mut incoming = begun(id, query.get("from")?, message)?;
    incoming.said = Said::Button(query.get("data")?.as_str()?.to_owned());
    incoming.acknowledge = query.get("id").and_then(Value::as_str).map(str::to_owned);
    Some(incoming)
}

/// A message without what it says.
fn begun(id: String, from: &Value, message: &Value) -> Option<Incoming> {
    // Bots talking with bots would never end.
    if from.get("is_bot").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    let chat = message.get("chat")?;
    let chat_id = chat.get("id")?.as_i64()?.to_string();
    let is_private = chat.get("type").and_then(Value::as_str) == Some("private");
    let in_topic = message.get("is_topic_message").and_then(Value::as_bool) == Some(true);
    let topic = message.get("message_thread_id").and_then(Value::as_i64);
    Some(Incoming {
        id,
        sender: from.get("id")?.as_i64()?.to_string(),
        sender_name: name(from),
        group: (!is_private).then(|| chat_id.clone()),
        chat: match topic.filter(|_| in_topic) {
            Some(topic) => format!("{chat_id}/{topic}"),
            None => chat_id,
        },
        said: Said::Text(String::new()),
        quotations: Vec::new(),
        attachments: Vec::new(),
        sent_ms: message
            .get("date")
            .and_then(Value::as_u64)
            .unwrap_or_default()
            .saturating_mul(1_000),
        acknowledge: None,
    })
}

fn name(from: &Value) -> Option<String> {
    let part = |key: &str| from.get(key).and_then(Value::as_str);
    match (part("first_name"), part("last_name")) {
        (Some(first), Some(last)) => Some(format!("{first} {last}")),
        (first, last) => first.or(last).or(part("username")).map(str::to_owned),
    }
}

/// The files of a message. Of a photo, which comes in several sizes, it is the largest.
fn attachments(message: &Value) -> Vec<Attachment> {
    let photo = message
        .get("photo")
        .and_then(Value::as_array)
        .and_then(|sizes| sizes.last())
        .and_then(|photo| attachment(photo, "photo.jpg", "image/jpeg"));
    let kinds = [
        ("document", "file", "application/octet-stream"),
        ("voice", "voice.ogg", "audio/ogg"),
        ("audio", "audio.mp3", "audio/mpeg"),
        ("video", "video.mp4", "video/mp4"),
        ("video_note", "video.mp4", "video/mp4"),
    ];
    let others = kinds
        .iter()
        .filter_map(|(key, usual, media_type)| attachment(message.get(key)?, usual, media_type));
    photo
        .into_iter()
        .chain(others)
        .take(ATTACHMENTS_MAX)
        .collect()
}

fn attachment(file: &Value, usual_name: &str, usual_type: &str) -> Option<Attachment> {
    let text = |key: &str| file.get(key).and_then(Value::as_str);
    Some(Attachment {
        name: text("file_name").unwrap_or(usual_name).to_owned(),
        media_type: text("mime_type").unwrap_or(usual_type).to_owned(),
        handle: text("file_id")?.to_owned(),
        size: file.get("file_size").and_then(Value::as_u64),
    })
}
