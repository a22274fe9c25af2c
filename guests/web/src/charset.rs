//! The step from bytes to text: the charset of a body, and its text.

mod prescan;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// The text of a body. What says its charset goes by this order: a byte order mark, the header, for
/// HTML a `meta` element, and the declaration of XML. When nothing says, it is UTF-8 if it is
/// valid. If not, it is what a later `meta` element says, or windows-1252, which includes latin-1.
/// `whole` is false when bytes are missing at the end.
pub(crate) fn decode(bytes: &[u8], header: Option<&str>, is_html: bool, whole: bool) -> String {
    let stated = header
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .or_else(|| prescan::encoding(bytes, is_html));
    let encoding = match stated {
        Some(encoding) => encoding,
        None if is_utf8(bytes, whole) => UTF_8,
        None => prescan::late_encoding(bytes, is_html).unwrap_or(WINDOWS_1252),
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

/// The value behind `charset=` of a header.
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
        let cases: [(&[u8], Option<&str>, bool, &str); 11] = [
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
            (b"<meta charset=big5>\xa4\xa4", Some("no-such"), true, "…中"),
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
