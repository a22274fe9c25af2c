//! The step from bytes to text: the charset of a body, and its text. Where a page states it, it is
//! found as the HTML Standard says ("prescan a byte stream to determine its encoding"); bytes of
//! any charset may stand before that.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// The text of a body. What says its charset goes by this order: a byte order mark, the header, for
/// HTML a `meta` element, and the declaration of XML. When nothing says, it is UTF-8 if it is
/// valid. If not, it is what a later `meta` element says, or windows-1252, which includes latin-1.
/// `whole` is false when bytes are missing at the end.
pub(crate) fn decode(bytes: &[u8], header: Option<&str>, is_html: bool, whole: bool) -> String {
    let stated = header
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .or_else(|| encoding(bytes, is_html));
    let encoding = match stated {
        Some(encoding) => encoding,
        None if is_utf8(bytes, whole) => UTF_8,
        None => late_encoding(bytes, is_html).unwrap_or(WINDOWS_1252),
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

/// Bytes at the beginning of a page that are searched for its charset, as in browsers.
const SCANNED_BYTES_MAX: usize = 1_024;
/// Bytes that are searched where nothing before says it: browsers begin anew where they come to a
/// later element.
const LATE_BYTES_MAX: usize = 64 << 10;

/// The encoding that a page states: HTML in a `meta` element, and anything in the declaration of
/// XML.
fn encoding(bytes: &[u8], is_html: bool) -> Option<&'static Encoding> {
    let head = bytes.get(..SCANNED_BYTES_MAX).unwrap_or(bytes);
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let in_meta = if is_html { Scan(head).meta() } else { None };
    in_meta.or_else(|| readable(xml_label(head)?))
}

/// The encoding that a `meta` element further down in HTML states.
fn late_encoding(bytes: &[u8], is_html: bool) -> Option<&'static Encoding> {
    let head = bytes.get(..LATE_BYTES_MAX).unwrap_or(bytes);
    is_html.then(|| Scan(head).meta()).flatten()
}

/// The encoding of a label. What could be read as far as the label is not in UTF-16.
fn readable(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(label).map(|encoding| {
        if encoding == UTF_16BE || encoding == UTF_16LE {
            UTF_8
        } else if encoding == X_USER_DEFINED {
            WINDOWS_1252
        } else {
            encoding
        }
    })
}

/// The label in `<?xml … encoding="…"?>`.
fn xml_label(head: &[u8]) -> Option<&[u8]> {
    let rest = head.strip_prefix(b"<?xml")?;
    let end = rest.iter().position(|byte| *byte == b'>')?;
    let declaration = rest.get(..end)?;
    let at = position(declaration, b"encoding")?;
    let value = declaration.get(at + b"encoding".len()..)?;
    let value = value
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let (quote, value) = value.split_first()?;
    let end = value.iter().position(|byte| byte == quote)?;
    let is_quote = matches!(quote, b'"' | b'\'');
    value.get(..end).filter(|_| is_quote)
}

/// The label in the `content` of a `meta` element.
fn content_label(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        let lower = rest.to_ascii_lowercase();
        let at = position(&lower, b"charset")?;
        rest = rest.get(at + b"charset".len()..)?;
        let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else {
            continue;
        };
        let value = value.trim_ascii_start();
        return match value.split_first()? {
            (quote @ (b'"' | b'\''), value) => {
                let end = value.iter().position(|byte| byte == quote)?;
                value.get(..end)
            }
            _ => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
                let end = value.iter().position(is_end).unwrap_or(value.len());
                value.get(..end)
            }
        };
    }
}

fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

/// The bytes that are not scanned yet.
struct Scan<'a>(&'a [u8]);

