//! The stored form of a payload: compact, with long texts stored separately.
//!
//! A payload is JSON. In the stored form, known words are tokens of one or two bytes, ids and
//! digests are binary, and each long text is stored separately ([`crate::texts`]). In its place the
//! payload has a hole with the digest of the text. Marks and tokens are bytes that JSON never has
//! outside of a string, so the form is parsed from left to right.

use domain::digest::Digest;
use std::collections::HashMap;
use std::sync::LazyLock;
use uuid::Uuid;

/// Size in bytes from which on a text, or an object of short texts only, is stored separately. A
/// shorter one costs less inline than its hole and its row would.
const APART_BYTES_MIN: usize = 256;

/// Marks the place of a removed value: a text that is stored separately, a digest, a UUID.
const HOLE: u8 = 0;
const DIGEST: u8 = 1;
const UUID: u8 = 2;
/// First byte of a token of two bytes, with the higher bits of the word's line.
const PAIRED: u8 = 0x80;
/// From here on, a token of one byte.
const SINGLE: u8 = 0xc0;
/// Words with a token of one byte.
const SINGLES: u16 = 0x100 - SINGLE as u16;

/// The words of payloads, keys with their colons, the most common first. A word keeps its line for
/// ever, because stored payloads refer to its line number.
const WORDS: &str = include_str!("schema/words.txt");

static LINES: LazyLock<Vec<&[u8]>> = LazyLock::new(|| WORDS.lines().map(str::as_bytes).collect());
static TOKENS: LazyLock<HashMap<&[u8], u16>> =
    LazyLock::new(|| LINES.iter().copied().zip(0..).collect());

/// A payload that was taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The stored form.
    pub(crate) packed: Vec<u8>,
    /// The texts that are stored separately.
    pub(crate) apart: Vec<Apart>,
}

/// A text that is stored separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Apart {
    /// Its digest.
    pub(crate) digest: Digest,
    /// The text, with its quotes if it is a string.
    pub(crate) text: Vec<u8>,
}

/// Reason why a payload cannot be put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotWhole {
    /// A text that is stored separately from it is missing.
    #[error("a text of it is missing")]
    Missing,
    /// It differs from the payload that was stored.
    #[error("it is cut short, or has a word that is not known")]
    Damaged,
}

impl Payload {
    /// Takes JSON apart that has no spaces outside of its strings.
    pub(crate) fn of(json: &[u8]) -> Self {
        let mut payload = Self {
            packed: Vec::with_capacity(json.len()),
            apart: Vec::new(),
        };
        let mut rest = json;
        while let Some(next) = rest.iter().position(|byte| matches!(byte, b'"' | b'{')) {
            let (between, found) = rest.split_at(next);
            payload.packed.extend_from_slice(between);
            let bytes = match found.first() {
                Some(b'{') => payload.put_object(found),
                _ => payload.put_string(found),
            };
            rest = found.get(bytes..).unwrap_or_default();
        }
        payload.packed.extend_from_slice(rest);
        payload
    }

    /// Writes an object, or its brace alone if it has more than short texts. Returns the number of
    /// bytes consumed.
    fn put_object(&mut self, json: &[u8]) -> usize {
        let bytes = flat_bytes(json).filter(|bytes| *bytes >= APART_BYTES_MIN);
        match bytes.and_then(|bytes| json.get(..bytes)) {
            Some(object) => self.set_apart(object),
            None => self.packed.push(b'{'),
        }
        bytes.unwrap_or(1)
    }

    /// Writes a string, with its colon if it is a key. Returns the number of bytes consumed.
    fn put_string(&mut self, json: &[u8]) -> usize {
        let bytes = string_bytes(json);
        let is_key = json.get(bytes) == Some(&b':');
        let bytes = bytes + usize::from(is_key);
        let string = json.get(..bytes).unwrap_or(json);
        if let Some(line) = TOKENS.get(string) {
            match line.checked_sub(SINGLES).map(u16::to_be_bytes) {
                None => self.packed.push(SINGLE | line.to_be_bytes()[1]),
                Some([high, low]) => self.packed.extend_from_slice(&[PAIRED | high, low]),
            }
        } else if is_key {
            self.packed.extend_from_slice(string);
        } else if bytes >= APART_BYTES_MIN {
            self.set_apart(string);
        } else if let Some(digest) = digest(string) {
            self.packed.push(DIGEST);
            self.packed.extend_from_slice(&digest);
        } else if let Some(id) = uuid(string) {
            self.packed.push(UUID);
            self.packed.extend_from_slice(&id);
        } else {
            self.packed.extend_from_slice(string);
        }
        bytes
    }

