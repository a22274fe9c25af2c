//! Calls of WhatsApp, as messages for the host. Of a reply it says which message it is to, and not
//! what that says; kinds of messages beside words and files are told in words.

use crate::{Configuration, GROUP};
use agent_host_sdk::{
    Attachment, Batch, ConnectorError, Incoming, Moved, Quotation, QuotationKind, Said, Undelivered,
};
use serde_json::Value;

/// Kinds of messages that are files.
const FILES: [&str; 5] = ["audio", "document", "image", "sticker", "video"];
/// The kind of messages of the service's own.
const SYSTEM: &str = "system";
/// The kind of reactions.
pub(crate) const REACTION: &str = "reaction";
/// The words before what a message says since it was edited.
const EDITED: &str = "[edited]";

/// Reads the body of a call. Of reports on messages that were sent, failures are told.
pub(crate) fn read(configuration: &Configuration, body: &[u8]) -> Result<Batch, ConnectorError> {
    let call: Value = serde_json::from_slice(body)
        .map_err(|error| ConnectorError::Rejected(format!("a call is JSON: {error}")))?;
    let changes = items(&call["entry"])
        .iter()
        .flat_map(|entry| items(&entry["changes"]))
        .filter(|change| change["field"] == "messages")
        .map(|change| &change["value"]);
    // A business may have several numbers, and each is a connector of its own.
    let own: Vec<&Value> = changes
        .filter(|value| {
            value["metadata"]["phone_number_id"].as_str() == Some(&configuration.phone_number_id)
        })
        .collect();
    let reported = own.iter().flat_map(|value| items(&value["messages"]));
    let messages = own.iter().flat_map(|value| {
        let read = move |message: &Value| incoming(value, message);
        items(&value["messages"]).iter().filter_map(read)
    });
    let reports = own.iter().flat_map(|value| items(&value["statuses"]));
    Ok(Batch {
        messages: messages.collect(),
        moved: reported.filter_map(moved).collect(),
        undelivered: reports.filter_map(undelivered).collect(),
        ..Batch::default()
    })
}

/// The message that the service took and did not deliver, by its report; none by any other.
fn undelivered(report: &Value) -> Option<Undelivered> {
    if report["status"] != "failed" {
        return None;
    }
    let error = &report["errors"][0];
    let title = error["title"].as_str().unwrap_or("no reason given");
    let code = error["code"].as_i64().unwrap_or_default();
    Some(Undelivered {
        id: report["id"].as_str()?.to_owned(),
        reason: format!("WhatsApp did not deliver it: {title} ({code})"),
    })
}

pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The one whose number is another one, by a message of the service's own; none by any other.
fn moved(message: &Value) -> Option<Moved> {
    let reported = &message["system"];
    let from = sender(message)?;
    let to = match message["from"].as_str() {
        Some(_) => reported["wa_id"]
            .as_str()
            .or(reported["new_wa_id"].as_str()),
        None => reported["user_id"].as_str(),
    }?;
    (message["type"] == SYSTEM && from != to).then(|| Moved {
        from: from.to_owned(),
        to: to.to_owned(),
        is_group: false,
    })
}

/// The sender: people with a user name show no phone number.
fn sender(message: &Value) -> Option<&str> {
    message["from"]
        .as_str()
        .or(message["from_user_id"].as_str())
}

fn incoming(value: &Value, message: &Value) -> Option<Incoming> {
    let from = sender(message)?;
    let group = message["group_id"].as_str();
    // With these WhatsApp says what happened to a number. Nobody else says anything.
    if message["type"] == SYSTEM {
        return None;
    }
    let edited = &message["edit"]["message"];
    let reported = match edited.is_object() {
        true => edited,
        false => message,
    };
    let kind = reported["type"].as_str().unwrap_or("unknown");
    let content = &reported[kind];
    let mut said = said(kind, content).unwrap_or_else(unread);
    let mut quotations = quoted(message);
    if let (true, Said::Text(text) | Said::Aside(text)) = (is_forwarded(message), &mut said) {
        let text = std::mem::take(text);
        let words = match text.is_empty() {
            true => format!("[{kind}]"),
            false => text,
        };
        quotations.push(forwarded(words));
    } else if let (true, Said::Text(text) | Said::Aside(text)) = (edited.is_object(), &said) {
        said = Said::Aside(format!("{EDITED} {text}"));
    }
    let seconds = message["timestamp"]
        .as_str()
        .and_then(|text| text.parse::<u64>().ok());
    let chat = match group {
        Some(group) => format!("{GROUP}{group}"),
        None => from.to_owned(),
    };
    Some(Incoming {
        sender_name: name(value, from),
        group: group.map(str::to_owned),
        quotations,
        attachments: attachment(kind, content).into_iter().collect(),
        sent_ms: seconds.unwrap_or_default().saturating_mul(1_000),
        // A reaction is heard if it is to a message of the business's own.
        overheard: kind == REACTION,
        replies_to: replied_to(message).map(str::to_owned),
        ..Incoming::new(message["id"].as_str()?, from, chat, said)
    })
}

