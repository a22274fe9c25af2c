//! The feeding of a page to the parser, piece by piece. Takes out of a tag what is too much of it.
//!
//! The tokenizer compares each attribute of a tag with all before it, so a tag of tens of thousands
//! of them would cost time by the square. Where a tag begins is its secret, but within one it is
//! silent, as within a comment: no token comes until the end. So what is silent for too many words
//! loses the rest of them, up to whatever may be its end. A comment, or a long value in quotes,
//! only becomes shorter by that.

use html5ever::tendril::StrTendril;

/// Bytes that are handed over at once.
const PIECE_BYTES: usize = 256;
/// Words within a tag or a comment after which no more of them are handed over. One attribute is a
/// word at least.
pub(super) const WORDS_MAX: usize = 256;

/// Hands over all of a page. `hand_over` returns whether the piece has led to a token.
pub(super) fn feed(source: &str, mut hand_over: impl FnMut(StrTendril) -> bool) {
    let mut left = source;
    let mut silent_words = 0;
    let mut dashes = 0;
    while !left.is_empty() {
        let is_too_long = silent_words >= WORDS_MAX;
        let (piece, rest) = left.split_at(end_of_piece(left, is_too_long));
        left = rest;
        let is_heard = if is_too_long {
            let ends = ends_in(piece, &mut dashes);
            !ends.is_empty() && hand_over(StrTendril::from(ends))
        } else {
            hand_over(StrTendril::from_slice(piece))
        };
        silent_words = if is_heard {
            0
        } else {
            silent_words + piece.bytes().filter(|byte| ends_a_word(*byte)).count()
        };
    }
}

/// Returns the end of the next piece. In a tag or comment that is too long, the piece ends at the
/// next `>`: it may be the end of all of it, and what comes after must not be lost.
fn end_of_piece(text: &str, is_too_long: bool) -> usize {
    let end = text.floor_char_boundary(PIECE_BYTES);
    let tag = text.bytes().take(end).position(|byte| byte == b'>');
    tag.filter(|_| is_too_long).map_or(end, |at| at + 1)
}

/// Returns true if an attribute may end here.
fn ends_a_word(byte: u8) -> bool {
    matches!(
        byte,
        b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'/' | b'"' | b'\''
    )
}

/// Returns the characters of a piece that may end a value, a tag or a comment. No two attributes
/// can be made of the result, since nothing stands between the characters.
fn ends_in(piece: &str, dashes: &mut usize) -> String {
    let mut ends = String::new();
    for letter in piece.chars() {
        match letter {
            '>' if *dashes >= 2 => ends.push_str("-->"),
            '>' | '"' | '\'' => ends.push(letter),
            _ => {}
        }
        *dashes = if letter == '-' { *dashes + 1 } else { 0 };
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_speaks_is_handed_over_as_it_is() {
        let source = "é <b>".repeat(1_000);
        let mut handed = String::new();
        feed(&source, |piece| {
            assert!(piece.len() <= PIECE_BYTES);
            handed.push_str(&piece);
            true
        });
        assert_eq!(handed, source);
    }

    #[test]
    fn what_is_silent_for_too_long_loses_its_words_up_to_its_end() {
        let source = format!(
            "<!-- {}x=\"1\" - y --><p>words",
            "a ".repeat(10 * WORDS_MAX)
        );
        let mut handed = String::new();
        feed(&source, |piece| {
            handed.push_str(&piece);
            piece.contains('>')
        });
        assert!(
            handed.len() < 2 * WORDS_MAX + 2 * PIECE_BYTES,
            "{}",
            handed.len()
        );
        assert!(handed.ends_with("\"\"--><p>words"), "{handed}");
    }
}