    fn set_apart(&mut self, text: &[u8]) {
        let digest = Digest::of(text);
        self.packed.push(HOLE);
        self.packed.extend_from_slice(&digest.0);
        self.apart.push(Apart {
            digest,
            text: text.to_vec(),
        });
    }
}

/// Puts a payload together again, as JSON.
pub(crate) fn whole<T: AsRef<[u8]>>(
    packed: &[u8],
    mut text: impl FnMut(Digest) -> Option<T>,
) -> Result<Vec<u8>, NotWhole> {
    let mut json = Vec::with_capacity(packed.len() * 2);
    for chunk in chunks(packed) {
        match chunk? {
            Chunk::Json(bytes) => json.extend_from_slice(bytes),
            Chunk::Hole(digest) => {
                json.extend_from_slice(text(digest).ok_or(NotWhole::Missing)?.as_ref());
            }
            Chunk::Digest(digest) => {
                json.extend_from_slice(format!("\"{}\"", digest.hex()).as_bytes());
            }
            Chunk::Uuid(id) => json.extend_from_slice(format!("\"{id}\"").as_bytes()),
        }
    }
    Ok(json)
}

/// Returns the digests of the texts that are stored separately from a payload, in the order of its
/// holes.
pub(crate) fn holes(packed: &[u8]) -> impl Iterator<Item = Digest> {
    chunks(packed).filter_map(|chunk| match chunk {
        Ok(Chunk::Hole(digest)) => Some(digest),
        _ => None,
    })
}

/// A chunk of a stored form.
enum Chunk<'a> {
    Json(&'a [u8]),
    Hole(Digest),
    Digest(Digest),
    Uuid(Uuid),
}

fn chunks(packed: &[u8]) -> impl Iterator<Item = Result<Chunk<'_>, NotWhole>> {
    let mut rest = packed;
    std::iter::from_fn(move || {
        let (chunk, after) = match chunk(rest)? {
            Some(chunk) => (Ok(chunk.0), chunk.1),
            None => (Err(NotWhole::Damaged), Default::default()),
        };
        rest = after;
        Some(chunk)
    })
}

/// Returns the first chunk and the rest. The outer option is none at the end, the inner one if the
/// chunk is damaged.
fn chunk(packed: &[u8]) -> Option<Option<(Chunk<'_>, &[u8])>> {
    fn fixed<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<N>()?;
        Some((*fixed, rest))
    }
    let (first, after) = packed.split_first()?;
    let word = |line: u16| LINES.get(usize::from(line)).map(|word| Chunk::Json(word));
    Some(match *first {
        HOLE => fixed(after).map(|(digest, rest)| (Chunk::Hole(Digest(digest)), rest)),
        DIGEST => fixed(after).map(|(digest, rest)| (Chunk::Digest(Digest(digest)), rest)),
        UUID => fixed(after).map(|(id, rest)| (Chunk::Uuid(Uuid::from_bytes(id)), rest)),
        SINGLE.. => word(u16::from(first - SINGLE)).map(|word| (word, after)),
        PAIRED.. => after.split_first().and_then(|(low, rest)| {
            let line = u16::from_be_bytes([first - PAIRED, *low]) + SINGLES;
            word(line).map(|word| (word, rest))
        }),
        _ => {
            let bytes = if *first == b'"' {
                string_bytes(packed)
            } else {
                let is_json = |byte: &u8| matches!(byte, b' '..PAIRED) && *byte != b'"';
                packed.iter().take_while(|byte| is_json(byte)).count()
            };
            packed
                .split_at_checked(bytes)
                .filter(|(json, _)| !json.is_empty())
                .map(|(json, rest)| (Chunk::Json(json), rest))
        }
    })
}

