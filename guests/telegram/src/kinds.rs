//! Kinds of messages beside words and files, in words.

use crate::incoming::{items, target};
use serde_json::Value;

/// Words for what a message is that nobody here can read.
const UNREAD: &str = "[a message of a kind that cannot be read here]";
/// A kind of message, and its words.
type Kind = (&'static str, fn(&Value) -> String);

/// Kinds that are said in words. A venue has a location too, and is said as a venue.
const KINDS: [Kind; 20] = [
    ("venue", venue),
    ("location", location),
    ("contact", contact),
    ("poll", poll),
    ("dice", dice),
    ("sticker", sticker),
    ("story", story),
    ("checklist", checklist),
    ("game", |it| named("game", &it["title"])),
    ("invoice", |it| named("invoice", &it["title"])),
    ("successful_payment", payment),
    ("users_shared", users_shared),
    ("chat_shared", |it| named("shared chat", &it["title"])),
    ("web_app_data", |it| named("data of a form", &it["data"])),
    ("paid_media", |_| "[paid media]".to_owned()),
    ("giveaway", |_| "[giveaway]".to_owned()),
    ("giveaway_winners", |_| {
        "[giveaway with its winners]".to_owned()
    }),
    ("gift", |_| "[gift]".to_owned()),
    ("unique_gift", |_| "[gift]".to_owned()),
    ("rich_message", rich_message),
];
/// Kinds that are files.
const FILES: [&str; 7] = [
    "photo",
    "animation",
    "document",
    "voice",
    "audio",
    "video",
    "video_note",
];
/// Kinds by which Telegram tells what happened to a chat. Nobody says anything with them.
const OF_SERVICE: [&str; 52] = [
    "boost_added",
    "channel_chat_created",
    "chat_background_set",
    "chat_owner_changed",
    "chat_owner_left",
    "checklist_tasks_added",
    "checklist_tasks_done",
    "community_chat_added",
    "community_chat_joined",
    "community_chat_removed",
    "connected_website",
    "delete_chat_photo",
    "direct_message_price_changed",
    "forum_topic_closed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "gift_upgrade_sent",
    "giveaway_completed",
    "giveaway_created",
    "group_chat_created",
    "left_chat_member",
    "managed_bot_created",
    "message_auto_delete_timer_changed",
    "migrate_from_chat_id",
    "migrate_to_chat_id",
    "new_chat_members",
    "new_chat_photo",
    "new_chat_title",
    "paid_message_price_changed",
    "pinned_message",
    "poll_option_added",
    "poll_option_deleted",
    "proximity_alert_triggered",
    "refunded_payment",
    "suggested_post_approval_failed",
    "suggested_post_approved",
    "suggested_post_declined",
    "suggested_post_paid",
    "suggested_post_refunded",
    "supergroup_chat_created",
    "video_chat_ended",
    "video_chat_participants_invited",
    "video_chat_scheduled",
    "video_chat_started",
    "voice_chat_ended",
    "voice_chat_participants_invited",
    "voice_chat_scheduled",
    "voice_chat_started",
    "write_access_allowed",
];

/// The words for what a message is beside its text and its files; none if it is nothing else.
pub(crate) fn in_words(message: &Value) -> Option<String> {
    KINDS
        .iter()
        .find_map(|(key, reported)| message.get(key).map(reported))
}

/// The words for the files of a message, for where the files themselves do not come along.
pub(crate) fn files_in_words(message: &Value) -> Option<String> {
    let kind = FILES.iter().find(|kind| message.get(**kind).is_some())?;
    let kind_shown = kind.replace('_', " ");
    Some(named(&kind_shown, &message[*kind]["file_name"]))
}

/// The words for a message without any that is read; none of one with which nobody says anything.
pub(crate) fn unread(message: &Value) -> Option<String> {
    let is_of_service = OF_SERVICE.iter().any(|key| message.get(key).is_some());
    (!is_of_service).then(|| UNREAD.to_owned())
}

/// The words for the change of a reaction.
pub(crate) fn reaction(changed: &Value) -> String {
    let emoji: Vec<&str> = items(&changed["new_reaction"])
        .iter()
        .map(|it| it["emoji"].as_str().unwrap_or("(of its own kind)"))
        .collect();
    match emoji.is_empty() {
        true => "[reaction taken back]".to_owned(),
        false => format!("[reaction {}]", emoji.join(" ")),
    }
}

/// The keys under which a rich message has its words, in the order in which they are shown.
const RICH: [&str; 8] = [
    "summary",
    "text",
    "expression",
    "blocks",
    "items",
    "cells",
    "caption",
    "credit",
];

/// The words of a message that is a document, a block a line.
fn rich_message(message: &Value) -> String {
    let blocks = items(&message["blocks"]).iter().map(rich);
    let said: Vec<String> = blocks.filter(|text| !text.is_empty()).collect();
    match said.is_empty() {
        true => "[document]".to_owned(),
        false => said.join("\n"),
    }
}

/// The words in a part of it. Blocks within blocks, items of lists and cells of tables are apart.
fn rich(part: &Value) -> String {
    let joined = |parts: &[Value], between: &str| {
        let said: Vec<String> = parts.iter().map(rich).collect();
        said.join(between)
    };
    match part {
        Value::String(text) => text.clone(),
        Value::Array(parts) => joined(parts, ""),
        Value::Object(_) => {
            let said = RICH.iter().map(|key| match (*key, &part[*key]) {
                ("blocks" | "items", Value::Array(parts)) => joined(parts, "\n"),
                ("cells", Value::Array(rows)) => {
                    let row = |row: &Value| joined(items(row), " | ");
                    let rows: Vec<String> = rows.iter().map(row).collect();
                    rows.join("\n")
                }
                (_, part) => rich(part),
            });
            let said: Vec<String> = said.filter(|text| !text.is_empty()).collect();
            let mut said = said.join("\n");
            if let Some(label) = part["label"].as_str() {
                said = format!("{label} {said}");
            }
            match part["url"].as_str().filter(|url| *url != said) {
                Some(url) => format!("[{said}]({})", target(url)),
                None => said,
            }
        }
        _ => String::new(),
    }
}

/// The kind, and the name of it as far as there is one.
fn named(kind: &str, name: &Value) -> String {
    match name.as_str().filter(|name| !name.is_empty()) {
        Some(name) => format!("[{kind} {name}]"),
        None => format!("[{kind}]"),
    }
}

fn place(location: &Value) -> String {
    format!("{}, {}", location["latitude"], location["longitude"])
}

fn location(location: &Value) -> String {
    match location.get("live_period") {
        Some(_) => format!("[live location {}]", place(location)),
        None => format!("[location {}]", place(location)),
    }
}

fn venue(venue: &Value) -> String {
    let reported = ["title", "address"]
        .iter()
        .filter_map(|key| venue[*key].as_str())
        .filter(|text| !text.is_empty());
    let reported: Vec<&str> = reported.collect();
    format!(
        "[venue {}, location {}]",
        reported.join(", "),
        place(&venue["location"])
    )
}

fn contact(contact: &Value) -> String {
    let reported = ["first_name", "last_name"]
        .iter()
        .filter_map(|key| contact[*key].as_str());
    let name: Vec<&str> = reported.collect();
    let number = contact["phone_number"].as_str().unwrap_or_default();
    format!("[contact {}, {number}]", name.join(" "))
}

fn poll(poll: &Value) -> String {
    let options = items(&poll["options"])
        .iter()
        .filter_map(|option| option["text"].as_str());
    let options: Vec<&str> = options.collect();
    let question = poll["question"].as_str().unwrap_or_default();
    format!("[poll {question}: {}]", options.join("; "))
}

fn dice(dice: &Value) -> String {
    let emoji = dice["emoji"].as_str().unwrap_or_default();
    format!("[dice {emoji} {}]", dice["value"])
}

fn sticker(sticker: &Value) -> String {
    named("sticker", &sticker["emoji"])
}

fn story(story: &Value) -> String {
    let chat = &story["chat"];
    let name = chat.get("title").or_else(|| chat.get("first_name"));
    match name.and_then(Value::as_str) {
        Some(name) => format!("[story of {name}]"),
        None => "[story]".to_owned(),
    }
}

fn checklist(checklist: &Value) -> String {
    let task = |task: &Value| {
        let text = task["text"].as_str().unwrap_or_default();
        match task.get("completion_date") {
            Some(_) => format!("{text} (done)"),
            None => text.to_owned(),
        }
    };
    let tasks: Vec<String> = items(&checklist["tasks"]).iter().map(task).collect();
    let title = checklist["title"].as_str().unwrap_or_default();
    format!("[checklist {title}: {}]", tasks.join("; "))
}

fn payment(payment: &Value) -> String {
    let currency = payment["currency"].as_str().unwrap_or_default();
    format!(
        "[payment of {} of the smallest units of {currency}]",
        payment["total_amount"]
    )
}

fn users_shared(shared: &Value) -> String {
    let user = |user: &Value| match user["first_name"].as_str() {
        Some(name) => format!("{name} ({})", user["user_id"]),
        None => user["user_id"].to_string(),
    };
    let users: Vec<String> = items(&shared["users"]).iter().map(user).collect();
    format!("[shared users {}]", users.join(", "))
}
