//! A call of a trigger, as the edge asks for it, and its result.

use crate::log::LogLine;
use crate::outcome::{Decided, Outcome};
use domain::digest::Digest;
use domain::operation::CallUsage;
use domain::time::Timestamp;
use domain::trigger::{TriggerEvent, TriggerName, TriggerState, TriggerTargetName};
use serde_json::Value;

/// One event of one trigger. The same call has the same result.
#[derive(Debug, Clone, Copy)]
pub struct FireCall<'a> {
    /// The operator's name of the trigger.
    pub trigger: &'a TriggerName,
    /// The time that its clocks show, the same for every attempt.
    pub now: Timestamp,
    /// The operator's configuration: an object that fits the component's schema.
    pub configuration: &'a Value,
    /// The operator's message with its variables filled in.
    pub message: Option<&'a str>,
    /// The state that it kept the last time.
    pub state: Option<&'a TriggerState>,
    /// The trigger event.
    pub trigger_event: &'a TriggerEvent,
    /// The source of all its randomness, the same for every attempt.
    pub seed: Digest,
}

/// A message that the component makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiredMessage {
    /// The target that it picks; none for the configured one. It need not be granted.
    pub target: Option<TriggerTargetName>,
    /// Its text; never empty.
    pub text: String,
    /// The component's own key, under which it is taken once.
    pub key: Option<String>,
}

/// The result of a trigger run that dealt with its trigger event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerRun {
    /// Messages to send. None when the trigger event was of no interest.
    pub messages: Vec<FiredMessage>,
    /// The state to keep; none to keep what there was.
    pub state: Option<TriggerState>,
    /// True if the trigger is not to be fired again.
    pub done: bool,
}

/// The reason that a trigger gives for not dealing with a trigger event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// It makes no sense.
    #[error("the component rejected the trigger event: {0}")]
    Rejected(String),
    /// The same trigger event may be tried again after so many milliseconds.
    #[error("the component puts the trigger event off by {0} ms")]
    RetryLater(u32),
}

/// The result of a trigger run.
#[derive(Debug, Clone)]
pub struct Fired {
    /// Its outcome. An error of the trigger's own is `Returned(Err(_))`.
    pub outcome: Outcome<Result<TriggerRun, TriggerError>>,
    /// Its usage.
    pub usage: CallUsage,
    /// Its log, stdout and stderr included.
    pub logs: Vec<LogLine>,
    /// The decisions of the boundary meanwhile.
    pub decided: Decided,
}
