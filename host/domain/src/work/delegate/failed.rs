//! Failures of delegations, read from their results.

use super::{Code, NAME, TaskState};
use crate::thread::message::text_of;
use crate::work::operation::Settlement;
use crate::work::step::Failure;
use serde_json::Value;

impl Settlement {
    /// Returns the failure that the result of a model's `delegate` call reports. None for a
    /// successful result, and for the end of anything else.
    ///
    /// The outcome itself does not contain it: whatever the end of a task, its caller gets a
    /// result.
    #[must_use]
    pub fn failed_delegation(&self) -> Option<Failure> {
        let result = self.result.as_ref()?;
        if result.answers.as_ref()?.name != NAME {
            return None;
        }
        // A reason that is too long leaves no JSON in the thread.
        failure_in(&text_of(&result.parts)).or_else(|| match self.task? {
            TaskState::Completed => None,
            TaskState::Timeout => Some(failed(Code::TaskTimeout)),
            TaskState::Failed | TaskState::Cancelled => Some(failed(Code::TaskFailed)),
        })
    }
}

fn failed(code: Code) -> Failure {
    Failure::lasting(code.as_str(), "")
}

/// Returns the failure that the JSON text of a result reports, if any.
#[must_use]
pub fn failure_in(text: &str) -> Option<Failure> {
    let result: Value = serde_json::from_str(text).ok()?;
    if result.get("success")?.as_bool()? {
        return None;
    }
    let error = result.get("error")?;
    let text_at = |name: &str| error.get(name)?.as_str();
    Some(Failure {
        retryable: error.get("retryable")?.as_bool()?,
        ..Failure::lasting(text_at("code")?, text_at("message")?)
    })
}
