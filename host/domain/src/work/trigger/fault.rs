//! Faults in an operator's definition of a trigger: the field, the fault, and what to write.

/// A fault in the definition of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {message}; {fix}")]
pub struct SpecFault {
    /// The field, such as `schedule.every`.
    pub field: String,
    /// The fault in it.
    pub message: String,
    /// The correction.
    pub fix: String,
}

impl SpecFault {
    /// A fault in a field.
    pub(super) fn new(
        field: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            fix: fix.into(),
        }
    }

    /// The same, for a field within an outer one.
    pub(super) fn within(self, outer: &str) -> Self {
        Self {
            field: format!("{outer}.{}", self.field),
            ..self
        }
    }
}

/// Notes a fault, if any.
pub(super) fn note(faults: &mut Vec<SpecFault>, checked: Result<(), SpecFault>) {
    faults.extend(checked.err());
}

/// A length that is allowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct BytesMax(pub(super) usize);

/// Checks that a text is not blank, has no control characters and is not too long.
pub(super) fn check_line(field: &str, text: &str, max: BytesMax) -> Result<(), SpecFault> {
    let BytesMax(max) = max;
    if text.trim().is_empty() {
        let fix = "write it, or leave the field out";
        return Err(SpecFault::new(field, "is empty", fix));
    }
    if text.len() > max {
        let message = format!("has {} bytes", text.len());
        return Err(SpecFault::new(
            field,
            message,
            format!("write at most {max}"),
        ));
    }
    if text.chars().any(char::is_control) {
        let message = "has a control character in it";
        return Err(SpecFault::new(field, message, "leave it out"));
    }
    Ok(())
}
