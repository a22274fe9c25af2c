//! `delegate`: the host's tool for agents that are granted it, as rules about its arguments and its
//! results.
//!
//! It hands one named operation to an agent of a kind (worker, researcher, coder). It is separate
//! from the tools of components because no component runs it: the host checks the arguments here
//! and dispatches the work to another agent. Validation precedes any effect. Every refusal names
//! what would have been allowed, so that a model can correct its call.

mod cache;
mod offers;
mod operations;
mod result;

use crate::agents::path::ModelRole;
use crate::thread::message::text_of;
use crate::values::limits::INPUT_BYTES_MAX;
use crate::values::text::words;
use crate::work::operation::Settlement;
use crate::work::step::Failure;
pub use cache::{Cache, CacheLimits, CacheScope, Hit, Kept};
pub use offers::{Offer, Offers, Presentation, arguments_of_named, operation_named};
pub use operations::{OPERATIONS, OperationRule, ParameterKind, ParameterRule};
pub use result::{
    BLOBS_MAX, DelegateBlob, DelegateError, DelegateMetadata, DelegateResult, Task, TaskState,
    show_content,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The tool's name.
pub const NAME: &str = crate::agents::authority::DELEGATE;
/// The accepted arguments.
const ARGUMENTS: [&str; 5] = ["target", "operation", "parameters", "timeout", "priority"];
/// Bytes of a path in an operation's parameters.
pub const PATH_BYTES_MAX: usize = 4_096;
/// Bytes of a URL in an operation's parameters.
pub const URL_BYTES_MAX: usize = 8_192;

/// The kind of agent that work is handed to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Files, the web and other basic work.
    Worker,
    /// Questions that need many sources.
    Researcher,
    /// Reading, writing and running code.
    Coder,
}

words!(Target { Worker = "worker", Researcher = "researcher", Coder = "coder" });

impl Target {
    /// Returns the time limit for its work if the call sets none, in milliseconds.
    #[must_use]
    pub fn timeout_ms_default(self) -> u64 {
        match self {
            Self::Worker => 60_000,
            Self::Researcher => 300_000,
            Self::Coder => 120_000,
        }
    }

    /// Returns the longest time limit that a call may set for its work, in milliseconds.
    #[must_use]
    pub fn timeout_ms_max(self) -> u64 {
        match self {
            Self::Worker => 300_000,
            Self::Researcher => 900_000,
            Self::Coder => 600_000,
        }
    }

    /// Returns the model role of its work, which overrides that of the path; none for a worker.
    #[must_use]
    pub fn model_role(self) -> Option<ModelRole> {
        match self {
            Self::Worker => None,
            Self::Researcher => Some(ModelRole::Research),
            Self::Coder => Some(ModelRole::Code),
        }
    }

    /// The operations that it supports.
    pub fn operations(self) -> impl Iterator<Item = &'static OperationRule> {
        OPERATIONS
            .iter()
            .filter(move |operation| operation.target == self)
    }
}

/// Urgency of a task. On the wire a number from 1, low, to 4, critical.
///
/// Users take turns with steps and model calls that wait for a place on this host
/// (`limits.instancesMax`, `limits.modelCallsMax`) or at their provider (`concurrentMax`). In a
/// user's turn the most urgent tasks go first; equally urgent ones take turns by agent. Work that
/// has begun is not interrupted. Work that a task dispatches by its own operation is as urgent as
/// the task; a `delegate` call says how urgent it is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[derive(ToSchema)]
pub enum Priority {
    /// 1
    Low,
    /// 2, the default of a call without a priority.
    #[default]
    Normal,
    /// 3
    High,
    /// 4
    Critical,
}

words!(Priority { Low = "low", Normal = "normal", High = "high", Critical = "critical" });

/// A call of `delegate` that passed every check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delegation {
    /// The kind of agent that receives it.
    pub target: Target,
    /// The operation to perform: one of the target's.
    pub operation: String,
    /// The parameters, which are valid for the operation.
    pub parameters: Map<String, Value>,
    /// The task's deadline in milliseconds from its start: the call's timeout, or the target's
    /// default.
    pub timeout_ms: u64,
    /// Its urgency.
    pub priority: Priority,
}

