//! Blocks of Slack in words, for messages that bring no text beside them.

use crate::incoming::items;
use crate::words::{link, shown};
use serde_json::Value;

/// Steps by which an item of a list is indented, at most.
const INDENT_MAX: usize = 8;

/// The words of blocks, a line each; empty where none of them says anything.
pub(crate) fn words(blocks: &Value) -> String {
    let said = items(blocks).iter().map(block);
    let said: Vec<String> = said.filter(|text| !text.is_empty()).collect();
    said.join("\n")
}

fn block(block: &Value) -> String {
    match block["type"].as_str().unwrap_or_default() {
        "rich_text" => {
            let parts: Vec<String> = items(&block["elements"]).iter().map(part).collect();
            parts.join("\n")
        }
        "section" | "header" => {
            let texts = std::iter::once(&block["text"]).chain(items(&block["fields"]));
            lines(texts)
        }
        "context" => lines(items(&block["elements"]).iter()),
        "markdown" => block["text"].as_str().unwrap_or_default().to_owned(),
        "image" => format!("[image {}]", block["alt_text"].as_str().unwrap_or_default()),
        "video" => format!("[video {}]", text(&block["title"])),
        _ => String::new(),
    }
}

fn lines<'a>(texts: impl Iterator<Item = &'a Value>) -> String {
    let said: Vec<String> = texts.map(text).filter(|text| !text.is_empty()).collect();
    said.join("\n")
}

/// The words of a text object, which is in Slack's own marks or plain.
fn text(object: &Value) -> String {
    let said = object["text"].as_str().unwrap_or_default();
    match object["type"] == "mrkdwn" {
        true => shown(said),
        false => said.to_owned(),
    }
}

/// The words of a part of a rich text.
fn part(part: &Value) -> String {
    match part["type"].as_str().unwrap_or_default() {
        "rich_text_list" => list(part),
        "rich_text_quote" => format!("> {}", inline(part).replace('\n', "\n> ")),
        "rich_text_preformatted" => format!("```\n{}\n```", inline(part)),
        _ => inline(part),
    }
}

fn list(list: &Value) -> String {
    let indent = list["indent"].as_u64().unwrap_or_default();
    let before = "  ".repeat(usize::try_from(indent).map_or(INDENT_MAX, |it| it.min(INDENT_MAX)));
    let is_ordered = list["style"] == "ordered";
    let first = list["offset"]
        .as_u64()
        .unwrap_or_default()
        .saturating_add(1);
    let said: Vec<String> = (first..)
        .zip(items(&list["elements"]))
        .map(|(number, item)| match is_ordered {
            true => format!("{before}{number}. {}", inline(item)),
            false => format!("{before}- {}", inline(item)),
        })
        .collect();
    said.join("\n")
}

fn inline(part: &Value) -> String {
    items(&part["elements"]).iter().map(element).collect()
}

fn element(element: &Value) -> String {
    let said = |key: &str| element[key].as_str().unwrap_or_default();
    match said("type") {
        "link" => link(said("url"), said("text")),
        // As people and channels without a name are in a text.
        "user" => format!("<@{}>", said("user_id")),
        "channel" => format!("<#{}>", said("channel_id")),
        "usergroup" => format!("@{}", said("usergroup_id")),
        "broadcast" => format!("@{}", said("range")),
        "emoji" => format!(":{}:", said("name")),
        "date" => said("fallback").to_owned(),
        "color" => said("value").to_owned(),
        _ => said("text").to_owned(),
    }
}
