//! Outputs that are too long for a conversation: the whole goes to a blob, head, tail and a handle go to the model.

use domain::digest::Digest;
use domain::limits::{INLINE_TEXT_BYTES_MAX, SPILL_EDGE_BYTES};
use domain::message::Part;

/// Replaces long texts by their edges and a blob. Returns the parts, and the blobs to be stored with them.
pub(crate) fn spill(parts: Vec<Part>) -> (Vec<Part>, Vec<Vec<u8>>) {
    let mut kept = Vec::new();
    let mut blobs = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } if text.len() > INLINE_TEXT_BYTES_MAX => {
                let head = text.get(..floor(&text, SPILL_EDGE_BYTES)).unwrap_or_default();
                let tail = text.get(ceil(&text, text.len() - SPILL_EDGE_BYTES)..).unwrap_or_default();
                let digest = Digest::of(text.as_bytes());
                let omitted = text.len() - head.len() - tail.len();
                kept.push(Part::text(format!(
                    "{head}\n[… {omitted} of {} bytes are left out here; the whole is {} …]\n{tail}",
                    text.len(),
                    digest.reference()
                )));
                kept.push(Part::Blob { digest, media_type: "text/plain".to_owned(), size: text.len() as u64 });
                blobs.push(text.into_bytes());
            }
            part => kept.push(part),
        }
    }
    (kept, blobs)
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_edges_and_a_handle_to_the_whole() {
        let text = format!("start{}end", "ä".repeat(40_000));
        let (parts, blobs) = spill(vec![Part::text("short"), Part::text(text.clone())]);
        assert_eq!(blobs, vec![text.clone().into_bytes()]);
        let [Part::Text { text: short }, Part::Text { text: edges }, Part::Blob { digest, size, .. }] = parts.as_slice() else {
            panic!("{parts:?}")
        };
        assert_eq!(short, "short");
        assert!(edges.starts_with("start") && edges.ends_with("end") && edges.len() < 10_000);
        assert_eq!((*digest, *size), (Digest::of(text.as_bytes()), text.len() as u64));
    }
}
