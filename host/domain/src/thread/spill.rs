//! Spilling of texts that are too long for a conversation: the whole becomes a blob; head, tail and
//! a handle are kept.
//!
//! Tools' outputs, clients' answers and agents' replies all pass through here. No result in a
//! thread, an event or a prompt is thus larger than [`INLINE_TEXT_BYTES_MAX`]. Every longer one can
//! be read with a view's `read-blob`.

use crate::thread::message::{Part, text_of};
use crate::values::digest::Digest;
use crate::values::limits::{INLINE_TEXT_BYTES_MAX, SPILL_EDGE_BYTES};
use serde_json::Value;

/// Replaces texts whose sum is too long by their edges and a blob. Returns the parts, and the blob
/// to be stored with them.
#[must_use]
pub fn spill(parts: Vec<Part>) -> (Vec<Part>, Option<Vec<u8>>) {
    let text_bytes: usize = parts
        .iter()
        .map(|part| {
            if let Part::Text { text } = part {
                text.len()
            } else {
                0
            }
        })
        .sum();
    if text_bytes <= INLINE_TEXT_BYTES_MAX {
        return (parts, None);
    }
    let whole = text_of(&parts);
    let mut kept = edges(&whole, "text/plain");
    kept.extend(
        parts
            .into_iter()
            .filter(|part| !matches!(part, Part::Text { .. })),
    );
    (kept, Some(whole.into_bytes()))
}

/// The parts and the blob that replace a value that is too long; none for a shorter value.
#[must_use]
pub fn spill_value(value: &Value) -> Option<(Vec<Part>, Vec<u8>)> {
    let whole = value.to_string();
    (whole.len() > INLINE_TEXT_BYTES_MAX)
        .then(|| (edges(&whole, "application/json"), whole.into_bytes()))
}

/// Head and tail of a long text, and the place of the whole.
fn edges(text: &str, media_type: &str) -> Vec<Part> {
    vec![
        Part::text(shortened(text, SPILL_EDGE_BYTES)),
        blob_of(text, media_type),
    ]
}

/// Returns head and tail of a text, each with at most so many bytes and at most a quarter of the
/// text. The handle to the whole text is between them.
pub(crate) fn shortened(text: &str, edge_bytes: usize) -> String {
    let edge_bytes = edge_bytes.min(text.len() / 4);
    let head = text
        .get(..text.floor_char_boundary(edge_bytes))
        .unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - edge_bytes)..)
        .unwrap_or_default();
    let omitted = text.len() - head.len() - tail.len();
    let handle = format!(
        "[… {omitted} of {} bytes are left out here; the whole is {} …]",
        text.len(),
        Digest::of(text.as_bytes()).reference()
    );
    format!("{head}\n{handle}\n{tail}")
}

/// Returns the part that shows a text as a blob.
pub(crate) fn blob_of(text: &str, media_type: &str) -> Part {
    Part::Blob {
        digest: Digest::of(text.as_bytes()),
        media_type: media_type.to_owned(),
        size: text.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_output_keeps_its_edges_and_a_handle_to_the_whole() {
        let text = format!("start{}end", "ä".repeat(40_000));
        let (parts, blob) = spill(vec![Part::text(text.clone())]);
        assert_eq!(blob, Some(text.clone().into_bytes()));
        let [Part::Text { text: edges }, Part::Blob { digest, size, .. }] = parts.as_slice() else {
            panic!("{parts:?}")
        };
        assert!(edges.starts_with("start") && edges.ends_with("end") && edges.len() < 10_000);
        assert!(edges.contains(&digest.reference()));
        assert_eq!(
            (*digest, *size),
            (Digest::of(text.as_bytes()), text.len() as u64)
        );
    }

    #[test]
    fn many_short_texts_are_as_long_as_one_long_text() {
        let file = Part::Blob {
            digest: Digest::of(b"file"),
            media_type: "image/png".into(),
            size: 4,
        };
        let mut parts = vec![Part::text("x".repeat(INLINE_TEXT_BYTES_MAX / 4)); 5];
        assert_eq!(
            spill(parts[..4].to_vec()),
            (parts[..4].to_vec(), None),
            "what fits stays as it is"
        );
        parts.insert(1, file.clone());
        let (kept, blob) = spill(parts);
        assert!(
            matches!(kept.as_slice(), [Part::Text { .. }, Part::Blob { .. }, last] if *last == file)
        );
        assert!(blob.is_some_and(|blob| blob.len() > INLINE_TEXT_BYTES_MAX));
    }

    #[test]
    fn a_long_value_becomes_a_blob_of_json() {
        assert_eq!(spill_value(&json!({ "index": 1 })), None);
        let value = json!({ "essay": "x".repeat(INLINE_TEXT_BYTES_MAX) });
        let (parts, blob) = spill_value(&value).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&blob).unwrap(), value);
        let [
            Part::Text { .. },
            Part::Blob {
                media_type, digest, ..
            },
        ] = parts.as_slice()
        else {
            panic!("{parts:?}")
        };
        assert_eq!(
            (media_type.as_str(), *digest),
            ("application/json", Digest::of(&blob))
        );
    }
}
