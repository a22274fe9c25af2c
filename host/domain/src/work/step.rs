//! Types that pass between the host and an agent's `step`: news as input; one decision with effects
//! and a memo as output.
//!
//! These are the WIT types of `wit/agent.wit` in the host's own terms; the runtime translates.

use crate::access::tool::ClientAction;
use crate::thread::message::{MessageId, Part};
use crate::thread::sampling::Sampling;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The messages that a model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// The whole thread, from its newest compaction on.
    Whole,
    /// The messages from this one on.
    Since(MessageId),
}

impl Context {
    /// The first message that it shows.
    #[must_use]
    pub fn first(self) -> MessageId {
        match self {
            Self::Whole => 1,
            Self::Since(id) => id.max(1),
        }
    }
}

/// The tools that a model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Toolset {
    /// All that the agent may use.
    All,
    /// These of them.
    Named(Vec<String>),
    /// None.
    None,
}

/// The audience of a model's reply during its generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// The user: tokens are streamed and the reply enters the thread.
    User,
    /// No audience: the outcome contains the reply.
    Hidden,
}

/// A call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The system prompt in blocks.
    pub system: Vec<String>,
    /// The part of the thread that the model sees.
    pub context: Context,
    /// Messages after those, for this call only.
    #[serde(default)]
    pub also: Vec<Part>,
    /// The tools that it may call.
    pub tools: Toolset,
    /// A model or alias.
    #[serde(default)]
    pub model: Option<String>,
    /// The most tokens of reply.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// JSON Schema of the reply.
    #[serde(default)]
    pub reply_schema: Option<Value>,
    /// The audience of the reply.
    pub audience: Audience,
    /// The settings of the request, from the agent's definition and session at that time. Empty in
    /// a guest's request.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub sampling: Sampling,
}

/// The tool to call, and its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Call {
    /// A call that the model made, named by its position.
    OfModel {
        /// The assistant message.
        message: MessageId,
        /// The call's index in it.
        index: u32,
    },
    /// A call of the agent's own.
    Own {
        /// The tool's name.
        name: String,
        /// The arguments as the guest wrote them.
        arguments: String,
    },
}

/// Work handed to another agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dispatch {
    /// A peer's id.
    pub target: String,
    /// The message to the other agent.
    pub content: Vec<Part>,
    /// True if the agent does not wait for the reply.
    #[serde(default)]
    pub detached: bool,
    /// Time limit for the other agent, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// Work that takes time or leaves the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// Ask a model.
    Model(ModelRequest),
    /// Call a tool.
    Tool {
        /// The tool and its arguments.
        call: Call,
    },
    /// Ask the user.
    Client(ClientAction),
    /// Hand work to another agent.
    Agent(Dispatch),
    /// Search memories.
    Recall {
        /// Words to search for.
        query: String,
        /// The most hits to return.
        limit: u32,
    },
    /// Wait.
    Timer {
        /// Milliseconds to wait.
        ms: u64,
    },
}

/// One named piece of work, as the guest requests it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// A name that the agent chose, unused in this turn before.
    pub key: String,
    /// The work to do.
    pub work: Work,
}

/// The condition for the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// As soon as one operation has settled.
    Any,
    /// As soon as all open operations have settled.
    All,
}

/// Start these, stop those, and step me again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Operations to start.
    pub start: Vec<Request>,
    /// Keys of open operations to stop.
    pub cancel: Vec<String>,
    /// The condition for the next step.
    pub until: Until,
    /// True if a message from the user also leads to a step.
    pub hear: bool,
}

/// The next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decision {
    /// Continue working.
    Wait(Wait),
    /// Say this and end the turn.
    Reply {
        /// The reply.
        parts: Vec<Part>,
    },
    /// End the turn and the structured session.
    Complete {
        /// A summary for its record.
        summary: Value,
    },
    /// End the turn as failed.
    Fail {
        /// The reason, as the user sees it.
        reason: String,
    },
}

impl Decision {
    /// Returns whether messages are taken in after the decision. They are if the agent waits for
    /// them, or if it would have ended its turn and a message preceded the end.
    #[must_use]
    pub fn hears(&self) -> bool {
        match self {
            Self::Wait(wait) => wait.hear,
            Self::Reply { .. } | Self::Complete { .. } | Self::Fail { .. } => true,
        }
    }

    /// Returns whether the decision answers the turn's input.
    #[must_use]
    pub fn replies(&self) -> bool {
        matches!(self, Self::Reply { .. } | Self::Complete { .. })
    }
}