impl<'a> Scan<'a> {
    /// Goes through the tags to the first `meta` element that states an encoding.
    fn meta(&mut self) -> Option<&'static Encoding> {
        loop {
            let at = self.0.iter().position(|byte| *byte == b'<')?;
            self.skip(at)?;
            if self.0.starts_with(b"<!--") {
                // The end may share its hyphens with the beginning.
                self.skip(2)?;
                let end = position(self.0, b"-->")?;
                self.skip(end + 3)?;
            } else if self.starts_meta() {
                self.skip(5)?;
                if let Some(found) = self.stated() {
                    return Some(found);
                }
            } else if let [b'<', b'/', letter, ..] | [b'<', letter, ..] = self.0
                && letter.is_ascii_alphabetic()
            {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
                let end = self.0.iter().position(is_end)?;
                self.skip(end)?;
                while self.attribute()?.is_some() {}
            } else if matches!(self.0, [b'<', b'!' | b'/' | b'?', ..]) {
                let end = self.0.iter().position(|byte| *byte == b'>')?;
                self.skip(end)?;
            } else {
                self.skip(1)?;
            }
        }
    }

    fn starts_meta(&self) -> bool {
        let name = self.0.get(..5).unwrap_or_default();
        let behind = self.0.get(5).copied().unwrap_or_default();
        name.eq_ignore_ascii_case(b"<meta") && (behind.is_ascii_whitespace() || behind == b'/')
    }

    /// The encoding that the attributes of a `meta` element state.
    fn stated(&mut self) -> Option<&'static Encoding> {
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut is_about_type = false;
        let mut by_content = None;
        let mut by_charset = None;
        while let Some((name, value)) = self.attribute()? {
            if seen.contains(&name) {
                continue;
            }
            match name.as_slice() {
                b"http-equiv" => is_about_type |= value == b"content-type",
                b"content" => by_content = content_label(&value).and_then(readable),
                b"charset" => by_charset = Some(readable(&value)),
                _ => {}
            }
            seen.push(name);
        }
        by_charset.unwrap_or_else(|| by_content.filter(|_| is_about_type))
    }

    /// The next attribute of a tag, name and value in lower case; none at the end of the tag.
    /// Without anything where the bytes end first.
    fn attribute(&mut self) -> Option<Option<(Vec<u8>, Vec<u8>)>> {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/';
        let between = self.0.iter().position(|byte| !is_between(byte))?;
        self.skip(between)?;
        if self.0.starts_with(b">") {
            return Some(None);
        }
        let is_end = |byte: &u8| is_between(byte) || matches!(byte, b'=' | b'>');
        // The first sign of a name may be `=`.
        let behind = self.0.get(1..)?;
        let name = self.take(1 + behind.iter().position(is_end)?)?;
        let blanks = self.0.iter().position(|byte| !byte.is_ascii_whitespace())?;
        if self.0.get(blanks) != Some(&b'=') {
            return Some(Some((name, Vec::new())));
        }
        self.skip(blanks + 1)?;
        let blanks = self.0.iter().position(|byte| !byte.is_ascii_whitespace())?;
        self.skip(blanks)?;
        let value = match self.0.first()? {
            quote @ (b'"' | b'\'') => {
                let quote = *quote;
                self.skip(1)?;
                let end = self.0.iter().position(|byte| *byte == quote)?;
                let value = self.take(end)?;
                self.skip(1)?;
                value
            }
            _ => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
                let end = self.0.iter().position(is_end)?;
                self.take(end)?
            }
        };
        Some(Some((name, value)))
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let taken = self.0.get(..bytes)?.to_ascii_lowercase();
        self.skip(bytes)?;
        Some(taken)
    }
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

    #[test]
    fn a_charset_is_found_as_browsers_find_it() {
        for (page, expected) in [
            (
                &b"<title>\x93\xfa</title><meta charset=shift_jis>"[..],
                "Shift_JIS",
            ),
            (
                b"<title>\xd4</title><meta charset='windows-1251'>",
                "windows-1251",
            ),
            (
                b"\x93<META content='text/html; charset = \"euc-kr\"' HTTP-EQUIV=Content-Type>",
                "EUC-KR",
            ),
            (
                b"<meta http-equiv=content-type content=text/html;charset=gbk>",
                "GBK",
            ),
            (b"<meta content='text/html; charset=gbk'>", "none"),
            (b"<meta charset=nonsense><meta charset=koi8-r>", "KOI8-R"),
            (
                b"<!-- <meta charset=big5> --><meta charset=gb18030>",
                "gb18030",
            ),
            (b"<!--><meta charset=big5>", "Big5"),
            (
                b"<p title='<meta charset=big5>'><meta/charset=euc-jp>",
                "EUC-JP",
            ),
            (b"<metadata charset=big5>", "none"),
            (b"<meta name=x charset=utf-16le>", "UTF-8"),
            (b"<meta charset=x-user-defined>", "windows-1252"),
            (b"<meta charset=gbk charset=big5>", "GBK"),
            (
                b"<?xml version='1.0' encoding='iso-8859-2'?><html>",
                "ISO-8859-2",
            ),
            (b"<?xml encoding='big5'?><meta charset=gbk>", "GBK"),
            (b"<\0?\0x\0m\0", "UTF-16LE"),
            (b"\0<\0?\0x\0m", "UTF-16BE"),
            (b"<meta charset=gbk", "none"),
        ] {
            let found = encoding(page, true).map_or("none", |encoding| encoding.name());
            assert_eq!(found, expected, "{}", page.escape_ascii());
        }
        let late = [b" ".repeat(1_024).as_slice(), b"<meta charset=gbk>"].concat();
        assert_eq!(encoding(&late, true), None);
        assert_eq!(late_encoding(&late, true).unwrap().name(), "GBK");
        assert_eq!(late_encoding(&late, false), None);
        let xml = b"<?xml version=\"1.0\" encoding=\"koi8-r\" ?><rss>";
        assert_eq!(encoding(xml, false).unwrap().name(), "KOI8-R");
        assert_eq!(encoding(b"<meta charset=gbk>", false), None);
    }
}
