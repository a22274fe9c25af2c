//! The stored form of a payload: compact, with long texts stored separately.
//!
//! A payload is JSON. Its stored form is a sequence of items, each with a first byte that says what
//! the item is. A list or an object is the number of its values or fields, with these behind it.
//! Known words are one or two bytes; ids, digests and numbers are binary. In the place of a long
//! text the payload has a hole with the digest of the text, which is stored separately
//! ([`crate::texts`]). Every other text is stored as it is in the JSON.

use domain::digest::Digest;
use std::collections::HashMap;
use std::sync::LazyLock;
use uuid::Uuid;

/// Size in bytes from which on a text, or an object of short texts only, is stored separately. A
/// shorter one costs less inline than its hole and its row would.
const APART_BYTES_MIN: usize = 256;

/// First bytes of items. The place of a removed value: a text that is stored separately, a digest,
/// a UUID, 32 hexadecimal digits.
const HOLE: u8 = 0;
const DIGEST: u8 = 1;
const UUID: u8 = 2;
const HEX: u8 = 3;
/// JSON as it is, behind its length.
const JSON: u8 = 4;
const NULL: u8 = 5;
const FALSE: u8 = 6;
const TRUE: u8 = 7;
/// A number of one to eight bytes.
const NUMBER: u8 = 8;
/// A number below 16.
const SMALL: u8 = 0x10;
const LIST: Size = Size(0x20, 15);
const OBJECT: Size = Size(0x30, 31);
const TEXT: Size = Size(0x50, 31);
/// A token of two bytes, with the higher bits of the word's line.
const PAIRED: u8 = 0x70;
/// From here on, a token of one byte.
const SINGLE: u8 = 0x80;
/// Words with a token of one byte.
const SINGLES: u16 = 0x100 - SINGLE as u16;

/// The words of payloads, the most common first. A word keeps its line for ever, because stored
/// payloads refer to its line number.
const WORDS: &str = include_str!("schema/words.txt");

static LINES: LazyLock<Vec<&[u8]>> = LazyLock::new(|| WORDS.lines().map(str::as_bytes).collect());
static TOKENS: LazyLock<HashMap<&[u8], u16>> =
    LazyLock::new(|| LINES.iter().copied().zip(0..).collect());

