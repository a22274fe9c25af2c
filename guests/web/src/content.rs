//! The kinds of content, by their media type.

use crate::charset::charset_of;

/// The treatment of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Turned into markdown.
    Html,
    /// Passed through.
    Text,
    /// Refused.
    Binary,
}

/// The media type of a body, as its header states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Media {
    /// Such as `text/html`, in lower case; empty when nothing says.
    pub(crate) essence: String,
    /// Such as `utf-8`.
    pub(crate) charset: Option<String>,
}

impl Media {
    pub(crate) fn of(header: Option<&str>) -> Self {
        let header = header.unwrap_or_default();
        let (essence, parameters) = header.split_once(';').unwrap_or((header, ""));
        Self {
            essence: essence.trim().to_ascii_lowercase(),
            charset: charset_of(parameters).map(str::to_owned),
        }
    }

    /// Returns the kind that the type states; none when there is no type, or it is
    /// `application/octet-stream`.
    pub(crate) fn kind(&self) -> Option<Kind> {
        let (kind, name) = self.essence.split_once('/')?;
        Some(match (kind, name) {
            ("text", "html") | ("application", "xhtml+xml") => Kind::Html,
            ("text", _) => Kind::Text,
            ("application", name) if is_text(name) => Kind::Text,
            // What servers say when they do not know: look.
            ("application", "octet-stream") => return None,
            _ => Kind::Binary,
        })
    }
}

fn is_text(name: &str) -> bool {
    const TEXTS: [&str; 13] = [
        "json",
        "ld+json",
        "x-ndjson",
        "jsonl",
        "xml",
        "javascript",
        "x-javascript",
        "ecmascript",
        "yaml",
        "x-yaml",
        "toml",
        "sql",
        "graphql",
    ];
    TEXTS.contains(&name)
        || name.ends_with("+json")
        || name.ends_with("+xml")
        || name.ends_with("+yaml")
}

/// Guesses the kind of a body that nothing describes, from its first bytes.
pub(crate) fn sniffed(bytes: &[u8]) -> Kind {
    /// Bytes that are looked at.
    const SNIFFED_BYTES_MAX: usize = 1_024;
    let head = bytes.get(..SNIFFED_BYTES_MAX).unwrap_or(bytes);
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 14..=26 | 28..=31);
    if head.iter().any(is_binary) {
        Kind::Binary
    } else if begins_as_html(head) {
        Kind::Html
    } else {
        Kind::Text
    }
}

/// Returns true if it begins with a comment, a document type, or one of the elements that pages
/// begin with.
fn begins_as_html(head: &[u8]) -> bool {
    const ELEMENTS: [&str; 28] = [
        "html", "head", "body", "title", "meta", "link", "script", "style", "iframe", "noscript",
        "main", "header", "nav", "article", "section", "div", "span", "table", "ul", "ol", "p",
        "a", "b", "br", "font", "center", "pre", "img",
    ];
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let Some(tag) = head.trim_ascii_start().strip_prefix(b"<") else {
        return false;
    };
    let starts = |with: &[u8]| {
        tag.get(..with.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    let mut names = tag.split(|byte| !byte.is_ascii_alphanumeric());
    let name = names.next().unwrap_or_default();
    let is_name = |element: &&str| name.eq_ignore_ascii_case(element.as_bytes());
    let is_headline = matches!(name, [b'h' | b'H', b'1'..=b'6']);
    let is_element = is_headline || ELEMENTS.iter().any(is_name);
    let is_ended = matches!(
        tag.get(name.len()),
        Some(b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
    );
    starts(b"!--") || starts(b"!doctype") || (is_element && is_ended)
}

/// Without what moves cursors, ends lines early or hides in them: of the control characters only
/// tabs and ends of lines are left.
pub(crate) fn without_controls(mut text: String) -> String {
    if text.contains('\r') {
        text = text.replace("\r\n", "\n").replace('\r', "\n");
    }
    text.retain(|letter| matches!(letter, '\n' | '\t') || !letter.is_control());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_text_is_known_by_its_media_type() {
        for (header, kind) in [
            ("text/html; charset=utf-8", Some(Kind::Html)),
            ("APPLICATION/XHTML+XML", Some(Kind::Html)),
            ("text/plain", Some(Kind::Text)),
            ("text/markdown;charset=UTF-8", Some(Kind::Text)),
            ("application/json", Some(Kind::Text)),
            ("application/vnd.api+json", Some(Kind::Text)),
            ("application/rss+xml", Some(Kind::Text)),
            ("image/png", Some(Kind::Binary)),
            ("application/pdf", Some(Kind::Binary)),
            ("application/octet-stream", None),
            ("", None),
            ("nonsense", None),
        ] {
            assert_eq!(Media::of(Some(header)).kind(), kind, "{header}");
        }
        assert_eq!(
            Media::of(Some("text/html; Charset=\"ISO-8859-1\""))
                .charset
                .as_deref(),
            Some("ISO-8859-1")
        );
    }

    #[test]
    fn of_control_characters_only_tabs_and_ends_of_lines_are_left() {
        assert_eq!(
            without_controls("a\tb\r\nc\rd\ne\u{1b}[2J\u{0}\u{7f}\u{9b}é".to_owned()),
            "a\tb\nc\nd\ne[2Jé"
        );
    }

    #[test]
    fn what_nobody_names_is_looked_at() {
        for html in [
            "\n<!DOCTYPE HTML><p>",
            "<!doctype>",
            "<h1>x</h1>",
            "<P class=a>",
            "\u{feff}<html>",
            "<!-- x --><b>y",
            "<br/>",
        ] {
            assert_eq!(sniffed(html.as_bytes()), Kind::Html, "{html}");
        }
        for text in [
            "<?xml version='1.0'?><feed/>",
            "<rss>",
            "<h7>",
            "<a@example.com>",
            "< b",
            "a <p>",
            "<p",
        ] {
            assert_eq!(sniffed(text.as_bytes()), Kind::Text, "{text}");
        }
        assert_eq!(sniffed(b"{\"a\": 1}\x1b"), Kind::Text);
        assert_eq!(sniffed(b""), Kind::Text);
        assert_eq!(sniffed(b"\x89PNG\r\n\x1a\n\0\0"), Kind::Binary);
    }
}
