//! Kinds of messages beside words and files, in words.

use crate::incoming::{REACTION, items};
use agent_host_sdk::Said;
use serde_json::Value;

/// The words for a kind that is told without its content.
const UNREAD: &str = "[a message of a kind that WhatsApp does not pass on]";

/// The words for a message that is neither a text, nor a button, nor a file.
pub(crate) fn in_words(kind: &str, content: &Value) -> Said {
    match kind {
        "location" => Said::Text(location(content)),
        "contacts" => Said::Text(contacts(content)),
        "order" => Said::Text(order(content)),
        REACTION => Said::Aside(reaction(content)),
        "request_welcome" => Said::Aside("[opened the chat]".to_owned()),
        "revoke" => Said::Aside("[took a message back]".to_owned()),
        _ => unread(),
    }
}

/// The words for a message that is told without its content.
pub(crate) fn unread() -> Said {
    Said::Aside(UNREAD.to_owned())
}

/// The words for an answer in a form of WhatsApp's own; none if it is a button of a question.
pub(crate) fn form(content: &Value) -> Option<Said> {
    let kind = content["type"].as_str()?;
    if matches!(kind, "button_reply" | "list_reply") {
        return None;
    }
    let filled = content[kind]["response_json"].as_str();
    Some(match filled {
        Some(filled) => Said::Text(format!("[form {filled}]")),
        None => unread(),
    })
}

fn location(location: &Value) -> String {
    let place = format!("{}, {}", location["latitude"], location["longitude"]);
    let told: Vec<&str> = ["name", "address"]
        .iter()
        .filter_map(|key| location[*key].as_str())
        .collect();
    match told.is_empty() {
        true => format!("[location {place}]"),
        false => format!("[location {place}: {}]", told.join(", ")),
    }
}

fn contacts(contacts: &Value) -> String {
    let contact = |contact: &Value| {
        let name = contact["name"]["formatted_name"].as_str();
        let reached = [("phones", "phone"), ("emails", "email")];
        let reached = reached.iter().flat_map(|(list, key)| {
            let one = |it: &Value| it[*key].as_str().map(str::to_owned);
            items(&contact[*list]).iter().filter_map(one)
        });
        let told: Vec<String> = name.map(str::to_owned).into_iter().chain(reached).collect();
        format!("[contact {}]", told.join(", "))
    };
    let contacts: Vec<String> = items(contacts).iter().map(contact).collect();
    contacts.join("\n")
}

fn reaction(reaction: &Value) -> String {
    match reaction["emoji"].as_str().filter(|emoji| !emoji.is_empty()) {
        Some(emoji) => format!("[reaction {emoji}]"),
        None => "[reaction taken back]".to_owned(),
    }
}

fn order(order: &Value) -> String {
    let item = |item: &Value| {
        let product = item["product_retailer_id"].as_str().unwrap_or_default();
        let currency = item["currency"].as_str().unwrap_or_default();
        format!(
            "{} of {product} at {} {currency}",
            item["quantity"], item["item_price"]
        )
    };
    let items: Vec<String> = items(&order["product_items"]).iter().map(item).collect();
    let order_shown = format!("[order of {}]", items.join("; "));
    match order["text"].as_str().filter(|text| !text.is_empty()) {
        Some(text) => format!("{text}\n{order_shown}"),
        None => order_shown,
    }
}
