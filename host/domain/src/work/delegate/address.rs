//! The target and the operation that a call names, even if the rest of it is invalid.

use super::{OPERATIONS, Target};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The target and the operation of a `delegate` call, as far as it names existing ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegateAddress {
    /// The target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The operation. The target may not support it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

impl DelegateAddress {
    /// Reads it from a call's arguments, as the model wrote them. None if neither is readable.
    #[must_use]
    pub fn of(arguments: &str) -> Option<Self> {
        let arguments = crate::values::json::parse(arguments).ok()?;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let target = text("target").and_then(Target::from_word);
        let operation = text("operation")
            .filter(|name| OPERATIONS.iter().any(|rule| rule.name == *name))
            .map(str::to_owned);
        (target.is_some() || operation.is_some()).then_some(Self { target, operation })
    }
}
