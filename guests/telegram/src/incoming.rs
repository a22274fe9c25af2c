//! Updates of Telegram, as messages for the host.

use crate::quotations::{forwarded, own_words, quoted, replied_to_bot, title};
use crate::words::{covered, items};
use crate::{kinds, sending};
use agent_host_sdk::{Attachment, Incoming, Moved, Said};
use serde_json::Value;

/// Files of one message that are taken.
const ATTACHMENTS_MAX: usize = 10;
/// The words before what a message says since it was edited.
const EDITED: &str = "[edited]";

/// The bot itself, as people in groups name it.
#[derive(Debug)]
pub(crate) struct Bot {
    pub(crate) id: i64,
    pub(crate) username: String,
}

/// The messages in updates. In groups, only what is said to the bot is read where one is given.
pub(crate) fn of_updates(updates: &[Value], to: Option<&Bot>) -> Vec<Incoming> {
    updates
        .iter()
        .filter_map(|update| of_update(update, to))
        .collect()
}

/// Returns true if something was said in a group.
pub(crate) fn is_in_group(update: &Value) -> bool {
    ["message", "edited_message", "message_reaction"]
        .iter()
        .filter_map(|kind| update.get(kind))
        .any(|message| !is_private(&message["chat"]))
}

/// The groups that became supergroups, which have other ids.
pub(crate) fn moved(updates: &[Value]) -> Vec<Moved> {
    let moved = |update: &Value| {
        let message = update.get("message")?;
        let chat = message["chat"]["id"].as_i64()?;
        let other = |key: &str| message.get(key).and_then(Value::as_i64);
        let (from, to) = match (other("migrate_from_chat_id"), other("migrate_to_chat_id")) {
            (Some(from), _) => (from, chat),
            (None, to) => (chat, to?),
        };
        Some(Moved {
            from: from.to_string(),
            to: to.to_string(),
            is_group: true,
        })
    };
    updates.iter().filter_map(moved).collect()
}

/// The id from which the next poll goes on; none if there was no update.
pub(crate) fn cursor_after(updates: &[Value]) -> Option<String> {
    let ids = updates
        .iter()
        .filter_map(|update| update["update_id"].as_i64());
    ids.max().map(|last| last.saturating_add(1).to_string())
}

fn of_update(update: &Value, to: Option<&Bot>) -> Option<Incoming> {
    let id = format!("update-{}", update.get("update_id")?.as_i64()?);
    if let Some(query) = update.get("callback_query") {
        return of_button(id, query);
    }
    if let Some(changed) = update.get("message_reaction") {
        return of_reaction(id, changed).filter(|it| to.is_none() || it.group.is_none());
    }
    let edited = update.get("edited_message");
    // A live location is edited over and over while its sender moves.
    let edited = edited.filter(|message| message.get("location").is_none());
    let message = edited.or_else(|| update.get("message"))?;
    let mut incoming = of_message(id, message)?;
    let is_meant = |bot: &Bot| incoming.group.is_none() || is_said_to(bot, message);
    if !to.is_none_or(is_meant) {
        return None;
    }
    if let (Some(_), Said::Text(said) | Said::Aside(said)) = (edited, &incoming.said) {
        incoming.said = Said::Aside(format!("{EDITED} {said}").trim_end().to_owned());
    }
    Some(incoming)
}

fn of_message(id: String, message: &Value) -> Option<Incoming> {
    let sender = match message.get("sender_chat") {
        // Whoever speaks as a channel or as a group is no bot, whatever Telegram puts there.
        Some(chat) => Sender::of_chat(chat)?,
        None => Sender::of(message.get("from")?)?,
    };
    let mut incoming = begun(id, sender, message)?;
    incoming.attachments = attachments(message);
    incoming.quotations.extend(quoted(message));
    incoming.replies_to = replied_to_bot(message);
    if let Some(forwarded) = forwarded(message) {
        let says_nothing = forwarded.text.is_empty() && incoming.attachments.is_empty();
        incoming.quotations.push(forwarded);
        return (!says_nothing).then_some(incoming);
    }
    let said = [own_words(message), kinds::in_words(message)];
    let said: Vec<String> = said.into_iter().flatten().collect();
    incoming.said = if said.is_empty() && incoming.attachments.is_empty() {
        Said::Aside(kinds::unread(message)?)
    } else {
        Said::Text(said.join("\n"))
    };
    Some(incoming)
}