/// Returns the bytes of the string at the start of JSON, with its quotes.
fn string_bytes(json: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = json.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

/// Returns the bytes of the object at the start of JSON if it has no list, no object and no long
/// text.
fn flat_bytes(json: &[u8]) -> Option<usize> {
    let mut bytes = 1;
    loop {
        let rest = json.get(bytes..)?;
        bytes += match rest.first()? {
            b'"' => Some(string_bytes(rest)).filter(|bytes| *bytes < APART_BYTES_MIN)?,
            b'{' | b'[' => return None,
            b'}' => return Some(bytes + 1),
            _ => 1,
        };
    }
}

/// Returns the bytes of a string of 64 hexadecimal digits.
fn digest(string: &[u8]) -> Option<[u8; 32]> {
    let digits = string.get(1..65).filter(|_| string.len() == 66)?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    let is_lower = digits.iter().all(|digit| !digit.is_ascii_uppercase());
    is_lower.then_some(bytes)
}

/// Returns the bytes of a string that is a UUID with hyphens.
fn uuid(string: &[u8]) -> Option<[u8; 16]> {
    let text = string.get(1..37).filter(|_| string.len() == 38)?;
    let id = Uuid::try_parse_ascii(text).ok()?;
    let mut again = [0; 36];
    (id.hyphenated().encode_lower(&mut again).as_bytes() == text).then(|| id.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::{APART_BYTES_MIN, LINES, NotWhole, Payload, TOKENS, holes, whole};
    use domain::digest::Digest;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn there_and_back(value: &Value) {
        let json = value.to_string().into_bytes();
        let payload = Payload::of(&json);
        let digests: Vec<Digest> = payload.apart.iter().map(|apart| apart.digest).collect();
        assert_eq!(holes(&payload.packed).collect::<Vec<_>>(), digests);
        let text = |digest| {
            let apart = payload.apart.iter().find(|apart| apart.digest == digest)?;
            Some(apart.text.clone())
        };
        assert_eq!(whole(&payload.packed, text), Ok(json));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            "[a-z\\\\\"\\PC]{200,400}".prop_map(Value::from),
            any::<[u8; 32]>().prop_map(|bytes| Digest(bytes).hex().into()),
            any::<u128>().prop_map(|id| uuid::Uuid::from_u128(id).to_string().into()),
            prop::sample::select(
                LINES
                    .iter()
                    .map(|word| word.trim_ascii())
                    .collect::<Vec<_>>()
            )
            .prop_map(|word| String::from_utf8_lossy(word)
                .trim_matches(['"', ':'])
                .into()),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            let key = prop_oneof!["[a-z_]{0,8}", Just("kind".to_owned()), ".{0,300}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_json_is_stored_is_read_again(value in any_json()) {
            there_and_back(&value);
        }

        #[test]
        fn damaged_bytes_are_refused_or_read_and_never_panic(bytes: Vec<u8>) {
            let _ = whole(&bytes, |_| Some("\"\""));
        }
    }

    #[test]
    fn a_long_text_stands_apart_wherever_it_is() {
        let long = "word ".repeat(APART_BYTES_MIN);
        let payload = Payload::of(
            json!({ "text": long, "again": [long] })
                .to_string()
                .as_bytes(),
        );
        assert!(payload.packed.len() < 100, "{}", payload.packed.len());
        let digest = Digest::of(format!("\"{long}\"").as_bytes());
        assert_eq!(holes(&payload.packed).collect::<Vec<_>>(), [digest, digest]);
    }

    #[test]
    fn a_missing_text_is_told_from_damage() {
        let json = json!({ "text": "word ".repeat(APART_BYTES_MIN) }).to_string();
        let packed = Payload::of(json.as_bytes()).packed;
        assert_eq!(whole::<&[u8]>(&packed, |_| None), Err(NotWhole::Missing));
        let cut = packed.get(..packed.len() / 2).unwrap();
        assert_eq!(whole(cut, |_| Some("\"\"")), Err(NotWhole::Damaged));
    }

    #[test]
    fn each_word_has_one_line_and_is_a_string_or_a_key() {
        assert_eq!(TOKENS.len(), LINES.len());
        assert!(LINES.len() < 0x4000);
        for word in LINES.iter() {
            let word = std::str::from_utf8(word).unwrap();
            let read: Result<String, _> = serde_json::from_str(word.trim_end_matches(':'));
            assert!(
                read.is_ok_and(|it| format!("\"{it}\"") == word.trim_end_matches(':')),
                "{word}"
            );
        }
    }
}
