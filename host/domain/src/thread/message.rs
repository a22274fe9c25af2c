//! Messages: the content of a conversation, which never changes.

use crate::access::redact::Redactor;
use crate::thread::speaker::Speaker;
use crate::values::digest::{Digest, Salt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use utoipa::ToSchema;

/// A message's place in its thread, counted from 1.
pub type MessageId = u64;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = MessageRole)]
pub enum Role {
    /// The user, or a caller acting as the user.
    User,
    /// The model, or the agent itself.
    Assistant,
    /// The result of one of the model's calls.
    Tool,
    /// A notice of the host to user and model.
    Notice,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// Bytes kept outside the message.
    Blob {
        /// Digest of the stored bytes.
        digest: Digest,
        /// Their media type.
        media_type: String,
        /// Number of bytes.
        size: u64,
    },
    /// A call by the model. Calls are counted from 0 within their message, in order.
    Call {
        /// The provider's id of the call. Providers repeat these: never use one as a key.
        call_id: String,
        /// The tool's name, as the model wrote it.
        name: String,
        /// The arguments, as the model wrote them: not necessarily JSON.
        arguments: String,
    },
    /// A block that a provider requires back verbatim (thinking, signatures, unknown content
    /// blocks). Sent back to the same provider and model only.
    Opaque {
        /// The provider's name.
        provider: String,
        /// The provider's name of the model.
        model: String,
        /// The content block as received.
        value: Value,
    },
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The call that a tool message answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// The assistant message.
    pub message: MessageId,
    /// The call's index in it.
    pub index: u32,
    /// The provider's id of the call, which is sent back.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// True if the call failed.
    pub failed: bool,
}

/// One message of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its place in the thread.
    pub id: MessageId,
    /// The author.
    pub role: Role,
    /// Its content, in order.
    pub parts: Vec<Part>,
    /// Origin of the message: `api`, `model:<name>`, `tool:<name>`, `agent:<path>`, `host`.
    pub origin: String,
    /// True if its content is from outside the user's and the operator's control.
    #[serde(default)]
    pub untrusted: bool,
    /// The speaker, if role and origin do not identify the speaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<Speaker>,
    /// The call that it answers, if it is the result of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
    /// The message's mark at its origin, if it was imported from a file. Its digest includes that
    /// mark. Here it is untrusted, since nobody here vouches for the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked_elsewhere: Option<bool>,
    /// The salt of its digest; removed when the message was erased.
    pub salt: Salt,
}

impl Message {
    /// Returns the digest to which the turn tree commits. It is the salted digest of role, parts,
    /// origin, speaker and pairing. The message's place is not included.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut content = serde_json::json!({
            "role": self.role, "parts": self.parts, "origin": self.origin, "untrusted": self.marked_elsewhere.unwrap_or(self.untrusted), "answers": self.answers,
        });
        if let (Some(speaker), Some(fields)) = (&self.speaker, content.as_object_mut()) {
            fields.insert("speaker".to_owned(), serde_json::json!(speaker));
        }
        self.salt.digest(content.to_string().as_bytes())
    }

    /// Returns the message as imported from a file: untrusted, with the same digest.
    #[must_use]
    pub fn from_elsewhere(self) -> Self {
        Self {
            untrusted: true,
            marked_elsewhere: self.marked_elsewhere.or(Some(self.untrusted)),
            ..self
        }
    }

    /// Returns the message with its original mark.
    #[must_use]
    pub fn as_written(self) -> Self {
        Self {
            untrusted: self.marked_elsewhere.unwrap_or(self.untrusted),
            marked_elsewhere: None,
            ..self
        }
    }

    /// Its text parts, concatenated.
    #[must_use]
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// The model's calls in it: index, the provider's id, name, arguments.
    pub fn calls(&self) -> impl Iterator<Item = (u32, &str, &str, &str)> {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Call {
                    call_id,
                    name,
                    arguments,
                } => Some((call_id.as_str(), name.as_str(), arguments.as_str())),
                _ => None,
            })
            .zip(0_u32..)
            .map(|((call_id, name, arguments), index)| (index, call_id, name, arguments))
    }
}

/// Shared messages, serialised as ordinary ones.
pub(crate) mod shared {
    use super::Message;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::sync::Arc;

    /// Writes messages.
    pub(crate) fn serialize<S: Serializer>(
        messages: &[Arc<Message>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(messages.iter().map(Arc::as_ref))
    }

    /// Reads them back.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Arc<Message>>, D::Error> {
        Ok(Vec::<Message>::deserialize(deserializer)?
            .into_iter()
            .map(Arc::new)
            .collect())
    }
}

/// The text parts of some content, joined by line breaks.
#[must_use]
pub fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// A message before it has a place and a salt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The author.
    pub role: Role,
    /// Its content.
    pub parts: Vec<Part>,
    /// Origin of the message.
    pub origin: String,
    /// True if its content is from outside the user's and the operator's control.
    #[serde(default)]
    pub untrusted: bool,
    /// The speaker, if role and origin do not identify the speaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<Speaker>,
    /// The call that it answers, if it is the result of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
}

impl Draft {
    /// A draft of some text.
    pub fn text(role: Role, origin: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role,
            parts: vec![Part::text(text)],
            origin: origin.into(),
            untrusted: false,
            speaker: None,
            answers: None,
        }
    }

    /// The message at a place, with a salt that follows from the event's.
    #[must_use]
    pub fn at(self, id: MessageId, salt: Salt) -> Message {
        let Self {
            role,
            parts,
            origin,
            untrusted,
            speaker,
            answers,
        } = self;
        Message {
            id,
            role,
            parts,
            origin,
            untrusted,
            speaker,
            answers,
            marked_elsewhere: None,
            salt: salt.derive(id),
        }
    }
}

impl Redactor {
    /// Removes the secrets from a part of a message. The contents of a blob are redacted elsewhere.
    pub fn part(&self, part: &mut Part) {
        let text = |text: &mut String| {
            if let Cow::Owned(redacted) = self.text(text) {
                *text = redacted;
            }
        };
        match part {
            Part::Text { text: said } => text(said),
            Part::Blob { media_type, .. } => text(media_type),
            Part::Call {
                call_id,
                name,
                arguments,
            } => [call_id, name, arguments].into_iter().for_each(text),
            Part::Opaque { value, .. } => self.value(value),
        }
    }
}