/// First byte of an item with a size, and the size from which on the rest of it follows.
#[derive(Clone, Copy)]
struct Size(u8, u8);

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
    /// Takes JSON apart. JSON with spaces outside of its strings is stored as it is.
    pub(crate) fn of(json: &[u8]) -> Self {
        let mut payload = Self {
            packed: Vec::with_capacity(json.len() / 2),
            apart: Vec::new(),
        };
        if payload.put(json) != Some(json.len()) {
            payload.packed.clear();
            payload.apart.clear();
            payload.put_json(json);
        }
        payload
    }

    /// Writes the value at the start of JSON. Returns the number of bytes consumed; none if this is
    /// no value.
    fn put(&mut self, json: &[u8]) -> Option<usize> {
        match json.first()? {
            b'"' => self.put_string(json),
            b'[' => self.put_items(json, LIST, b']'),
            b'{' => match flat_bytes(json).filter(|bytes| *bytes >= APART_BYTES_MIN) {
                Some(bytes) => {
                    self.set_apart(json.get(..bytes)?);
                    Some(bytes)
                }
                None => self.put_items(json, OBJECT, b'}'),
            },
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}');
                let bytes = json.iter().position(ends).unwrap_or(json.len());
                self.put_literal(json.get(..bytes).filter(|literal| !literal.is_empty())?);
                Some(bytes)
            }
        }
    }

    /// Writes a list or an object.
    fn put_items(&mut self, json: &[u8], kind: Size, end: u8) -> Option<usize> {
        let start = self.packed.len();
        let mut items = 0;
        let mut bytes = 1;
        if json.get(bytes) == Some(&end) {
            bytes += 1;
        } else {
            loop {
                if end == b'}' {
                    bytes += self.put_string(json.get(bytes..)?)?;
                    bytes += json.get(bytes).filter(|byte| **byte == b':').map(|_| 1)?;
                }
                bytes += self.put(json.get(bytes..)?)?;
                items += 1;
                bytes += 1;
                match json.get(bytes - 1)? {
                    b',' => {}
                    byte if *byte == end => break,
                    _ => return None,
                }
            }
        }
        self.packed.splice(start..start, kind.head(items));
        Some(bytes)
    }

    fn put_string(&mut self, json: &[u8]) -> Option<usize> {
        let bytes = string_bytes(json);
        let string = json.get(..bytes)?;
        let text = string.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if let Some(line) = TOKENS.get(text) {
            match line.checked_sub(SINGLES).map(u16::to_be_bytes) {
                None => self.packed.push(SINGLE | line.to_be_bytes()[1]),
                Some([high, low]) => self.packed.extend_from_slice(&[PAIRED | high, low]),
            }
        } else if bytes >= APART_BYTES_MIN {
            self.set_apart(string);
        } else if let Some(digest) = of_digits::<32>(text) {
            self.packed.push(DIGEST);
            self.packed.extend_from_slice(&digest);
        } else if let Some(half) = of_digits::<16>(text) {
            self.packed.push(HEX);
            self.packed.extend_from_slice(&half);
        } else if let Some(id) = uuid(text) {
            self.packed.push(UUID);
            self.packed.extend_from_slice(&id);
        } else {
            self.packed.extend(TEXT.head(text.len()));
            self.packed.extend_from_slice(text);
        }
        Some(bytes)
    }

    fn put_literal(&mut self, literal: &[u8]) {
        let number = std::str::from_utf8(literal).ok().and_then(|text| {
            let number = text.parse::<u64>().ok()?;
            (number.to_string() == text).then_some(number)
        });
        match (literal, number) {
            (b"null", _) => self.packed.push(NULL),
            (b"false", _) => self.packed.push(FALSE),
            (b"true", _) => self.packed.push(TRUE),
            (_, Some(number)) => self.put_number(number),
            (_, None) => self.put_json(literal),
        }
    }

    fn put_number(&mut self, number: u64) {
        let bytes = number.to_be_bytes();
        match bytes.iter().position(|byte| *byte != 0) {
            Some(7) if number < 16 => self.packed.push(SMALL | bytes[7]),
            None => self.packed.push(SMALL),
            Some(zeros) => {
                let bytes = bytes.get(zeros..).unwrap_or_default();
                self.packed.push(NUMBER + 7 - zeros.to_le_bytes()[0]);
                self.packed.extend_from_slice(bytes);
            }
        }
    }

    fn put_json(&mut self, json: &[u8]) {
        self.packed.push(JSON);
        put_size(&mut self.packed, json.len());
        self.packed.extend_from_slice(json);
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

impl Size {
    /// The first bytes of an item of this size.
    fn head(self, size: usize) -> Vec<u8> {
        let Self(first, most) = self;
        match u8::try_from(size).ok().filter(|size| *size < most) {
            Some(size) => vec![first + size],
            None => {
                let mut head = vec![first + most];
                put_size(&mut head, size - usize::from(most));
                head
            }
        }
    }

    /// Reads the size of an item with this first byte; none if it is another kind of item, or is
    /// cut short.
    fn size(self, first: u8, after: &[u8]) -> Option<(usize, &[u8])> {
        let Self(own, most) = self;
        let size = first.checked_sub(own).filter(|size| *size <= most)?;
        if size < most {
            return Some((usize::from(size), after));
        }
        let (more, rest) = take_size(after)?;
        Some((more.checked_add(usize::from(most))?, rest))
    }
}

/// Writes a size, seven bits a byte.
fn put_size(packed: &mut Vec<u8>, mut size: usize) {
    while size >= 0x80 {
        packed.push(0x80 | size.to_le_bytes()[0]);
        size >>= 7;
    }
    packed.push(size.to_le_bytes()[0]);
}

fn take_size(packed: &[u8]) -> Option<(usize, &[u8])> {
    let bytes = packed.iter().position(|byte| *byte < 0x80)? + 1;
    let (size, rest) = packed.split_at_checked(bytes).filter(|_| bytes <= 8)?;
    let add = |size: usize, byte: &u8| (size << 7) | usize::from(byte & 0x7f);
    Some((size.iter().rev().fold(0, add), rest))
}

/// Puts a payload together again, as JSON.
pub(crate) fn whole<T: AsRef<[u8]>>(
    packed: &[u8],
    mut text: impl FnMut(Digest) -> Option<T>,
) -> Result<Vec<u8>, NotWhole> {
    let mut json = Vec::with_capacity(packed.len() * 3);
    // The end of each open list and object, and how many items it still lacks.
    let mut open: Vec<(u8, usize)> = Vec::new();
    for item in items(packed) {
        // An object has two items for each field.
        let opens = match item? {
            Item::Json(bytes) => {
                json.extend_from_slice(bytes);
                None
            }
            Item::Text(text) => {
                json.push(b'"');
                json.extend_from_slice(text);
                json.push(b'"');
                None
            }
            Item::Hole(digest) => {
                json.extend_from_slice(text(digest).ok_or(NotWhole::Missing)?.as_ref());
                None
            }
            Item::Hex(bytes) => {
                json.extend_from_slice(format!("\"{}\"", hex::encode(bytes)).as_bytes());
                None
            }
            Item::Uuid(id) => {
                json.extend_from_slice(format!("\"{id}\"").as_bytes());
                None
            }
            Item::Number(number) => {
                json.extend_from_slice(number.to_string().as_bytes());
                None
            }
            Item::List(items) => {
                json.push(b'[');
                Some((b']', items))
            }
            Item::Object(fields) => {
                json.push(b'{');
                Some((b'}', fields.saturating_mul(2)))
            }
        };
        match opens {
            Some((end, 0)) => json.push(end),
            Some(opened) => {
                open.push(opened);
                continue;
            }
            None => {}
        }
        while let Some((end, lacks)) = open.last_mut() {
            *lacks -= 1;
            if *lacks > 0 {
                let is_key = *end == b'}' && *lacks % 2 == 1;
                json.push(if is_key { b':' } else { b',' });
                break;
            }
            json.push(*end);
            open.pop();
        }
    }
    open.is_empty().then_some(json).ok_or(NotWhole::Damaged)
}

/// Returns the digests of the texts that are stored separately from a payload, in the order of its
/// holes.
pub(crate) fn holes(packed: &[u8]) -> impl Iterator<Item = Digest> {
    items(packed).filter_map(|item| match item {
        Ok(Item::Hole(digest)) => Some(digest),
        _ => None,
    })
}

/// An item of a stored form: a list and an object with their sizes, and all else that is one.
enum Item<'a> {
    Json(&'a [u8]),
    Text(&'a [u8]),
    Hole(Digest),
    Hex(&'a [u8]),
    Uuid(Uuid),
    Number(u64),
    List(usize),
    Object(usize),
}

fn items(packed: &[u8]) -> impl Iterator<Item = Result<Item<'_>, NotWhole>> {
    let mut rest = packed;
    std::iter::from_fn(move || {
        let (first, after) = rest.split_first()?;
        let (item, after) = match item(*first, after) {
            Some((item, after)) => (Ok(item), after),
            None => (Err(NotWhole::Damaged), Default::default()),
        };
        rest = after;
        Some(item)
    })
}

/// Returns the item with this first byte and the bytes after it; none if it is damaged.
fn item(first: u8, after: &[u8]) -> Option<(Item<'_>, &[u8])> {
    fn fixed<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
        let (fixed, rest) = bytes.split_first_chunk::<N>()?;
        Some((*fixed, rest))
    }
    let of_size = |size: usize, rest| <[u8]>::split_at_checked(rest, size);
    let word = |line: u16| LINES.get(usize::from(line)).map(|word| Item::Text(word));
    Some(match first {
        HOLE => fixed(after).map(|(digest, rest)| (Item::Hole(Digest(digest)), rest))?,
        DIGEST => of_size(32, after).map(|(bytes, rest)| (Item::Hex(bytes), rest))?,
        HEX => of_size(16, after).map(|(bytes, rest)| (Item::Hex(bytes), rest))?,
        UUID => fixed(after).map(|(id, rest)| (Item::Uuid(Uuid::from_bytes(id)), rest))?,
        JSON => {
            let (size, rest) = take_size(after)?;
            of_size(size, rest).map(|(json, rest)| (Item::Json(json), rest))?
        }
        NULL => (Item::Json(b"null"), after),
        FALSE => (Item::Json(b"false"), after),
        TRUE => (Item::Json(b"true"), after),
        SINGLE.. => (word(u16::from(first - SINGLE))?, after),
        PAIRED.. => {
            let (low, rest) = after.split_first()?;
            let line = u16::from_be_bytes([first - PAIRED, *low]) + SINGLES;
            (word(line)?, rest)
        }
        _ => {
            if let Some((size, rest)) = TEXT.size(first, after) {
                of_size(size, rest).map(|(text, rest)| (Item::Text(text), rest))?
            } else if let Some((fields, rest)) = OBJECT.size(first, after) {
                (Item::Object(fields), rest)
            } else if let Some((items, rest)) = LIST.size(first, after) {
                (Item::List(items), rest)
            } else if let Some(number) = first.checked_sub(SMALL) {
                (Item::Number(u64::from(number)), after)
            } else {
                let (bytes, rest) = of_size(usize::from(first - NUMBER) + 1, after)?;
                let add = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
                (Item::Number(bytes.iter().fold(0, add)), rest)
            }
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

/// Returns the bytes that a text has as lower-case hexadecimal digits.
fn of_digits<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    let is_lower = text.iter().all(|digit| !digit.is_ascii_uppercase());
    is_lower.then_some(bytes)
}

/// Returns the bytes of a text that is a UUID with hyphens.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
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
            prop::sample::select(LINES.clone())
                .prop_map(|word| String::from_utf8_lossy(word).into()),
            any::<[u8; 16]>().prop_map(|bytes| hex::encode(bytes).into()),
            (0..64_u32).prop_map(|bits| (u64::MAX >> bits).into()),
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
    fn json_that_is_not_compact_is_stored_as_it_is() {
        for json in [
            "{ \"a\": 1 }",
            "{\"a\" :1}",
            "[1, 2]",
            " 1",
            "{\"a\"",
            "",
            "[1}",
        ] {
            let packed = Payload::of(json.as_bytes()).packed;
            assert_eq!(whole::<&[u8]>(&packed, |_| None), Ok(json.into()), "{json}");
        }
    }

    #[test]
    fn each_word_has_one_line_and_is_a_text() {
        assert_eq!(TOKENS.len(), LINES.len());
        assert!(LINES.len() < 0x1000);
        for word in LINES.iter() {
            let word = std::str::from_utf8(word).unwrap();
            assert_eq!(json!(word).to_string(), format!("\"{word}\""));
        }
    }
}
