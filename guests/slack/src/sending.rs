//! Messages of the host, as Slack takes them.

use crate::api::Api;
use agent_host_sdk::{Body, Choice, ConnectorError, OutgoingMessage};
use serde_json::{Value, json};

/// Letters of a button.
const LABEL_CHARS_MAX: usize = 75;

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
            asked["ts"] = json!(id);
            asked["text"] = json!(markdown::slack(text));
            "chat.update"
        }
        Body::Typing => {
            let none = "an app cannot show that it is typing".to_owned();
            return Err(ConnectorError::Rejected(none));
        }
    };
    let answer = api.act(method, &asked)?;
    answer["ts"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| ConnectorError::Unknown("the answer has no `ts`".to_owned()))
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
    let section = json!({ "type": "section", "text": { "type": "mrkdwn", "text": text } });
    if buttons.is_empty() {
        return json!([section]);
    }
    json!([section, { "type": "actions", "elements": buttons }])
}
