//! The result of a delegation, as the JSON that goes back to the model as the call's result.

use super::{Code, Delegation, Invalid, Target};
use crate::values::id::{AgentId, OperationId};
use crate::values::time::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// The task that a delegation became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The operation that waits for it.
    pub operation: OperationId,
    /// The agent that did it.
    pub agent: AgentId,
    /// Time at which it was handed over.
    pub created: Timestamp,
    /// Time at which it ended.
    pub completed: Timestamp,
}

/// The outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskState {
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
    /// It was stopped before it had either.
    Cancelled,
    /// Its deadline passed and it was stopped.
    Timeout,
}

/// The reason why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DelegateError {
    /// A stable code.
    pub code: Code,
    /// The message for people and models.
    pub message: String,
}

/// The known facts about a delegation. Empty if it was refused before there was a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegateMetadata {
    /// The kind of agent that was to do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The operation that was to be carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The agent that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Time at which it was handed over, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Time at which it ended, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// Its duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}

/// The result of a delegation. Its `Display` is the JSON text that the model gets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegateResult {
    /// True if there is a result.
    pub success: bool,
    /// The task, to find it in the host's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The result, when it is a JSON object or array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The result, when it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The reason why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<DelegateError>,
    /// The outcome of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_state: Option<TaskState>,
    /// The known facts about it.
    pub metadata: DelegateMetadata,
}

impl fmt::Display for DelegateResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl DelegateResult {
    /// The target replied. A reply that is a JSON object or array becomes `data`, any other
    /// `output`.
    #[must_use]
    pub fn succeeded(delegation: &Delegation, task: &Task, reply: &str) -> Self {
        let data = serde_json::from_str(reply)
            .ok()
            .filter(|value: &Value| value.is_object() || value.is_array());
        let output = if data.is_some() {
            None
        } else {
            Some(reply.to_owned())
        };
        Self {
            success: true,
            data,
            output,
            ..Self::ended(delegation, task, TaskState::Completed)
        }
    }

    /// The target failed.
    #[must_use]
    pub fn failed(delegation: &Delegation, task: &Task, reason: &str) -> Self {
        Self::ended(delegation, task, TaskState::Failed).because(Code::TaskFailed, reason)
    }

    /// The task's deadline passed. It is not tried again.
    #[must_use]
    pub fn timed_out(delegation: &Delegation, task: &Task) -> Self {
        let Delegation {
            target,
            operation,
            timeout_ms,
            ..
        } = delegation;
        let reason = format!(
            "Operation {operation} of {target} agent took longer than {timeout_ms} \
                     milliseconds and was stopped."
        );
        Self::ended(delegation, task, TaskState::Timeout).because(Code::TaskTimeout, &reason)
    }

    /// The task was stopped.
    #[must_use]
    pub fn cancelled(delegation: &Delegation, task: &Task) -> Self {
        Self::ended(delegation, task, TaskState::Cancelled)
            .because(Code::TaskFailed, "The task was cancelled.")
    }

    /// The call was refused before there was a task.
    #[must_use]
    pub fn refused(invalid: &Invalid) -> Self {
        let nothing = Self {
            success: false,
            task_id: None,
            data: None,
            output: None,
            error: None,
            task_state: None,
            metadata: DelegateMetadata::default(),
        };
        nothing.because(invalid.code, &invalid.message)
    }

    fn ended(delegation: &Delegation, task: &Task, state: TaskState) -> Self {
        Self {
            success: false,
            task_id: Some(task.operation.to_string()),
            data: None,
            output: None,
            error: None,
            task_state: Some(state),
            metadata: DelegateMetadata {
                target: Some(delegation.target),
                operation: Some(delegation.operation.clone()),
                agent_id: Some(task.agent),
                created_at: Some(task.created.to_string()),
                completed_at: Some(task.completed.to_string()),
                duration: Some(task.completed.since_ms(task.created)),
            },
        }
    }

    fn because(mut self, code: Code, message: &str) -> Self {
        self.error = Some(DelegateError {
            code,
            message: message.to_owned(),
        });
        self
    }
}
