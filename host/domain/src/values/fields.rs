//! The fields of JSON objects from outside, with their places, so that a fault names its place.

use serde_json::{Map, Value};
use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// A fault of a field, in the terms of its document.
pub(crate) trait FieldFault {
    /// The message about a missing field.
    const MISSING: &'static str;

    /// A fault in a line of a document, at a JSON pointer. The line is 0 in a document without.
    fn new(line: usize, field: String, message: String) -> Self;
}

/// An object, and its place in a document.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a, F> {
    line: usize,
    at: String,
    map: &'a Map<String, Value>,
    fault: PhantomData<F>,
}

impl<'a, F: FieldFault> Fields<'a, F> {
    /// An object at a place.
    pub(crate) fn new(line: usize, at: String, map: &'a Map<String, Value>) -> Self {
        Self {
            line,
            at,
            map,
            fault: PhantomData,
        }
    }

    /// The object in a value at a place.
    pub(crate) fn of(line: usize, at: String, value: &'a Value) -> Result<Self, F> {
        match value {
            Value::Object(map) => Ok(Self::new(line, at, map)),
            _ => {
                let message = format!("an object is needed, this is {}", kind(value));
                Err(F::new(line, at, message))
            }
        }
    }

    /// Returns a fault of one of its fields, or of the object itself if the name is empty.
    pub(crate) fn fault(&self, name: &str, message: impl Into<String>) -> F {
        let field = if name.is_empty() {
            self.at.clone()
        } else {
            format!("{}/{name}", self.at)
        };
        F::new(self.line, field, message.into())
    }

    /// Returns what was found in a required field.
    pub(crate) fn needed<T>(&self, name: &str, found: Option<T>) -> Result<T, F> {
        found.ok_or_else(|| self.fault(name, F::MISSING))
    }

    /// A field; none when it is missing or null.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// All fields.
    pub(crate) fn map(&self) -> &'a Map<String, Value> {
        self.map
    }

    /// A field of a type.
    pub(crate) fn typed<T>(
        &self,
        name: &str,
        what: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, F> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let no = || self.fault(name, format!("{what} is needed, this is {}", kind(value)));
        read(value).map(Some).ok_or_else(no)
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, F> {
        self.typed(name, "a text", Value::as_str)
    }

    /// A text of so many bytes.
    pub(crate) fn text_of(
        &self,
        name: &str,
        bytes: RangeInclusive<usize>,
    ) -> Result<Option<&'a str>, F> {
        match self.text(name)? {
            Some(text) if !bytes.contains(&text.len()) => {
                let (least, most) = bytes.into_inner();
                let message = format!(
                    "a text of {least} to {most} bytes is needed, this one has {}",
                    text.len()
                );
                Err(self.fault(name, message))
            }
            text => Ok(text),
        }
    }

    /// Yes or no.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, F> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// An object in it.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Self>, F> {
        self.value(name)
            .map(|value| Self::of(self.line, format!("{}/{name}", self.at), value))
            .transpose()
    }

    /// A list of objects in it.
    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Self>, F> {
        let list = self.typed(name, "a list", Value::as_array)?;
        list.into_iter()
            .flatten()
            .enumerate()
            .map(|(place, value)| Self::of(self.line, format!("{}/{name}/{place}", self.at), value))
            .collect()
    }
}

/// Returns the name of a value's type, for messages.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
