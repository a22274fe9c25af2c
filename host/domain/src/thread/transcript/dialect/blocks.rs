//! Content blocks of other programs, as parts: text, images and calls are converted, other blocks
//! stay unchanged. Also the provider and the model of a message for other programs.

use crate::thread::cut_off::is_by_host;
use crate::thread::message::{Message, Part};
use crate::thread::transcript::exact;
use crate::thread::transcript::fault::TranscriptFault;
use crate::thread::transcript::line::{Fields, kind};
use crate::values::digest::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;

/// The provider of opaque parts made of other programs' blocks: it does not exist, so the parts are
/// never sent to one.
pub(super) const PROVIDER: &str = "imported";

/// The bytes of images, by their digests.
pub(super) type Blocks = BTreeMap<Digest, Vec<u8>>;

/// The parts of a message's content, which is a text or a list of blocks.
///
/// `text` becomes text, followed by an opaque part with its `textSignature`; `image` a blob;
/// `toolCall` a call, followed by its `thoughtSignature`. Every other block, `thinking` among them,
/// is kept whole as an opaque part.
pub(super) fn parts(
    message: &Fields<'_>,
    name: &str,
    model: &str,
    blobs: &mut Blocks,
) -> Result<Vec<Part>, TranscriptFault> {
    match message.value(name) {
        Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Part::text(text.as_str())]),
        Some(Value::Array(_)) => {
            let mut parts = Vec::new();
            for block in message.objects(name)? {
                block_parts(&block, model, blobs, &mut parts)?;
            }
            Ok(parts)
        }
        None => Err(message.fault(
            name,
            "it is missing, and every message has it: add it, or take the line out",
        )),
        Some(other) => Err(message.fault(
            name,
            format!(
                "a text or a list of blocks is needed, this is {}",
                kind(other)
            ),
        )),
    }
}

fn block_parts(
    block: &Fields<'_>,
    model: &str,
    blobs: &mut Blocks,
    parts: &mut Vec<Part>,
) -> Result<(), TranscriptFault> {
    let whole = || Part::Opaque {
        provider: PROVIDER.to_owned(),
        model: model.to_owned(),
        value: Value::Object(block.map().clone()),
    };
    let extra = |name: &str, parts: &mut Vec<Part>| {
        if block.value(name).is_some() {
            parts.push(whole());
        }
    };
    match block.text_needed("type")? {
        "text" => {
            parts.push(Part::text(block.text_needed("text")?));
            extra("textSignature", parts);
        }
        "image" => {
            let data = block.text_needed("data")?;
            let bytes = STANDARD
                .decode(data)
                .map_err(|error| block.fault("data", format!("it is not base64: {error}")))?;
            let media_type = block.word_needed("mimeType")?.to_owned();
            let digest = Digest::of(&bytes);
            let size = bytes.len() as u64;
            blobs.insert(digest, bytes);
            parts.push(Part::Blob {
                digest,
                media_type,
                size,
            });
        }
        "toolCall" => {
            let arguments = match block.value("arguments") {
                // The model's own text, which may not be JSON.
                Some(Value::String(text)) => text.clone(),
                Some(arguments) => arguments.to_string(),
                None => "{}".to_owned(),
            };
            let call_id = block.word_needed("id")?.to_owned();
            let name = block.word_needed("name")?.to_owned();
            parts.push(Part::Call {
                call_id,
                name,
                arguments,
            });
            extra("thoughtSignature", parts);
        }
        _ => parts.push(whole()),
    }
    Ok(())
}

/// The provider and the model of an assistant's message, as far as known.
pub(super) fn made_by<'m>(message: &'m Message, models: &'m [String]) -> (&'m str, &'m str) {
    let opaque = message.parts.iter().find_map(|part| match part {
        Part::Opaque {
            provider, model, ..
        } if provider != PROVIDER && !is_by_host(provider) => {
            Some((provider.as_str(), model.as_str()))
        }
        Part::Opaque { .. } | Part::Text { .. } | Part::Blob { .. } | Part::Call { .. } => None,
    });
    opaque.unwrap_or_else(|| {
        let model = message
            .origin
            .strip_prefix("model:")
            .or(models.last().map(String::as_str))
            .unwrap_or(&message.origin);
        model.split_once('/').unwrap_or((namespace(), model))
    })
}

/// The provider that is shown for a message with an unknown one.
pub(super) fn namespace() -> &'static str {
    exact::MESSAGE.split('.').next().unwrap_or_default()
}