/// A reaction. Telegram tells neither whose message it is to nor in which topic, and the host does.
fn of_reaction(id: String, changed: &Value) -> Option<Incoming> {
    let sender = match changed.get("actor_chat") {
        Some(chat) => Sender::of_chat(chat)?,
        None => Sender::of(changed.get("user")?)?,
    };
    let mut incoming = begun(id, sender, changed)?;
    incoming.said = Said::Aside(kinds::reaction(changed));
    incoming.overheard = true;
    incoming.replies_to = Some(changed.get("message_id")?.as_i64()?.to_string());
    Some(incoming)
}

fn of_button(id: String, query: &Value) -> Option<Incoming> {
    let message = query.get("message")?;
    let mut incoming = begun(id, Sender::of(query.get("from")?)?, message)?;
    incoming.said = Said::Button(query.get("data")?.as_str()?.to_owned());
    incoming.acknowledge = sending::handle_of(query);
    Some(incoming)
}

/// Returns true if words in a group name the bot, or reply to it.
fn is_said_to(bot: &Bot, message: &Value) -> bool {
    let is_of_bot = |user: &Value| user["id"].as_i64() == Some(bot.id);
    if is_of_bot(&message["reply_to_message"]["from"]) {
        return true;
    }
    let names = |text: &str, marks: &str| {
        let text = message[text].as_str().unwrap_or_default();
        items(&message[marks]).iter().any(|mark| {
            let place = |key: &str| usize::try_from(mark[key].as_u64()?).ok();
            let (Some(start), Some(length)) = (place("offset"), place("length")) else {
                return false;
            };
            let named = covered(text, start, start.saturating_add(length));
            match mark["type"].as_str() {
                Some("mention" | "bot_command") => named
                    .rsplit_once('@')
                    .is_some_and(|(_, name)| name.eq_ignore_ascii_case(&bot.username)),
                Some("text_mention") => is_of_bot(&mark["user"]),
                _ => false,
            }
        })
    };
    names("text", "entities") || names("caption", "caption_entities")
}

fn is_private(chat: &Value) -> bool {
    chat["type"] == "private"
}

/// The one whose message it is.
struct Sender {
    id: i64,
    name: Option<String>,
}

impl Sender {
    /// A person; none for a bot: bots talking with bots would never end.
    fn of(from: &Value) -> Option<Self> {
        if from.get("is_bot").and_then(Value::as_bool) == Some(true) {
            return None;
        }
        Some(Self {
            id: from.get("id")?.as_i64()?,
            name: name(from),
        })
    }

    /// Somebody who speaks as a channel or as a group.
    fn of_chat(chat: &Value) -> Option<Self> {
        Some(Self {
            id: chat.get("id")?.as_i64()?,
            name: title(chat),
        })
    }
}

/// A message without what it says.
fn begun(id: String, sender: Sender, message: &Value) -> Option<Incoming> {
    let chat = message.get("chat")?;
    let chat_id = chat.get("id")?.as_i64()?.to_string();
    let in_topic = message.get("is_topic_message").and_then(Value::as_bool) == Some(true);
    let topic = message.get("message_thread_id").and_then(Value::as_i64);
    let sent_s = message.get("date").and_then(Value::as_u64);
    let group = (!is_private(chat)).then(|| chat_id.clone());
    let chat = match topic.filter(|_| in_topic) {
        Some(topic) => format!("{chat_id}/{topic}"),
        None => chat_id,
    };
    Some(Incoming {
        sender_name: sender.name,
        group,
        sent_ms: sent_s.unwrap_or_default().saturating_mul(1_000),
        ..Incoming::new(id, sender.id.to_string(), chat, Said::Text(String::new()))
    })
}

/// The name of a person, for people.
pub(crate) fn name(from: &Value) -> Option<String> {
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
    // An animation is told as a document too.
    let document = match message.get("animation") {
        Some(_) => ("animation", "animation.mp4", "video/mp4"),
        None => ("document", "file", "application/octet-stream"),
    };
    let kinds = [
        document,
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
