//! A message's content: text, or a list of parts.

use domain::message::Part;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Parts of one message.
const PARTS_MAX: usize = 1_000;

/// Content as it was sent. It is parsed by hand, so that an error in a part names the part's place.
#[derive(Debug)]
pub(in crate::routes) struct Content(pub(in crate::routes) Vec<Part>);

/// Text, or a list of parts.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[schema(as = Content)]
#[expect(dead_code, reason = "describes what `Content` reads")]
pub(in crate::routes) enum ContentShape {
    /// Text.
    Text(String),
    /// Parts.
    Parts(Vec<TextPart>),
}

/// A piece of text.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct TextPart {
    /// `text`.
    #[serde(rename = "type")]
    kind: TextKind,
    /// The text.
    text: String,
}

/// The only kind of part that a client can send.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::routes) enum TextKind {
    /// Text.
    Text,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Parts)
    }
}

struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, or a list of parts such as {\"type\":\"text\",\"text\":\"…\"}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content(vec![Part::text(text)]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
        let mut content = Vec::new();
        while let Some(TextPart {
            kind: TextKind::Text,
            text,
        }) = parts.next_element()?
        {
            if content.len() == PARTS_MAX {
                return Err(de::Error::custom(format!(
                    "a message has at most {PARTS_MAX} parts"
                )));
            }
            content.push(Part::text(text));
        }
        Ok(Content(content))
    }
}
