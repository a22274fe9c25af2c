//! JSON from outside. Its depth is limited, so that it can be read again wherever it is stored.
//! Each object has each key once, so that all readers of the text agree.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// Levels of lists and objects in JSON from a client, a guest or a model. Stored parts of it are
/// some levels deeper, in events and in rows, and are read by a parser that accepts 127.
pub const DEPTH_MAX: usize = 64;
/// Characters shown of a key.
const KEY_CHARS_SHOWN: usize = 80;

/// The reason why a text is refused.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    Malformed(#[from] serde_json::Error),
    /// It is nested too deep.
    #[error("it is nested deeper than {DEPTH_MAX} levels of lists and objects")]
    TooDeep,
    /// An object repeats a key: two readers may use different values.
    #[error("an object in it has the key `{key}` twice")]
    Duplicate {
        /// The key, escaped.
        key: String,
    },
}

/// Reads JSON from outside.
///
/// # Errors
/// It is not JSON, is nested deeper than [`DEPTH_MAX`], or has an object with a repeated key.
pub fn parse(text: &str) -> Result<Value, NotTaken> {
    // Checked before parsing: the error of a parser that gives up is less exact.
    if depth(text.as_bytes()) > DEPTH_MAX {
        return Err(NotTaken::TooDeep);
    }
    let twice = RefCell::new(None);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Strict { twice: &twice }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| match twice.take() {
        Some(key) => NotTaken::Duplicate { key },
        None => error.into(),
    })
}

/// Reads a value whose objects have each key once; notes a repeated key.
#[derive(Clone, Copy)]
struct Strict<'a> {
    twice: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if object.contains_key(&key) {
                *self.twice.borrow_mut() = Some(key.escape_debug().take(KEY_CHARS_SHOWN).collect());
                return Err(A::Error::custom("a key twice"));
            }
            let value = fields.next_value_seed(self)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// Returns the depth of lists and objects in a JSON text. For other text, the number is at least
/// the depth.
#[must_use]
pub fn depth(text: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    let mut quoted = false;
    let mut escaped = false;
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_of_strings() {
        for (text, levels) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a":[[1],[2]]}"#, 3),
            (r#"["[[[", "\"[[", "\\"]"#, 1),
            (r#"[[]], [[[ "#, 3),
        ] {
            assert_eq!(depth(text.as_bytes()), levels, "{text}");
        }
    }

    #[test]
    fn what_is_taken_is_nested_so_deep_and_no_deeper() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        assert!(matches!(
            parse(&nested(DEPTH_MAX + 1)),
            Err(NotTaken::TooDeep)
        ));
        assert!(matches!(parse(&nested(100_000)), Err(NotTaken::TooDeep)));
        assert!(matches!(parse("{"), Err(NotTaken::Malformed(_))));
    }

    #[test]
    fn an_object_has_each_key_once() {
        for (text, key) in [
            (r#"{"a":1,"a":2}"#, "a"),
            (r#"[{"b":{"a":1,"b":2,"\u0061":1}}]"#, "a"),
            (r#"{"":1,"":1}"#, ""),
            ("{\"a\u{202e}\":1,\"a\u{202e}\":1}", "a\\u{202e}"),
        ] {
            assert!(
                matches!(parse(text), Err(NotTaken::Duplicate { key: found }) if found == key),
                "{text}"
            );
        }
        for text in [
            r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#,
            r#" [null, true, -1, 18446744073709551615, 1.5, 1e300, -0.0, "\u00e9\n", {}, []] "#,
            "1",
        ] {
            assert_eq!(
                parse(text).unwrap(),
                serde_json::from_str::<Value>(text).unwrap(),
                "{text}"
            );
        }
        for text in ["", "[1] 2", "{\"a\":}", "nul"] {
            assert!(matches!(parse(text), Err(NotTaken::Malformed(_))), "{text}");
        }
    }
}
