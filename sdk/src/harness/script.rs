//! The replies of a scripted model.

use crate::content::{ModelCall, Part};
use crate::cut_off::CutOff;
use crate::news::Failure;
use serde_json::Value;

/// One reply of a model: text, calls of tools, or both.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    parts: Vec<Part>,
    calls: u32,
    failure: Option<Failure>,
}

impl Reply {
    /// A reply that says nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.parts.push(Part::Text(text.to_owned()));
        self
    }

    /// Adds a call of a tool.
    #[must_use]
    pub fn call(self, tool: &str, arguments: &Value) -> Self {
        self.raw_call(tool, &arguments.to_string())
    }

    /// Adds a call of a tool whose arguments are as a model may write them: not necessarily JSON.
    #[must_use]
    pub fn raw_call(mut self, tool: &str, arguments: &str) -> Self {
        let call = ModelCall {
            index: self.calls,
            name: tool.to_owned(),
            arguments: arguments.to_owned(),
        };
        self.parts.push(Part::Call(call));
        self.calls += 1;
        self
    }

    /// Marks the reply as one that is not whole.
    #[must_use]
    pub fn cut_off(mut self, cut_off: CutOff) -> Self {
        self.parts.push(cut_off.part());
        self
    }

    /// No reply: the model could not be asked.
    #[must_use]
    pub fn failure(code: &str, message: &str) -> Self {
        let failure = Failure {
            code: code.to_owned(),
            message: message.to_owned(),
            retryable: true,
        };
        Self {
            failure: Some(failure),
            ..Self::default()
        }
    }

    pub(super) fn into_result(self) -> Result<Vec<Part>, Failure> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.parts),
        }
    }
}