impl Delegation {
    /// Returns the content of the message to the target: JSON text of `operation`, `parameters` and
    /// `timeoutMs`, the milliseconds left after the hand-over.
    #[must_use]
    pub fn content(&self, within_ms: u64) -> String {
        json!({
            "operation": self.operation, "parameters": self.parameters, "timeoutMs": within_ms,
        })
        .to_string()
    }
}

/// Returns whether a call of `delegate` with these arguments changes nothing. An invalid call
/// changes nothing either.
#[must_use]
pub fn is_read_only(arguments: &str) -> bool {
    parse(arguments, &Target::ALL).map_or(true, |delegation| delegation.is_read_only())
}

/// The public error codes of a delegation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The target does not exist.
    InvalidTarget,
    /// The target does not support the operation.
    InvalidOperation,
    /// The arguments, or the operation's parameters, are invalid.
    InvalidParameters,
    /// The target exists, but no agent is configured for it or none is reachable.
    AgentUnavailable,
    /// The task's deadline passed and the task was stopped.
    TaskTimeout,
    /// The task failed or was cancelled.
    TaskFailed,
    /// The host stopped while the task ran: it is unknown whether it took effect.
    TaskUnknown,
    /// The call was skipped: no task began.
    TaskNotStarted,
    /// A rule of the operator's forbids the call.
    NotAllowed,
    /// A limit is met.
    LimitReached,
}

words!(Code {
    InvalidTarget = "INVALID_TARGET",
    InvalidOperation = "INVALID_OPERATION",
    InvalidParameters = "INVALID_PARAMETERS",
    AgentUnavailable = "AGENT_UNAVAILABLE",
    TaskTimeout = "TASK_TIMEOUT",
    TaskFailed = "TASK_FAILED",
    TaskUnknown = "TASK_UNKNOWN",
    TaskNotStarted = "TASK_NOT_STARTED",
    NotAllowed = "NOT_ALLOWED",
    LimitReached = "LIMIT_REACHED",
});

/// Checks a call's arguments, as the model wrote them, against all operations of these targets.
///
/// # Errors
/// The first fault. The call had no effect.
pub fn parse(arguments: &str, targets: &[Target]) -> Result<Delegation, Invalid> {
    Offers::from(targets).parse(arguments)
}

fn check(arguments: &str, offers: &Offers) -> Result<Delegation, Invalid> {
    let arguments = crate::values::json::parse(arguments).map_err(|refused| {
        Invalid::parameters(format!("The arguments cannot be taken: {refused}."))
            .allowing(ARGUMENTS)
    })?;
    let Value::Object(mut arguments) = arguments else {
        return Err(Invalid::parameters(
            "The arguments must be a JSON object with target, operation and parameters.",
        )
        .allowing(ARGUMENTS));
    };
    let targets: Vec<Target> = offers.targets().collect();
    let target = target(arguments.remove("target"), &targets)?;
    let rule = operation(arguments.remove("operation"), target, offers)?;
    let parameters = match arguments.remove("parameters") {
        Some(Value::Object(parameters)) => parameters,
        found => {
            let fault = if found.is_some() {
                "`parameters` must be a JSON object.".to_owned()
            } else {
                format!("`parameters` is missing. Expected: {rule}.")
            };
            return Err(Invalid::parameters(fault).about("parameters"));
        }
    };
    rule.check(&parameters)?;
    let timeout_ms = timeout_ms(arguments.remove("timeout"), target)?;
    let priority = priority(arguments.remove("priority"))?;
    if let Some(unknown) = arguments.keys().next() {
        let known = ARGUMENTS.join(", ");
        return Err(Invalid::parameters(format!(
            "`{unknown}` is not an argument of delegate. Supported: {known}."
        ))
        .allowing(ARGUMENTS));
    }
    let delegation = Delegation {
        target,
        operation: rule.name.to_owned(),
        parameters,
        timeout_ms,
        priority,
    };
    if delegation.content(timeout_ms).len() > INPUT_BYTES_MAX {
        return Err(Invalid::parameters(format!(
            "The parameters are longer than {INPUT_BYTES_MAX} bytes."
        ))
        .about("parameters"));
    }
    Ok(delegation)
}