/// Returns the words or the file of a message of a kind; none where it lacks what it should have.
fn said(kind: &str, content: &Value) -> Option<Said> {
    Some(match kind {
        "text" => Said::Text(content["body"].as_str()?.to_owned()),
        "interactive" => match form(content) {
            Some(words) => words,
            None => {
                let reply = &content[content["type"].as_str()?];
                Said::Button(reply["id"].as_str()?.to_owned())
            }
        },
        // A button of a template, which the host never sends, is what it says.
        "button" => Said::Text(content["text"].as_str()?.to_owned()),
        _ if FILES.contains(&kind) => {
            Said::Text(content["caption"].as_str().unwrap_or_default().to_owned())
        }
        _ => in_words(kind, content),
    })
}

fn name(value: &Value, from: &str) -> Option<String> {
    let contact = items(&value["contacts"])
        .iter()
        .find(|contact| contact["wa_id"] == from || contact["user_id"] == from)?;
    contact["profile"]["name"].as_str().map(str::to_owned)
}

fn attachment(kind: &str, content: &Value) -> Option<Attachment> {
    if !FILES.contains(&kind) {
        return None;
    }
    let media_type = content["mime_type"]
        .as_str()
        .unwrap_or("application/octet-stream");
    Some(Attachment {
        name: content["filename"].as_str().unwrap_or(kind).to_owned(),
        media_type: media_type.to_owned(),
        handle: content["id"].as_str()?.to_owned(),
        size: None,
    })
}

/// Returns true if a message was passed on. It then says nothing of its sender's own.
pub(crate) fn is_forwarded(message: &Value) -> bool {
    let context = &message["context"];
    context["forwarded"] == true || context["frequently_forwarded"] == true
}

/// The words of a message that was passed on. WhatsApp tells nobody who wrote them.
pub(crate) fn forwarded(text: String) -> Quotation {
    Quotation {
        kind: QuotationKind::Forwarded,
        author: None,
        text,
    }
}

/// The id of the message that is replied to, or reacted to.
pub(crate) fn replied_to(message: &Value) -> Option<&str> {
    let reaction = &message["reaction"]["message_id"];
    message["context"]["id"].as_str().or(reaction.as_str())
}

/// Returns the things from which a message was written: a product, or an advertisement.
pub(crate) fn quoted(message: &Value) -> Vec<Quotation> {
    let context = &message["context"];
    let said = |value: &Value| {
        value
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let quoted = |author: Option<String>, text: String| Quotation {
        kind: QuotationKind::Quoted,
        author,
        text,
    };
    let product = said(&context["referred_product"]["product_retailer_id"])
        .map(|id| quoted(None, format!("[the product {id}]")));
    let referral = &message["referral"];
    let advertisement: Vec<String> = ["headline", "body", "source_url"]
        .iter()
        .filter_map(|key| said(&referral[*key]))
        .collect();
    let advertisement = (!advertisement.is_empty())
        .then(|| quoted(Some("advertisement".to_owned()), advertisement.join("\n")));
    [product, advertisement].into_iter().flatten().collect()
}

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
    let reported: Vec<&str> = ["name", "address"]
        .iter()
        .filter_map(|key| location[*key].as_str())
        .collect();
    match reported.is_empty() {
        true => format!("[location {place}]"),
        false => format!("[location {place}: {}]", reported.join(", ")),
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
        let reported: Vec<String> = name.map(str::to_owned).into_iter().chain(reached).collect();
        format!("[contact {}]", reported.join(", "))
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
