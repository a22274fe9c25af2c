//! Refusals: what a rule says no to, told so that the caller can mend it.

/// What sort of no it is. Decides the HTTP status and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// There is no such thing, or it is not the caller's (404).
    NotFound,
    /// It was there, and was purged (410).
    Gone,
    /// The caller may see it and may not do this (403).
    Forbidden,
    /// Its state rules this out (409).
    Conflict,
    /// What was sent makes no sense (422).
    Invalid,
    /// What was sent is too large (413).
    TooLarge,
    /// Not now: try again later (429).
    Busy,
}

/// A rule refused a command. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What sort of no.
    pub kind: Kind,
    /// A stable code, such as `SESSION_ALREADY_ACTIVE`.
    pub code: &'static str,
    /// What is wrong and how to mend it.
    pub message: String,
    /// The field at fault, as a JSON pointer into the request's body or as `header:` and a name; none when it is not a field's fault.
    pub field: Option<String>,
}

impl Refusal {
    /// A refusal that no field is to blame for.
    pub fn new(kind: Kind, code: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code, message: message.into(), field: None }
    }

    /// The same, with the field at fault.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}
