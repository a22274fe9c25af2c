//! The form of a turn's messages for pi.

use super::super::blocks::{made_by, namespace};
use super::usage;
use crate::thread::compaction::Mark;
use crate::thread::cut_off::CutOff;
use crate::thread::message::{Message, MessageId, Part, Role};
use crate::thread::transcript::TranscriptTurn;
use crate::thread::turn::TurnEnd;
use crate::values::digest::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bytes of the images shown in one message; further images are named. In base64 they leave room in
/// the line for the rest.
const IMAGE_BYTES_MAX: usize = 4 << 20;

/// A turn in pi's form.
pub(super) struct Shown<'a> {
    turn: &'a TranscriptTurn,
    blobs: &'a BTreeMap<Digest, Vec<u8>>,
    /// Its last assistant message, which has the turn's usage and its end.
    last: Option<MessageId>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(turn: &'a TranscriptTurn, blobs: &'a BTreeMap<Digest, Vec<u8>>) -> Self {
        let said = turn
            .messages
            .iter()
            .flatten()
            .rev()
            .find(|message| message.role == Role::Assistant);
        Self {
            turn,
            blobs,
            last: said.map(|message| message.id),
        }
    }

    /// The type and the specific fields of a message's entry.
    pub(super) fn entry(&self, message: &Message) -> (&'static str, Value) {
        let timestamp = self.turn.committed.0;
        match (message.role, &message.answers) {
            (Role::Notice, _) => {
                let content = self.content(message);
                // Models see notices, so it is an entry that pi sends to a model.
                (
                    "custom_message",
                    json!({ "customType": format!("{}.notice", namespace()), "content": content, "display": true }),
                )
            }
            (Role::Assistant, _) => ("message", json!({ "message": self.assistant(message) })),
            (Role::Tool, Some(answers)) => {
                let said = json!({
                    "role": "toolResult", "toolCallId": answers.call_id, "toolName": answers.name, "content": self.content(message),
                    "isError": answers.failed, "timestamp": timestamp,
                });
                ("message", json!({ "message": said }))
            }
            // A result that answers no call is an ordinary message.
            (Role::User | Role::Tool, _) => (
                "message",
                json!({ "message": { "role": "user", "content": self.content(message), "timestamp": timestamp } }),
            ),
        }
    }

    /// Text and images, and the rest as text.
    fn content(&self, message: &Message) -> Vec<Value> {
        let mut room = IMAGE_BYTES_MAX;
        message
            .parts
            .iter()
            .filter_map(|part| self.block(part, &mut room))
            .collect()
    }

    /// Returns the block that shows a part. Images are shown while there is room for their bytes.
    fn block(&self, part: &Part, room: &mut usize) -> Option<Value> {
        match part {
            Part::Text { text } => Some(json!({ "type": "text", "text": text })),
            Part::Blob {
                digest,
                media_type,
                size,
            } => Some(match self.blobs.get(digest) {
                Some(bytes) if media_type.starts_with("image/") && bytes.len() <= *room => {
                    *room -= bytes.len();
                    json!({ "type": "image", "data": STANDARD.encode(bytes), "mimeType": media_type })
                }
                _ => {
                    json!({ "type": "text", "text": format!("[{media_type}, {size} bytes, {}]", digest.reference()) })
                }
            }),
            Part::Call { .. } | Part::Opaque { .. } => None,
        }
    }

    fn assistant(&self, message: &Message) -> Value {
        let (provider, model) = made_by(message, &self.turn.node.models);
        let content: Vec<Value> = message.parts.iter().filter_map(said).collect();
        let is_last = self.last == Some(message.id);
        let used = if is_last {
            usage::shown(self.turn.node.usage)
        } else {
            usage::shown(crate::thread::model::Usage::default())
        };
        let stop = match self.turn.node.end {
            TurnEnd::Aborted if is_last => "aborted",
            TurnEnd::Failed if is_last => "error",
            _ if message.calls().next().is_some() => "toolUse",
            _ if CutOff::of_parts(&message.parts) == Some(CutOff::Length) => "length",
            TurnEnd::Replied | TurnEnd::Completed | TurnEnd::Failed | TurnEnd::Aborted => "stop",
        };
        json!({
            "role": "assistant", "content": content, "api": api(provider), "provider": provider, "model": model, "usage": used,
            "stopReason": stop, "timestamp": self.turn.committed.0,
        })
    }
}

/// Returns the fields of pi's entry for a compaction with this first kept entry.
pub(super) fn compaction(message: &Message, mark: &Mark, kept: &str) -> Value {
    let details = json!({ "summarizedThrough": mark.summarized_through, "firstKept": mark.first_kept, "tokensAfter": mark.tokens_after });
    json!({ "summary": message.text(), "firstKeptEntryId": kept, "tokensBefore": mark.tokens_before, "details": details })
}

/// A block of an assistant's message. pi does not allow images there.
fn said(part: &Part) -> Option<Value> {
    match part {
        Part::Call {
            call_id,
            name,
            arguments,
        } => {
            let object = serde_json::from_str::<Value>(arguments)
                .ok()
                .filter(Value::is_object);
            let arguments = object.unwrap_or_else(|| json!({ "arguments": arguments }));
            Some(json!({ "type": "toolCall", "id": call_id, "name": name, "arguments": arguments }))
        }
        Part::Opaque { value, .. } => thinking(value),
        Part::Blob {
            digest,
            media_type,
            size,
        } => Some(
            json!({ "type": "text", "text": format!("[{media_type}, {size} bytes, {}]", digest.reference()) }),
        ),
        Part::Text { text } => Some(json!({ "type": "text", "text": text })),
    }
}

/// A thinking block, for those opaque parts that contain thinking. A provider's other opaque data
/// is not shown.
fn thinking(value: &Value) -> Option<Value> {
    let text = value
        .get("thinking")
        .and_then(Value::as_str)
        .filter(|_| value.get("type").and_then(Value::as_str) == Some("thinking"))?;
    let signature = value
        .get("signature")
        .or_else(|| value.get("thinkingSignature"))
        .and_then(Value::as_str);
    Some(match signature {
        Some(signature) => {
            json!({ "type": "thinking", "thinking": text, "thinkingSignature": signature })
        }
        None => json!({ "type": "thinking", "thinking": text }),
    })
}

/// The API that pi would use with a provider.
fn api(provider: &str) -> &'static str {
    match provider {
        "anthropic" => "anthropic-messages",
        "openai" => "openai-completions",
        "google" => "google-generative-ai",
        _ => namespace(),
    }
}
