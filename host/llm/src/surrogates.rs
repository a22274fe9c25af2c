//! Characters that a provider cut in two: the halves of a surrogate pair in two chunks of a stream.
//!
//! JSON writes a character beyond the first 65,536, such as an emoji, as two escapes. A server that
//! cuts its model's text anywhere may end one chunk with the first and begin the next with the
//! second, and no parser of JSON accepts either. So a first half at the end of a text waits here
//! for the text of the same field in the next chunk. A half that has no other is replaced, as by
//! every lenient reader.

use crate::sse::Event;
use std::borrow::Cow;

/// Fields whose text ended with half a character, at the same time.
const PENDING_MAX: usize = 8;
/// The escape of the replacement character.
const REPLACEMENT: &str = "\\ufffd";
/// Characters of an escape such as `\ud83d`.
const ESCAPE_CHARS: usize = 6;

/// The halves that wait. See the module.
#[derive(Debug, Default)]
pub(crate) struct Surrogates {
    pending: Vec<PendingHalf>,
}

/// A first half that waits for the second.
#[derive(Debug)]
struct PendingHalf {
    /// The field at the end of whose text it stood.
    field: String,
    /// Its escape.
    escape: String,
}

/// The kind of an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

impl Surrogates {
    /// The next event of a stream, with whole characters.
    pub(crate) fn joined(&mut self, event: Event) -> Event {
        let data = match self.join(&event.data) {
            Cow::Borrowed(_) => None,
            Cow::Owned(data) => Some(data),
        };
        match data {
            Some(data) => Event { data, ..event },
            None => event,
        }
    }

    /// The next document of a stream, with whole characters.
    pub(crate) fn join<'t>(&mut self, json: &'t str) -> Cow<'t, str> {
        let has_halves = json.contains("\\ud") || json.contains("\\uD");
        if self.pending.is_empty() && !has_halves {
            return Cow::Borrowed(json);
        }
        let mut joined = String::with_capacity(json.len());
        let mut field = "";
        let mut rest = json;
        while let Some((before, from)) = rest.split_once('"') {
            joined.push_str(before);
            joined.push('"');
            let Some(end) = end_of_text(from) else {
                // Not JSON: whoever reads it says so.
                joined.push_str(from);
                return Cow::Owned(joined);
            };
            let (text, after) = from.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            if rest.trim_start().starts_with(':') {
                field = text;
                joined.push_str(text);
            } else {
                self.add_text(field, text, &mut joined);
            }
            joined.push('"');
        }
        joined.push_str(rest);
        Cow::Owned(joined)
    }

    /// Adds the text of a field with whole characters.
    fn add_text(&mut self, field: &str, mut text: &str, joined: &mut String) {
        if let Some(place) = self
            .pending
            .iter()
            .position(|pending| pending.field == field)
            && !text.is_empty()
        {
            let pending = self.pending.swap_remove(place);
            match half_at(text) {
                Some((Half::Second, second, rest)) => {
                    joined.push_str(&pending.escape);
                    joined.push_str(second);
                    text = rest;
                }
                Some((Half::First, ..)) | None => joined.push_str(REPLACEMENT),
            }
        }
        while let Some(at) = text.find('\\') {
            let (plain, escape) = text.split_at(at);
            joined.push_str(plain);
            text = match half_at(escape) {
                Some((Half::First, first, "")) if self.pending.len() < PENDING_MAX => {
                    self.pending.push(PendingHalf {
                        field: field.to_owned(),
                        escape: first.to_owned(),
                    });
                    ""
                }
                Some((Half::First, first, rest)) => match half_at(rest) {
                    Some((Half::Second, second, rest)) => {
                        joined.push_str(first);
                        joined.push_str(second);
                        rest
                    }
                    Some((Half::First, ..)) | None => {
                        joined.push_str(REPLACEMENT);
                        rest
                    }
                },
                Some((Half::Second, _, rest)) => {
                    joined.push_str(REPLACEMENT);
                    rest
                }
                None => {
                    // The backslash and what it escapes.
                    let whole = escape.char_indices().nth(2).map_or(escape.len(), |it| it.0);
                    let (other, rest) = escape.split_at(whole);
                    joined.push_str(other);
                    rest
                }
            };
        }
        joined.push_str(text);
    }
}

/// Returns where a text ends that began before: at its closing quotation mark.
fn end_of_text(from: &str) -> Option<usize> {
    let mut escaped = false;
    from.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Returns the half of a character with whose escape a text begins, and what follows it.
fn half_at(text: &str) -> Option<(Half, &str, &str)> {
    let (escape, rest) = text.split_at_checked(ESCAPE_CHARS)?;
    let digits = escape.strip_prefix("\\u")?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some((Half::First, escape, rest)),
        0xdc00..=0xdfff => Some((Half::Second, escape, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The texts of a field over the chunks of a stream, each read by itself.
    fn texts(field: &str, chunks: &[&str]) -> Vec<String> {
        let mut surrogates = Surrogates::default();
        let text = |chunk: &&str| {
            let joined = surrogates.join(chunk);
            let value: Value = serde_json::from_str(&joined)
                .unwrap_or_else(|error| panic!("{joined} is not JSON: {error}"));
            value[field].as_str().unwrap_or_default().to_owned()
        };
        chunks.iter().map(text).collect()
    }

    #[test]
    fn a_character_whose_halves_come_in_two_pieces_is_whole() {
        let chunks = [
            r#"{"type":"x","text":"a \"quoted\" \\ \ud83d"}"#,
            r#"{"type":"x","text":""}"#,
            r#"{"other":"b"}"#,
            r#"{"text":"\uDE00, and on"}"#,
        ];
        assert_eq!(
            texts("text", &chunks),
            ["a \"quoted\" \\ ", "", "", "😀, and on"]
        );
    }

    #[test]
    fn whole_characters_and_what_only_looks_like_a_half_stay_as_they_are() {
        for text in [
            r#"{"text":"\ud83d\ude00"}"#,
            r#"{"text":"\\ud83d"}"#,
            r#"{"text":"\u00e9 \ud7ff"}"#,
            r#"{"text":"no JSON \ud83d"#,
            "[DONE]",
        ] {
            assert_eq!(Surrogates::default().join(text), text);
        }
    }

    #[test]
    fn a_half_without_the_other_is_replaced() {
        let alone = texts(
            "text",
            &[
                r#"{"text":"a\ude00b\ud83dc\ud83d"}"#,
                r#"{"text":"d\ud83d\ud83d\ude00"}"#,
            ],
        );
        assert_eq!(alone, ["a\u{fffd}b\u{fffd}c", "\u{fffd}d\u{fffd}😀"]);
    }

    /// Calls and thoughts have their own fields, and a half of one never joins the other.
    #[test]
    fn halves_of_two_fields_do_not_meet() {
        let mut surrogates = Surrogates::default();
        surrogates.join(r#"{"content":"\ud83d","arguments":"\ud83c"}"#);
        let joined = surrogates.join(r#"{"arguments":"\udf89","content":"\ude00"}"#);
        let value: Value = serde_json::from_str(&joined).unwrap();
        assert_eq!(
            (&value["content"], &value["arguments"]),
            (&"😀".into(), &"🎉".into())
        );
    }

    #[test]
    fn a_stream_of_nothing_but_halves_is_bounded() {
        let mut surrogates = Surrogates::default();
        for number in 0..100 {
            surrogates.join(&format!(r#"{{"f{number}":"\ud83d"}}"#));
        }
        assert_eq!(surrogates.pending.len(), PENDING_MAX);
    }
}
