//! The fields of an object of an old document, read with their places, so that a fault can name its
//! place.

use super::ImportFault;
use crate::values::time::Timestamp;
use serde_json::{Map, Value};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// An object, and its place in the document.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    at: String,
}

impl<'a> Fields<'a> {
    /// An object at a place.
    pub(super) fn new(value: &'a Value, at: String) -> Result<Self, ImportFault> {
        let Value::Object(map) = value else {
            return Err(ImportFault {
                message: format!("an object is needed, this is {}", kind(value)),
                field: at,
            });
        };
        Ok(Self { map, at })
    }

    /// Returns a fault of one of its fields, or of the object itself if the name is empty.
    pub(super) fn fault(&self, name: &str, message: impl Into<String>) -> ImportFault {
        let field = if name.is_empty() {
            self.at.clone()
        } else {
            format!("{}/{name}", self.at)
        };
        ImportFault {
            field,
            message: message.into(),
        }
    }

    /// The present name of two alternative field names; the first if both are missing.
    pub(super) fn named(&self, name: &'static str, other: &'static str) -> &'static str {
        if self.value(name).is_none() && self.value(other).is_some() {
            other
        } else {
            name
        }
    }

    /// A field; none when it is missing or null.
    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// All fields.
    pub(super) fn map(&self) -> &'a Map<String, Value> {
        self.map
    }

    fn needed(&self, name: &str) -> ImportFault {
        self.fault(name, "it is missing, and every one has it")
    }

    /// A text of so many bytes.
    pub(super) fn text(
        &self,
        name: &str,
        bytes: RangeInclusive<usize>,
    ) -> Result<Option<&'a str>, ImportFault> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let text = value.as_str().ok_or_else(|| {
            self.fault(name, format!("a text is needed, this is {}", kind(value)))
        })?;
        if bytes.contains(&text.len()) {
            return Ok(Some(text));
        }
        let (least, most) = bytes.into_inner();
        Err(self.fault(
            name,
            format!(
                "a text of {least} to {most} bytes is needed, this one has {}",
                text.len()
            ),
        ))
    }

    /// A required text.
    pub(super) fn text_needed(
        &self,
        name: &str,
        bytes: RangeInclusive<usize>,
    ) -> Result<&'a str, ImportFault> {
        self.text(name, bytes)?.ok_or_else(|| self.needed(name))
    }

    /// Parses the text of a field; none if it is missing.
    pub(super) fn parsed<T: FromStr<Err: fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, ImportFault> {
        let text = self.text(name, 0..=usize::MAX)?;
        text.map(|text| {
            text.parse()
                .map_err(|error: T::Err| self.fault(name, error.to_string()))
        })
        .transpose()
    }

    /// Parses the text of a field that is required.
    pub(super) fn parsed_needed<T: FromStr<Err: fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<T, ImportFault> {
        self.parsed(name)?.ok_or_else(|| self.needed(name))
    }

    /// A time within this range.
    pub(super) fn time(
        &self,
        name: &str,
        between: RangeInclusive<Timestamp>,
    ) -> Result<Option<Timestamp>, ImportFault> {
        let Some(time) = self.parsed::<Timestamp>(name)? else {
            return Ok(None);
        };
        if between.contains(&time) {
            return Ok(Some(time));
        }
        let (earliest, latest) = between.into_inner();
        let message = if time < earliest {
            format!("it is {time}, which is before {earliest}, when what it belongs to began")
        } else {
            format!("it is {time}, which is after {latest}, by when it must have been")
        };
        Err(self.fault(name, message))
    }

    /// Yes or no.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, ImportFault> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        value.as_bool().map(Some).ok_or_else(|| {
            self.fault(
                name,
                format!("true or false is needed, this is {}", kind(value)),
            )
        })
    }

    /// A whole number.
    pub(super) fn whole(
        &self,
        name: &str,
        between: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ImportFault> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let (least, most) = between.clone().into_inner();
        let no = || {
            self.fault(
                name,
                format!(
                    "a whole number from {least} to {most} is needed, this is {}",
                    shown(value)
                ),
            )
        };
        value
            .as_u64()
            .filter(|number| between.contains(number))
            .map(Some)
            .ok_or_else(no)
    }

    /// An object in it.
    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, ImportFault> {
        self.value(name)
            .map(|value| Fields::new(value, format!("{}/{name}", self.at)))
            .transpose()
    }

    /// A list of objects in it.
    pub(super) fn objects(&self, name: &str, most: usize) -> Result<Vec<Self>, ImportFault> {
        let Some(value) = self.value(name) else {
            return Ok(Vec::new());
        };
        let list = value.as_array().ok_or_else(|| {
            self.fault(name, format!("a list is needed, this is {}", kind(value)))
        })?;
        if list.len() > most {
            return Err(self.fault(
                name,
                format!("at most {most} are taken, these are {}", list.len()),
            ));
        }
        list.iter()
            .enumerate()
            .map(|(n, value)| Fields::new(value, format!("{}/{name}/{n}", self.at)))
            .collect()
    }

    /// Refuses a value with more bytes of JSON than this.
    pub(super) fn at_most(&self, bytes: usize) -> Result<(), ImportFault> {
        let is = serde_json::to_vec(self.map).map_or(0, |json| json.len());
        if is > bytes {
            Err(self.fault(
                "",
                format!("at most {bytes} bytes as JSON are taken, these are {is}"),
            ))
        } else {
            Ok(())
        }
    }
}

/// A number as it is; for other values only their type.
pub(super) fn shown(value: &Value) -> String {
    if value.is_number() {
        value.to_string()
    } else {
        kind(value).to_owned()
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
