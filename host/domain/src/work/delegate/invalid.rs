//! Refusals of invalid calls of `delegate`, with the allowed values.

use super::{Code, Target};
use crate::work::step::Failure;
use serde_json::Value;
use std::collections::BTreeMap;

/// A call of `delegate` was refused before it had any effect. Its `Display` names the fault and the
/// allowed values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    pub(super) code: Code,
    pub(super) message: String,
    details: BTreeMap<String, Value>,
    /// A valid call.
    call: Option<String>,
}

impl Invalid {
    /// Returns the failure of the call, with the public code of the rule that refused it. Its
    /// details let programs correct the call: `allowed`, the accepted names; `parameter`, the
    /// parameter at fault; or `agent`, the id of the missing agent.
    #[must_use]
    pub fn failure(self) -> Failure {
        let message = match self.call {
            Some(call) => format!("{} This would do: {call}", self.message),
            None => self.message,
        };
        Failure {
            details: self.details,
            ..Failure::lasting(self.code.as_str(), message)
        }
    }

    /// The same, with a valid call, if there is one.
    pub(super) fn showing(mut self, tool: &str, arguments: Option<Value>) -> Self {
        self.call = arguments.map(|arguments| format!("{tool} {arguments}"));
        self
    }

    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: BTreeMap::new(),
            call: None,
        }
    }

    /// No agent exists for a target; with the targets that have one.
    #[must_use]
    pub fn unavailable(target: Target, targets: &[Target]) -> Self {
        let others: Vec<&str> = targets
            .iter()
            .filter(|other| **other != target)
            .map(|other| other.as_str())
            .collect();
        let message = format!(
            "No {target} agent is available. Supported: {}.",
            others.join(", ")
        );
        let mut invalid = Self::new(Code::AgentUnavailable, message).allowing(others);
        let details = &mut invalid.details;
        details.insert("agent".to_owned(), target.as_str().into());
        invalid
    }

    pub(super) fn parameters(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidParameters, message)
    }

    /// The same, with the allowed names.
    pub(super) fn allowing<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter().collect::<Vec<_>>();
        self.details.insert("allowed".to_owned(), names.into());
        self
    }

    /// The same, with the parameter at fault.
    pub(super) fn about(mut self, parameter: &str) -> Self {
        self.details
            .insert("parameter".to_owned(), parameter.into());
        self
    }
}
