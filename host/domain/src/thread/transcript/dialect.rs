//! The dialects of JSON lines, and how a file's dialect is detected.
//!
//! Each is a file and a folder that can go without the other, pi's with 1,020 lines and aix's with
//! 440. With one go its variant of [`Dialect`], its arms below, and the API's name for it; what
//! both share stays in this file.

pub mod aix;
pub mod pi;

use super::{Adoption, Reading, Transcript, TranscriptFault, Unwritable, line};
use crate::thread::cut_off::is_by_host;
use crate::thread::message::{Message, Part};
use crate::thread::transcript::exact;
use crate::thread::transcript::line::Fields;
use crate::values::digest::Digest;
use crate::values::fields::kind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Lines from the start of a file that are read to detect its dialect.
pub const DETECTION_LINES_MAX: usize = 16;

/// A dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Entries of a tree, as pi's sessions are stored, version 3.
    Pi,
    /// Lines of users and assistants, one after the other, as aix reads them.
    Aix,
}

impl Dialect {
    /// Writes a transcript in this dialect.
    ///
    /// # Errors
    /// It is inconsistent, or the dialect cannot express it: see [`Unwritable`].
    pub fn write(self, transcript: &Transcript) -> Result<Vec<u8>, Unwritable> {
        match self {
            Self::Pi => pi::write(transcript),
            Self::Aix => aix::write(transcript),
        }
    }

    /// Reads a file in this dialect, whether written by this host or by another program.
    ///
    /// # Errors
    /// The first invalid element.
    pub fn read(self, file: &[u8], adoption: &Adoption) -> Result<Reading, TranscriptFault> {
        match self {
            Self::Pi => pi::read(file, adoption),
            Self::Aix => aix::read(file, adoption),
        }
    }
}

/// Detects the dialect of a file from its first lines.
///
/// In pi's dialect the session's line has a number as its version and every other line is an entry
/// of a tree. In aix's dialect the version is a text or missing, and messages are in lines of the
/// type `user` or `assistant`. Lines that are not JSON objects are skipped.
///
/// # Errors
/// The first lines do not identify a dialect.
pub fn detect(file: &[u8]) -> Result<Dialect, TranscriptFault> {
    let mut untold = None;
    let mut wrong = None;
    for (number, text) in line::split(file)?.into_iter().take(DETECTION_LINES_MAX) {
        let line = match text.and_then(|text| line::parse(number, text, line::OWN_DEPTH_MAX)) {
            Ok(line) => line,
            Err(fault) => {
                wrong = wrong.or(Some(fault));
                continue;
            }
        };
        let fields = line.fields();
        match fields.text("type").unwrap_or_default() {
            Some("session") if fields.value("version").is_some_and(Value::is_number) => {
                return Ok(Dialect::Pi);
            }
            Some("session") if fields.value("version").is_some_and(Value::is_string) => {
                return Ok(Dialect::Aix);
            }
            Some("user" | "assistant") => return Ok(Dialect::Aix),
            Some("message" | "custom_message" | "compaction" | "branch_summary") => {
                return Ok(Dialect::Pi);
            }
            _ => untold = untold.or(Some(number)),
        }
    }
    let message = "neither it nor the lines after it tell the dialect: pi's session line has \
                   `\"version\":3`, aix's has lines of the type \
                   `user` and `assistant`";
    Err(wrong.unwrap_or_else(|| TranscriptFault::line(untold.unwrap_or(1), message)))
}

// Content blocks of other programs, as parts: text, images and calls are converted, other blocks
// stay unchanged. Also the provider and the model of a message for other programs.

/// The provider of opaque parts made of other programs' blocks: it does not exist, so the parts are
/// never sent to one.
const PROVIDER: &str = "imported";

/// The bytes of images, by their digests.
type Blocks = BTreeMap<Digest, Vec<u8>>;

/// The parts of a message's content, which is a text or a list of blocks.
///
/// `text` becomes text, followed by an opaque part with its `textSignature`; `image` a blob;
/// `toolCall` a call, followed by its `thoughtSignature`. Every other block, `thinking` among them,
/// is kept whole as an opaque part.
fn parts(
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
fn made_by<'m>(message: &'m Message, models: &'m [String]) -> (&'m str, &'m str) {
    let opaque = message.parts.iter().find_map(|part| match part {
        Part::Opaque {
            provider, model, ..
        } if provider != PROVIDER && !is_by_host(provider) => {
            Some((provider.as_str(), model.as_str()))
        }
        _ => None,
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
fn namespace() -> &'static str {
    exact::MESSAGE.split('.').next().unwrap_or_default()
}
