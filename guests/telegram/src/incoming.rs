//! Updates of Telegram, as messages for the host: words as Markdown that says the same, and those
//! of others, passed on or replied to, as quotations.

use crate::{kinds, sending};
use agent_host_sdk::{Attachment, Incoming, Moved, Quotation, QuotationKind, Said};
use serde_json::Value;
use std::cmp::Reverse;

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

/// The beginning of each line that is quoted.
const QUOTE: &str = "> ";
/// The end of a line, in UTF-16.
const LINE_END: u16 = b'\n' as u16;

/// Something that a mark puts into the words.
struct Added {
    /// The place, in UTF-16 units.
    at: usize,
    /// The order of what is put at one place: ends before beginnings, inner ends before outer ones.
    order: (bool, Reverse<usize>, i64),
    text: String,
    /// True if it stands on a line of its own.
    on_own_line: bool,
}

/// The values of a list; none of what is no list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A text with what its marks add to it. Marks that change no words, such as bold ones, and marks
/// that do not lie within the text add nothing.
pub(crate) fn marked(text: &str, marks: &Value) -> String {
    let units = text.encode_utf16().count();
    let mut added: Vec<Added> = (0_i64..)
        .zip(items(marks))
        .filter_map(|(number, mark)| of_mark(text, units, number, mark))
        .flatten()
        .collect();
    added.sort_by_key(|it| (it.at, it.order));
    let mut added = added.into_iter().peekable();
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for char in text.chars() {
        while let Some(next) = added.next_if(|next| next.at <= at) {
            put(&mut shown, &next, char);
        }
        shown.push(char);
        at += char.len_utf16();
    }
    for rest in added {
        put(&mut shown, &rest, '\n');
    }
    shown
}

/// The additions of a mark at its beginning, at its end and between; none for one without any.
fn of_mark(text: &str, units: usize, number: i64, mark: &Value) -> Option<Vec<Added>> {
    let unit = |key: &str| usize::try_from(mark[key].as_u64()?).ok();
    let start = unit("offset")?;
    let length = unit("length").filter(|length| *length > 0)?;
    let end = start.checked_add(length).filter(|end| *end <= units)?;
    let kind = mark["type"].as_str()?;
    let (open, close) = match kind {
        "text_link" => {
            let url = mark["url"].as_str()?;
            // A link that says where it leads says so once.
            if covered(text, start, end) == url {
                return None;
            }
            ("[".to_owned(), format!("]({})", target(url)))
        }
        "text_mention" => {
            let id = mark["user"]["id"].as_i64()?;
            ("[".to_owned(), format!("](tg://user?id={id})"))
        }
        "code" => ("`".to_owned(), "`".to_owned()),
        "pre" => {
            let language = mark["language"].as_str().unwrap_or_default();
            (format!("```{language}\n"), "\n```".to_owned())
        }
        "strikethrough" => ("~~".to_owned(), "~~".to_owned()),
        "blockquote" | "expandable_blockquote" => (QUOTE.to_owned(), String::new()),
        _ => return None,
    };
    let is_quote = open == QUOTE;
    let on_own_line = is_quote || kind == "pre";
    let begins = |at: usize, text: String| Added {
        at,
        order: (true, Reverse(end), number),
        text,
        on_own_line,
    };
    let inside = covered(text, start, end);
    let ends_of_lines = (start..).zip(inside.encode_utf16());
    let lines = ends_of_lines.filter(|(at, unit)| is_quote && *unit == LINE_END && at + 1 < end);
    let begin = std::iter::once(begins(start, open))
        .chain(lines.map(|(at, _)| begins(at + 1, QUOTE.to_owned())));
    let finish = Added {
        at: end,
        order: (false, Reverse(start), -number),
        text: close,
        on_own_line,
    };
    Some(begin.chain([finish]).collect())
}

/// Puts something into the words, before a character.
fn put(shown: &mut String, added: &Added, before: char) {
    let begins = added.order.0;
    if added.on_own_line && begins && !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    shown.push_str(&added.text);
    if added.on_own_line && !begins && before != '\n' {
        shown.push('\n');
    }
}

/// The part of a text between two UTF-16 units.
pub(crate) fn covered(text: &str, start: usize, end: usize) -> String {
    let units: Vec<u16> = text.encode_utf16().take(end).skip(start).collect();
    String::from_utf16_lossy(&units)
}

/// A URL as the target of a link, which ends at no sign of its own.
pub(crate) fn target(url: &str) -> String {
    if url.contains(['(', ')', ' ']) {
        format!("<{url}>")
    } else {
        url.to_owned()
    }
}
