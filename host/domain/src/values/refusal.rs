//! Refusals of commands by a rule, with what the caller needs to correct them.

use serde_json::Value;

/// The kind of a refusal. It decides the HTTP status and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// There is no such thing, or it is not the caller's (404).
    NotFound,
    /// It was there, and was purged (410).
    Gone,
    /// The caller may see it and may not do this (403).
    Forbidden,
    /// Its state rules this out (409).
    Conflict,
    /// The input makes no sense (422).
    Invalid,
    /// The input is too large (413).
    TooLarge,
    /// Not now: try again later (429).
    Busy,
}

/// A rule refused a command. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Its kind.
    pub kind: RefusalKind,
    /// A stable code, such as `SESSION_ALREADY_ACTIVE`.
    pub code: &'static str,
    /// The fault, and how to correct it.
    pub message: String,
    /// The field at fault; none when it is not a field's fault. It is a JSON pointer into the
    /// request's body, or `header:` and a name.
    pub field: Option<String>,
    /// Further facts by name, for programs: `limit`, the key of the limit that is met.
    pub details: Vec<(&'static str, Value)>,
}

impl Refusal {
    /// A refusal that no field is to blame for.
    pub fn new(kind: RefusalKind, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            code,
            message: message.into(),
            field: None,
            details: Vec::new(),
        }
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
