//! Calls of Slack, as messages for the host.

use crate::Configuration;
use agent_host_sdk::{Attachment, Batch, ConnectorError, Incoming, Said};
use serde_json::Value;

/// Files of one message that are taken.
const ATTACHMENTS_MAX: usize = 10;
/// The field of a form in which an interaction comes.
const PAYLOAD: &str = "payload=";

/// Reads the body of a call: an event, an interaction, or the challenge of a new app.
pub(crate) fn read(configuration: &Configuration, body: &[u8]) -> Result<Batch, ConnectorError> {
    let unread = |what: &str| ConnectorError::Rejected(format!("the call is no {what}"));
    let text = std::str::from_utf8(body).map_err(|_| unread("text"))?;
    if let Some(form) = text.strip_prefix(PAYLOAD) {
        let json = unescaped(form).ok_or_else(|| unread("form"))?;
        let interaction = serde_json::from_str(&json).map_err(|_| unread("interaction"))?;
        return Ok(of(pressed(&interaction)));
    }
    let call: Value = serde_json::from_str(text).map_err(|_| unread("JSON"))?;
    match call["type"].as_str() {
        Some("url_verification") => Ok(Batch {
            answer: call["challenge"].as_str().map(str::to_owned),
            ..Batch::default()
        }),
        Some("event_callback") => Ok(of(said(configuration, &call))),
        _ => Ok(Batch::default()),
    }
}

fn of(message: Option<Incoming>) -> Batch {
    Batch {
        messages: message.into_iter().collect(),
        ..Batch::default()
    }
}

fn said(configuration: &Configuration, call: &Value) -> Option<Incoming> {
    let event = &call["event"];
    let kind = event["type"].as_str()?;
    let is_direct = event["channel_type"].as_str() == Some("im");
    let is_meant = match kind {
        "app_mention" => !configuration.all_messages,
        "message" => is_direct || configuration.all_messages,
        _ => false,
    };
    // Messages of bots, joins, edits and the like are left out. One with files has a subtype, and
    // so has one in a thread that is shown in the channel too.
    let is_plain = matches!(
        event["subtype"].as_str(),
        None | Some("file_share" | "thread_broadcast")
    );
    if !is_meant || !is_plain || event.get("bot_id").is_some() {
        return None;
    }
    let channel = event["channel"].as_str()?;
    let ts = event["ts"].as_str()?;
    let attachments = attachments(event);
    let text = words(event["text"].as_str().unwrap_or_default(), own_id(call));
    if text.is_empty() && attachments.is_empty() {
        return None;
    }
    // In a channel the answer stands in the thread of the question.
    let thread = event["thread_ts"].as_str().or((!is_direct).then_some(ts));
    Some(Incoming {
        id: call["event_id"].as_str().unwrap_or(ts).to_owned(),
        sender: event["user"].as_str()?.to_owned(),
        sender_name: None,
        group: (!is_direct).then(|| channel.to_owned()),
        chat: chat(channel, thread),
        said: Said::Text(text),
        quotations: Vec::new(),
        attachments,
        sent_ms: milliseconds(ts),
        acknowledge: None,
    })
}

fn pressed(interaction: &Value) -> Option<Incoming> {
    let action = interaction["actions"].get(0)?;
    let channel = interaction["channel"]["id"].as_str()?;
    let message = &interaction["message"];
    let ts = action["action_ts"].as_str()?;
    let is_direct = channel.starts_with('D');
    Some(Incoming {
        id: format!("action-{ts}"),
        sender: interaction["user"]["id"].as_str()?.to_owned(),
        sender_name: interaction["user"]["name"].as_str().map(str::to_owned),
        group: (!is_direct).then(|| channel.to_owned()),
        chat: chat(channel, message["thread_ts"].as_str()),
        said: Said::Button(action["value"].as_str()?.to_owned()),
        quotations: Vec::new(),
        attachments: Vec::new(),
        sent_ms: milliseconds(ts),
        acknowledge: None,
    })
}

fn chat(channel: &str, thread: Option<&str>) -> String {
    match thread {
        Some(thread) => format!("{channel}/{thread}"),
        None => channel.to_owned(),
    }
}

fn attachments(event: &Value) -> Vec<Attachment> {
    let files = event["files"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let read = |file: &Value| {
        let text = |key: &str| file[key].as_str();
        Some(Attachment {
            name: text("name").unwrap_or("file").to_owned(),
            media_type: text("mimetype")
                .unwrap_or("application/octet-stream")
                .to_owned(),
            handle: text("url_private")?.to_owned(),
            size: file["size"].as_u64(),
        })
    };
    files
        .iter()
        .filter_map(read)
        .take(ATTACHMENTS_MAX)
        .collect()
}

/// The app's own user, as far as the call says.
fn own_id(call: &Value) -> Option<&str> {
    let own = &call["authorizations"][0];
    own["user_id"].as_str().filter(|_| own["is_bot"] == true)
}

/// The words without the mention of the app in front, and without Slack's escapes.
fn words(text: &str, own_id: Option<&str>) -> String {
    let text = text.trim();
    let text = text
        .strip_prefix("<@")
        .and_then(|rest| rest.split_once('>'))
        .filter(|(mentioned, _)| own_id.is_none_or(|own_id| own_id == *mentioned))
        .map_or(text, |(_, rest)| rest.trim_start());
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The time in a timestamp such as `1700000000.000100`.
fn milliseconds(ts: &str) -> u64 {
    let seconds = ts.split('.').next().unwrap_or_default();
    seconds
        .parse::<u64>()
        .unwrap_or_default()
        .saturating_mul(1_000)
}

/// A value of a form with its escapes undone; none if they are not whole.
fn unescaped(form: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(form.len());
    let mut rest = form.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let value = digit()? * 16 + digit()?;
                bytes.push(u8::try_from(value).ok()?);
            }
            b'&' => break,
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}
