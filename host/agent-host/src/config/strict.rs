//! Refusals that TOML makes by itself and JSON does not, and the other way round, so that a
//! configuration means the same in both.
//!
//! A table of JSON may have a key twice, of which a parser takes the last: a grant that stands
//! there first, with its denies, would silently not be read. TOML has numbers that are none.

use super::key::KeyError;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// Finds the first key that a table of JSON has twice, with the line and column in the text. The
/// text has been parsed before.
pub(super) fn twice(text: &str) -> Option<(KeyError, (usize, usize))> {
    let mut json = serde_json::Deserializer::from_str(text);
    let once: Result<Once, _> = serde_path_to_error::deserialize(&mut json);
    let error = once.err()?;
    let inner = error.inner();
    let fault = KeyError::new(error.path(), &without_position(inner));
    Some((fault, (inner.line(), inner.column())))
}

/// Returns what an error of JSON says, without the place.
pub(super) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map_or(text.clone(), |(text, _)| text.to_owned())
}

/// A value of JSON in which every table has each key once, at every depth.
struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _value: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _value: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _value: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _value: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _value: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("duplicate key `{key}`")));
            }
            seen.insert(key);
            fields.next_value::<Self>()?;
        }
        Ok(self)
    }
}

/// Finds the first number of TOML that JSON does not have.
pub(super) fn no_number(value: &toml::Value) -> Option<KeyError> {
    let within = |prefix: String, inner: &toml::Value| {
        no_number(inner).map(|fault| KeyError {
            key: if fault.key.is_empty() || fault.key.starts_with('[') {
                format!("{prefix}{}", fault.key)
            } else {
                format!("{prefix}.{}", fault.key)
            },
            ..fault
        })
    };
    match value {
        toml::Value::Float(number) if !number.is_finite() => Some(KeyError {
            key: String::new(),
            message: format!("`{number}` is not a number that can be meant; write it in digits"),
        }),
        toml::Value::Array(entries) => {
            let mut entries = entries.iter().enumerate();
            entries.find_map(|(index, entry)| within(format!("[{index}]"), entry))
        }
        toml::Value::Table(keys) => keys
            .iter()
            .find_map(|(key, inner)| within(key.clone(), inner)),
        toml::Value::String(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => None,
    }
}