fn target(value: Option<Value>, targets: &[Target]) -> Result<Target, Invalid> {
    let supported: Vec<&str> = targets.iter().map(|target| target.as_str()).collect();
    let invalid = |what: &str| {
        Invalid::new(
            Code::InvalidTarget,
            format!("{what}. Supported: {}.", supported.join(", ")),
        )
        .allowing(supported.iter().copied())
    };
    let name = match value {
        Some(Value::String(name)) => name,
        Some(_) => return Err(invalid("`target` must be text")),
        None => return Err(invalid("`target` is missing")),
    };
    let target =
        Target::from_word(&name).ok_or_else(|| invalid(&format!("There is no target {name}")))?;
    if !targets.contains(&target) {
        return Err(Invalid::unavailable(target, targets));
    }
    Ok(target)
}

/// Reads the operation. An operation that the target's agent cannot perform is handed over all the
/// same: the agent reports what is missing.
fn operation(
    value: Option<Value>,
    target: Target,
    offers: &Offers,
) -> Result<&'static OperationRule, Invalid> {
    let invalid = |what: &str| {
        let supported: Vec<&str> = offers
            .operations(target)
            .map(|operation| operation.name)
            .collect();
        Invalid::new(
            Code::InvalidOperation,
            format!("{what}. Supported: {}.", supported.join(", ")),
        )
        .allowing(supported)
    };
    match value {
        Some(Value::String(name)) => target
            .operations()
            .find(|operation| operation.name == name)
            .ok_or_else(|| {
                invalid(&format!(
                    "Operation {name} is not supported by {target} agent"
                ))
            }),
        Some(_) => Err(invalid("`operation` must be text")),
        None => Err(invalid("`operation` is missing")),
    }
}

/// Reads the timeout. Models write `null` for an omitted argument; it is read so here and in an
/// operation's parameters.
fn timeout_ms(value: Option<Value>, target: Target) -> Result<u64, Invalid> {
    let longest_ms = target.timeout_ms_max();
    match value {
        None | Some(Value::Null) => Ok(target.timeout_ms_default()),
        Some(value) => match value.as_u64() {
            Some(0) | None => Err(Invalid::parameters(format!(
                "`timeout` must be a whole number of milliseconds from 1 to {longest_ms}."
            ))
            .about("timeout")),
            Some(timeout_ms) if timeout_ms > longest_ms => Err(Invalid::parameters(format!(
                "Timeout exceeds maximum of {target} agent: {timeout_ms} > {longest_ms} \
                 milliseconds."
            ))
            .about("timeout")),
            Some(timeout_ms) => Ok(timeout_ms),
        },
    }
}

fn priority(value: Option<Value>) -> Result<Priority, Invalid> {
    match value {
        None | Some(Value::Null) => Ok(Priority::default()),
        Some(value) => match value.as_u64() {
            Some(1) => Ok(Priority::Low),
            Some(2) => Ok(Priority::Normal),
            Some(3) => Ok(Priority::High),
            Some(4) => Ok(Priority::Critical),
            Some(_) | None => Err(Invalid::parameters(
                "`priority` must be 1 low, 2 normal, 3 high or 4 critical.",
            )
            .about("priority")),
        },
    }
}

// The target and the operation that a call names, even if the rest of it is invalid.

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

// Failures of delegations, read from their results.

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

// Refusals of invalid calls of `delegate`, with the allowed values.

/// A call of `delegate` was refused before it had any effect. Its `Display` names the fault and the
/// allowed values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    code: Code,
    message: String,
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
    fn showing(mut self, tool: &str, arguments: Option<Value>) -> Self {
        self.call = arguments.map(|arguments| format!("{tool} {arguments}"));
        self
    }

    fn new(code: Code, message: impl Into<String>) -> Self {
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

    fn parameters(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidParameters, message)
    }

    /// The same, with the allowed names.
    fn allowing<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter().collect::<Vec<_>>();
        self.details.insert("allowed".to_owned(), names.into());
        self
    }

    /// The same, with the parameter at fault.
    fn about(mut self, parameter: &str) -> Self {
        self.details
            .insert("parameter".to_owned(), parameter.into());
        self
    }
}

#[cfg(test)]
mod tests;
