//! The step from bytes to text: the charset of a body, and its text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes at the beginning of a page that are searched for its charset, as in browsers.
const SNIFFED_BYTES_MAX: usize = 1_024;

/// The text of a body. What says its charset goes by this order: a byte order mark, the header, for
/// HTML a `meta` element. When nothing says, it is UTF-8 if it is valid, and windows-1252, which
/// includes latin-1, if not. `whole` is false when bytes are missing at the end.
pub(crate) fn decode(bytes: &[u8], header: Option<&str>, is_html: bool, whole: bool) -> String {
    let stated = header.or_else(|| if is_html { stated_in(bytes) } else { None });
    let encoding = match stated.and_then(|label| Encoding::for_label(label.as_bytes())) {
        // A page that could be read as far as its `meta` element is not in UTF-16.
        Some(encoding) if header.is_none() && (encoding == UTF_16BE || encoding == UTF_16LE) => {
            UTF_8
        }
        Some(encoding) => encoding,
        None if is_utf8(bytes, whole) => UTF_8,
        None => WINDOWS_1252,
    };
    encoding.decode(bytes).0.into_owned()
}

/// A character that is cut in two at the end does not count against a body that was cut.
fn is_utf8(bytes: &[u8], whole: bool) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => !whole && error.error_len().is_none(),
    }
}

/// Returns the charset that a `meta` element states, in either of its two ways: both have
/// `charset=` in it.
fn stated_in(bytes: &[u8]) -> Option<&str> {
    let head = bytes.get(..SNIFFED_BYTES_MAX).unwrap_or(bytes);
    // The part before the first byte that is not UTF-8 is enough: these elements come first and are
    // ASCII.
    let head = head.utf8_chunks().next()?.valid();
    tags(head).find_map(charset_of)
}

/// Returns the texts between `<meta` and `>`.
fn tags(head: &str) -> impl Iterator<Item = &str> {
    head.split('<').filter_map(|tag| {
        let name = tag.get(..4)?;
        name.eq_ignore_ascii_case("meta")
            .then(|| tag.split('>').next().unwrap_or(tag))
    })
}

/// The value behind `charset=`, of a header or a tag.
pub(crate) fn charset_of(text: &str) -> Option<&str> {
    let at = text
        .as_bytes()
        .windows(8)
        .position(|window| window.eq_ignore_ascii_case(b"charset="))?;
    let value = text.get(at + 8..)?.trim_start_matches(['"', '\'', ' ']);
    let value = value.split(['"', '\'', ' ', ';', '/', ',']).next()?;
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_of_a_body_is_what_its_head_says() {
        let latin: &[u8] = b"caf\xe9 \x80";
        let cases: [(&[u8], Option<&str>, bool, &str); 10] = [
            ("café".as_bytes(), Some("utf-8"), false, "café"),
            ("café".as_bytes(), None, false, "café"),
            (latin, Some("ISO-8859-1"), false, "café €"),
            (latin, None, false, "café €"),
            (
                b"<meta charset=latin1>caf\xe9",
                None,
                true,
                "<meta charset=latin1>café",
            ),
            (
                b"<META http-equiv='x' content='text/html; charset=windows-1252'>\xe9",
                None,
                true,
                "…é",
            ),
            (b"<meta charset=\"utf-16\">\xc3\xa9", None, true, "…é"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", Some("latin1"), false, "café"),
            (b"\xff\xfea\0", Some("utf-8"), false, "a"),
            (b"caf\xc3\xa9", Some("no-such-charset"), false, "café"),
        ];
        for (bytes, header, is_html, expected) in cases {
            let text = decode(bytes, header, is_html, true);
            match expected.strip_prefix('…') {
                Some(end) => assert!(text.ends_with(end), "{text}"),
                None => assert_eq!(text, expected),
            }
        }
    }

    #[test]
    fn a_character_that_was_cut_in_two_does_not_change_the_charset() {
        assert!(
            decode(
                "caféé".as_bytes().split_last().unwrap().1,
                None,
                false,
                false
            )
            .starts_with("café")
        );
    }
}
