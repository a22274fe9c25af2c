//! Calls of WhatsApp, as messages for the host.

use crate::kinds::{form, in_words, unread};
use crate::quotations::{forwarded, is_forwarded, quoted, replied_to};
use crate::{Configuration, GROUP};
use agent_host_sdk::{Attachment, Batch, ConnectorError, Incoming, Moved, Said, Undelivered};
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
    let told = own.iter().flat_map(|value| items(&value["messages"]));
    let messages = own.iter().flat_map(|value| {
        let read = move |message: &Value| incoming(value, message);
        items(&value["messages"]).iter().filter_map(read)
    });
    let reports = own.iter().flat_map(|value| items(&value["statuses"]));
    Ok(Batch {
        messages: messages.collect(),
        moved: told.filter_map(moved).collect(),
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
    let told = &message["system"];
    let from = sender(message)?;
    let to = match message["from"].as_str() {
        Some(_) => told["wa_id"].as_str().or(told["new_wa_id"].as_str()),
        None => told["user_id"].as_str(),
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
    let told = match edited.is_object() {
        true => edited,
        false => message,
    };
    let kind = told["type"].as_str().unwrap_or("unknown");
    let content = &told[kind];
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
