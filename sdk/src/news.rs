//! News: what happened since an agent's last step.

pub use crate::bindings::agent_plugin::exports::agent_host::plugin::agent::Failure;

use crate::content::{MessageId, Part, text_of};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// Something that happened since the last step.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// The session has begun, and no message has arrived yet. Only structured sessions begin so.
    Opened,
    /// The user said these messages.
    Said(Vec<MessageId>),
    /// An operation ended.
    Settled(Settlement),
}

/// An operation that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// Its key.
    pub key: String,
    /// Its outcome.
    pub outcome: Outcome,
}

impl Settlement {
    /// Reads a model's reply to a [`hidden`](crate::ModelRequest::hidden) request with a reply
    /// schema.
    ///
    /// # Errors
    /// Why there is no such reply: the model could not be asked, or `T` takes something else than
    /// the schema allows.
    pub fn reply<T: DeserializeOwned>(&self) -> Result<T, String> {
        match &self.outcome {
            Outcome::Parts(parts) => serde_json::from_str(text_of(parts).trim())
                .map_err(|error| format!("the reply cannot be read: {error}")),
            outcome => Err(outcome.to_string()),
        }
    }
}

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Its result stands in the thread as this message.
    Message(MessageId),
    /// Its result, which is not in the thread.
    Parts(Vec<Part>),
    /// A client's answer, or what was recalled.
    Value(Value),
    /// The time has passed.
    Elapsed,
    /// It failed. For a model's call the failure also stands in the thread as its result.
    Failed(Failure),
    /// The agent may not do that.
    Denied,
    /// It took too long and was stopped.
    TimedOut,
    /// It was cancelled before it had an outcome.
    Cancelled,
    /// The host cannot tell whether it happened, and has not done it again.
    Unknown,
}

/// Says in a few words how the operation ended, for a reason that a person reads.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(id) => write!(f, "done, see message {id}"),
            Self::Parts(_) | Self::Value(_) => f.write_str("done"),
            Self::Elapsed => f.write_str("the time has passed"),
            Self::Failed(failure) => write!(f, "{failure}"),
            Self::Denied => f.write_str("the call is not allowed"),
            Self::TimedOut => f.write_str("the call took too long and was stopped"),
            Self::Cancelled => f.write_str("the call was cancelled"),
            Self::Unknown => f.write_str("the call was cut off, and nobody can tell what it did"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}
