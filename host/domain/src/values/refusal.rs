//! Refusals of commands by a rule, with the facts that the caller needs for a correction.

use crate::values::error_code::{ErrorCode, ErrorKind};
use serde_json::Value;

/// A rule refused a command. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Its code, which determines its kind.
    pub code: ErrorCode,
    /// The fault, and how to correct it.
    pub message: String,
    /// The field at fault, if any. It is a JSON pointer into the request's body, or `header:` and a
    /// name.
    pub field: Option<String>,
    /// Further facts by name, for programs: `limit`, the key of the exhausted limit.
    pub details: Vec<(&'static str, Value)>,
}

impl Refusal {
    /// A refusal that blames the field of its code, if it has one.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: code.field().map(str::to_owned),
            details: Vec::new(),
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.code.kind()
    }

    /// The same, with a further fact.
    #[must_use]
    pub fn with(mut self, name: &'static str, fact: impl Into<Value>) -> Self {
        self.details.push((name, fact.into()));
        self
    }

    /// The same, with the field at fault.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

/// Declares functions that make refusals, one a row: the values in the message, the code, the part
/// of the request at fault if the code does not name it, and the message.
#[macro_export]
macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident($($named:ident: $type:ty),*) = $code:ident
        $(at $field:literal)?: $message:literal;)+) => {$(
        $(#[$doc])*
        pub(crate) fn $name($($named: $type),*) -> $crate::refusal::Refusal {
            let message = format_args!($message).to_string();
            $crate::refusal::Refusal::new($crate::error_code::ErrorCode::$code, message)
                $(.at($field))?
        }
    )+};
}
