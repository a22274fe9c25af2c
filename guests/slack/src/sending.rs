//! Messages of the host, as Slack takes them.

use crate::api::Api;
use agent_host_sdk::{Body, Choice, ConnectorError, OutgoingMessage};
use serde_json::{Value, json};

/// Letters of a button.
const LABEL_CHARS_MAX: usize = 75;
/// Bytes of the handle by which a pressed button is acknowledged.
const HANDLE_BYTES_MAX: usize = 16 << 10;
/// Letters of a section, after those that mean something to Slack are escaped.
const SECTION_CHARS_MAX: usize = 3_000;
/// Letters of the longest escape, such as `&amp;`.
const ESCAPE_CHARS_MAX: usize = 5;

/// Sends a message and returns Slack's timestamp of it, which is its id.
pub(crate) fn send(api: &Api, message: &OutgoingMessage) -> Result<String, ConnectorError> {
    let mut asked = addressed(&message.chat);
    let method = match &message.body {
        Body::Text(text) => {
            asked["text"] = json!(markdown::slack(text));
            "chat.postMessage"
        }
        Body::Question { text, choices } => {
            let shown = markdown::slack(text);
            asked["blocks"] = blocks(&shown, choices);
            asked["text"] = json!(shown);
            "chat.postMessage"
        }
        Body::Edit { id, text } => {
            let shown = markdown::slack(text);
            let parts = sections(&shown);
            // The text of an edit is shorter than that of a new message: a long one is in blocks.
            // Without a list, those of an edit before would stay, and be shown in its place.
            asked["blocks"] = match parts.len() {
                0 | 1 => json!([]),
                _ => blocks(&shown, &[]),
            };
            asked["ts"] = json!(id);
            asked["text"] = json!(parts.first().unwrap_or(&""));
            "chat.update"
        }
        Body::Typing => {
            let none = "an app cannot show that it is typing".to_owned();
            return Err(ConnectorError::Rejected(none));
        }
        Body::Acknowledgement(handle) => {
            answered(&mut asked, handle);
            api.act("chat.update", &asked)?;
            return Ok(String::new());
        }
    };
    let answer = api.act(method, &asked)?;
    answer["ts"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| ConnectorError::Unknown("the answer has no `ts`".to_owned()))
}

/// The handle by which a pressed button is acknowledged: the question without its buttons, and what
/// was pressed. None of one that is longer than a handle may be.
pub(crate) fn handle_of(message: &Value, action: &Value) -> Option<String> {
    let blocks = message["blocks"].as_array()?;
    let sections: Vec<Value> = blocks
        .iter()
        .filter(|block| block["type"] == "section")
        .map(|block| json!({ "type": "section", "text": block["text"] }))
        .collect();
    let handle = json!({
        "ts": message["ts"].as_str()?,
        "text": message["text"],
        "blocks": sections,
        "label": action["text"]["text"],
    });
    Some(handle.to_string()).filter(|handle| handle.len() <= HANDLE_BYTES_MAX)
}

/// Has a question say what was pressed, in the place of its buttons.
fn answered(asked: &mut Value, handle: &str) {
    let handle: Value = serde_json::from_str(handle).unwrap_or_default();
    let label = handle["label"].as_str().unwrap_or_default();
    let mut blocks = handle["blocks"].as_array().cloned().unwrap_or_default();
    let reported = json!({ "type": "plain_text", "text": format!("✓ {label}") });
    blocks.push(json!({ "type": "context", "elements": [reported] }));
    asked["ts"] = handle["ts"].clone();
    asked["text"] = handle["text"].clone();
    asked["blocks"] = json!(blocks);
}

/// The channel, and the thread in it.
fn addressed(chat: &str) -> Value {
    let mut asked = json!({ "unfurl_links": false, "unfurl_media": false });
    match chat.split_once('/') {
        Some((channel, thread)) => {
            asked["channel"] = json!(channel);
            asked["thread_ts"] = json!(thread);
        }
        None => asked["channel"] = json!(chat),
    }
    asked
}

fn blocks(text: &str, choices: &[Choice]) -> Value {
    let button = |(place, choice): (usize, &Choice)| {
        let label: String = choice.label.chars().take(LABEL_CHARS_MAX).collect();
        json!({
            "type": "button",
            "action_id": format!("choice-{place}"),
            "value": choice.value,
            "text": { "type": "plain_text", "text": label },
        })
    };
    let buttons: Vec<Value> = choices.iter().enumerate().map(button).collect();
    let section =
        |text: &str| json!({ "type": "section", "text": { "type": "mrkdwn", "text": text } });
    let mut blocks: Vec<Value> = sections(text).into_iter().map(section).collect();
    if !buttons.is_empty() {
        blocks.push(json!({ "type": "actions", "elements": buttons }));
    }
    json!(blocks)
}

/// The text in parts that fit into sections: between lines or words where it can be, and never
/// within an escape.
fn sections(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((limit, _)) = rest.char_indices().nth(SECTION_CHARS_MAX) {
        let fitting = rest.get(..limit).unwrap_or_default();
        let half = limit / 2;
        let is_late = |place: &usize| *place > half;
        let escape = fitting
            .rfind('&')
            .filter(|place| limit - place < ESCAPE_CHARS_MAX && !ends_escape(fitting, *place));
        let place = fitting
            .rfind('\n')
            .filter(is_late)
            .or_else(|| fitting.rfind(' ').filter(is_late))
            .or(escape)
            .unwrap_or(limit);
        let (part, after) = rest.split_at(place);
        parts.push(part);
        rest = after.trim_start();
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Returns whether an escape that begins at a place ends in the text.
fn ends_escape(text: &str, place: usize) -> bool {
    text.get(place..).is_some_and(|escape| escape.contains(';'))
}