/// A lasting change that is stored with the decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Send this message while work continues.
    Say {
        /// The message to show.
        parts: Vec<Part>,
    },
    /// Merge into the agent's preferences.
    Prefer {
        /// An object.
        preferences: Value,
    },
    /// Merge into the agent's memory of the run's user.
    PreferForUser {
        /// An object.
        preferences: Value,
    },
    /// Add to the structured session's record.
    RecordItem {
        /// The question.
        prompt: Value,
        /// The answer.
        response: Value,
        /// The evaluation of the answer.
        evaluation: Option<Value>,
        /// The key of the client operation that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<String>,
    },
    /// Replace the session's state.
    SessionState {
        /// The new state.
        state: Value,
    },
    /// Store a note that recall finds later.
    Remember {
        /// The note.
        note: String,
    },
    /// Record an event of the agent's own.
    Emit {
        /// Its name.
        name: String,
        /// An object.
        data: Value,
    },
    /// Be reminded later.
    Schedule {
        /// Milliseconds until the reminder is due.
        after_ms: u64,
        /// The text for the agent at that time.
        content: String,
    },
}

/// Data that an agent passes from step to step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memo {
    /// The version of the layout.
    pub format: u32,
    /// The bytes.
    #[serde(with = "crate::access::tool::bytes_as_hex")]
    pub bytes: Vec<u8>,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The decision about what happens next.
    pub decision: Decision,
    /// The effects that are stored with it.
    pub effects: Vec<Effect>,
    /// The memo for the next step.
    pub memo: Option<Memo>,
}

/// The reason why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Failure {
    /// A stable code.
    pub code: String,
    /// A message for people and models.
    pub message: String,
    /// True if repeating the same operation may succeed.
    pub retryable: bool,
    /// Further facts by name, for programs: `limit`, the key of the exhausted limit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, Value>,
}

impl Failure {
    /// A failure that a repetition would meet again.
    pub fn lasting(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            retryable: false,
            details: BTreeMap::new(),
        }
    }

    /// A failure that may pass.
    pub fn passing(code: &str, message: impl Into<String>) -> Self {
        Self {
            retryable: true,
            ..Self::lasting(code, message)
        }
    }

    /// The host's interruption, after which it does not know the effect of a call.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::lasting(
            "host-stopped",
            "the host was interrupted while this was running",
        )
    }

    /// Returns the report about work that this interrupted, and that must not be repeated unseen.
    #[must_use]
    pub fn in_doubt(&self) -> String {
        format!(
            "{}. Nobody can tell whether it took effect. It was not run again. Check before \
             repeating it.",
            self.message
        )
    }

    /// The same, with a further fact.
    #[must_use]
    pub fn with(mut self, name: &str, fact: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), fact.into());
        self
    }
}

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OperationOutcome {
    /// Its result is in the thread.
    Message {
        /// The message.
        id: MessageId,
    },
    /// Its result, which is not in the thread.
    Parts {
        /// The result.
        parts: Vec<Part>,
    },
    /// A client's answer, or the result of a recall.
    Value {
        /// The answer.
        value: Value,
    },
    /// The time has passed.
    Elapsed,
    /// It failed.
    Failed {
        /// The failure.
        failure: Failure,
    },
    /// The agent has no permission.
    Denied,
    /// It took too long.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It is unknown whether it happened, because it was interrupted.
    Unknown {
        /// The reason for the interruption.
        cause: Failure,
    },
}

impl OperationOutcome {
    /// Returns the text that a model reads about an outcome without a result; none if there is a
    /// result.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        match self {
            Self::Message { .. } | Self::Parts { .. } | Self::Value { .. } | Self::Elapsed => None,
            Self::Failed { failure } => {
                Some(format!("Error ({}): {}", failure.code, failure.message))
            }
            Self::Denied => Some("Denied: this is not allowed here.".to_owned()),
            Self::TimedOut => {
                Some("Error (timed-out): the call took too long and was stopped.".to_owned())
            }
            Self::Cancelled => Some("Cancelled.".to_owned()),
            Self::Unknown { cause } => Some(format!("Unknown: {}", cause.in_doubt())),
        }
    }
}

/// Something that happened since the last step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum News {
    /// The session has begun.
    Opened,
    /// The user sent messages.
    Said {
        /// Their ids.
        messages: Vec<MessageId>,
    },
    /// An operation ended.
    Settled {
        /// Its key.
        key: String,
        /// The outcome.
        outcome: OperationOutcome,
    },
}
