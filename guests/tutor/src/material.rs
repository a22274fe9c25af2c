//! Material: a text, cut into the parts in which it is taught.

/// Parts of a lesson: a longer text has longer parts.
const PARTS_MAX: usize = 8;
/// Bytes of a part of a text that is not long.
const PART_BYTES: usize = 3_000;

/// Cuts a text between its paragraphs, before a heading if one is near, into parts of about the
/// same length. No part is empty.
pub(crate) fn parts(text: &str) -> Vec<String> {
    // Parts end at paragraphs and so before they are full: with room for that, there are not more
    // of them.
    let part_bytes = PART_BYTES.max(text.len().div_ceil(PARTS_MAX) * 3 / 2);
    let mut parts: Vec<String> = Vec::new();
    let mut part = String::new();
    for paragraph in text
        .split("\n\n")
        .flat_map(|paragraph| pieces(paragraph, part_bytes))
        .filter(|piece| !piece.trim().is_empty())
    {
        let is_full = part.len() + paragraph.len() > part_bytes;
        let is_good_end = paragraph.trim_start().starts_with('#') && part.len() > part_bytes / 2;
        if !part.is_empty() && (is_full || is_good_end) {
            parts.push(std::mem::take(&mut part));
        }
        if !part.is_empty() {
            part.push_str("\n\n");
        }
        part.push_str(paragraph.trim_end());
    }
    parts.extend((!part.is_empty()).then_some(part));
    parts
}

/// A paragraph, cut between words if it is longer than a part.
fn pieces(paragraph: &str, bytes_max: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = paragraph;
    while rest.len() > bytes_max {
        let (head, _) = rest.split_at(rest.floor_char_boundary(bytes_max));
        let end = head.rfind(char::is_whitespace).filter(|end| *end > 0);
        let end = end.unwrap_or(head.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_one_part_and_no_text_none() {
        assert_eq!(parts("One.\n\nTwo."), ["One.\n\nTwo."]);
        assert_eq!(parts(" \n\n \n"), [""; 0]);
    }

    #[test]
    fn parts_end_between_paragraphs_and_before_headings() {
        let paragraph = "word ".repeat(400);
        let text = format!("{paragraph}\n\n# Second\n\n{paragraph}\n\n{paragraph}");
        let parts = parts(&text);
        assert_eq!(parts.len(), 3);
        assert!(parts[1].starts_with("# Second\n\n"));
    }

    #[test]
    fn a_long_text_has_no_more_parts_and_loses_nothing() {
        let text = format!(
            "{}\n\n{}",
            "word ".repeat(15_000),
            "änderung\n\n".repeat(2_000)
        );
        let parts = parts(&text);
        assert!((2..=PARTS_MAX).contains(&parts.len()), "{}", parts.len());
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            parts
                .iter()
                .flat_map(|part| words(part))
                .collect::<Vec<_>>(),
            words(&text)
        );
    }
}
