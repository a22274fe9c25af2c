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
    pub(crate) fn parse(header: Option<&str>) -> Self {
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

/// A text on one line of at most so many characters, without those that nobody sees and a model
/// reads all the same: controls, marks that turn the reading direction, tags, what has no width.
pub(crate) fn on_one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    let seen = |letter: &char| letter.is_whitespace() || !is_hidden(*letter);
    for letter in text.chars().filter(seen) {
        let is_space = letter.is_whitespace();
        let is_idle = line.is_empty() || line.ends_with(' ') || chars == chars_max;
        if is_space && is_idle {
            continue;
        }
        if chars == chars_max {
            line.truncate(line.trim_end().len());
            line.push('…');
            return line;
        }
        line.push(if is_space { ' ' } else { letter });
        chars += 1;
    }
    line.truncate(line.trim_end().len());
    line
}

/// Returns true for a character that is invisible, or changes how others are shown. The host has
/// the same list for what operators read.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
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
            assert_eq!(Media::parse(Some(header)).kind(), kind, "{header}");
        }
        assert_eq!(
            Media::parse(Some("text/html; Charset=\"ISO-8859-1\""))
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
    fn a_line_has_one_space_between_words_and_nothing_that_is_hidden() {
        let hidden = "\u{feff}a\u{200b}b \u{202e}\u{a0}c\n\u{1b}[2J\u{e0041}\u{ad}d ";
        assert_eq!(on_one_line(hidden, 50), "ab c [2Jd");
        assert_eq!(on_one_line("one two", 7), "one two");
        assert_eq!(on_one_line("one two", 4), "one…");
        assert_eq!(on_one_line("one two", 3), "one…");
        assert_eq!(on_one_line("one\n", 3), "one");
        assert_eq!(on_one_line("\u{200d}\u{2066}", 3), "");
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
