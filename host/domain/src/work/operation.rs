//! Operations: pieces of work that a step started, from intent to settlement.
//!
//! The open operations of all runs are the host's outbox: decided, stored, and without an outcome
//! yet.

mod continuation;

pub use continuation::{Called, CommandCall, Continuation, Pause};

use crate::access::tool::{ClientAction, EffectClass};
use crate::agents::session::PendingAction;
use crate::thread::message::{Answers, Draft, MessageId, Part};
use crate::thread::model::Usage;
use crate::values::digest::Digest;
use crate::values::id::{AgentId, InputId, OperationId, RunId, SessionId};
use crate::values::time::Timestamp;
use crate::work::approval::Approval;
use crate::work::budget::Amount;
use crate::work::delegate::{DelegateAddress, TaskState};
use crate::work::direct_message::Messaged;
use crate::work::step::{ModelRequest, OperationOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The performer of an operation. Chosen when the operation is started, from the grants of that
/// moment, and recorded with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Performer {
    /// The gateway asks a model.
    Model {
        /// The request to the model.
        request: ModelRequest,
        /// The last message that the model sees.
        through: u64,
        /// Tokens reserved for it: the estimate of its prompt, and the limit of its reply.
        reserved_tokens: u64,
        /// The highest cost, in millionths ([`crate::work::price`]), if the model has a price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved_micros: Option<u64>,
    },
    /// A tool component is called.
    Tool {
        /// The component.
        component: Digest,
        /// The tool's name.
        tool: String,
        /// Validated arguments: a JSON object as text.
        arguments: String,
        /// The capabilities of the call.
        capabilities: Vec<String>,
    },
    /// The user is asked.
    Client {
        /// The question.
        action: ClientAction,
    },
    /// Another agent's session was given the work, in the commit that started the operation.
    Agent {
        /// The agent.
        agent: AgentId,
        /// Its session.
        session: SessionId,
        /// The input that carries the work.
        input: InputId,
        /// Arguments of a call of `delegate`, in whose terms the result is reported.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delegation: Option<String>,
        /// Data of a call of `agents_message`, in whose terms the result is reported.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Messaged>,
        /// Time at which the work was handed over.
        since: Timestamp,
        /// True if its turn waits until others of its caller or tree have ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        queued: bool,
    },
    /// Another agent's session was given the work, and no caller waits for it. It settles at once,
    /// and its reply arrives as an input.
    Detached {
        /// The agent.
        agent: AgentId,
        /// Its session.
        session: SessionId,
        /// The input that carries the work.
        input: InputId,
        /// The text for the agent that hands it over.
        reported: String,
    },
    /// Messages are sent to the program behind an external agent, which answers later.
    External {
        /// The messages, by their places in the thread.
        messages: Vec<MessageId>,
    },
    /// The store is searched.
    Recall {
        /// Words to search for.
        query: String,
        /// The most hits to return.
        limit: u32,
        /// The agent whose memory it is, for a tool call; none for a lookup by an agent's code in
        /// its own memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<AgentId>,
        /// True to search notes only, and no messages.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        notes: bool,
        /// True to search only the sessions of the run's user, whatever that user's role includes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        own: bool,
    },
    /// A command line over the agent's skills is run. Each of its tool calls is a separate
    /// operation ([`CommandCall`]).
    Command {
        /// The line.
        command: String,
    },
    /// A note was stored or deleted, in the commit that started the operation. It settles at once.
    Memory {
        /// The result as JSON.
        reported: String,
    },
    /// A tool of the host's own makes a lasting change, as soon as the run's user has approved it:
    /// the run rests on content from outside. The change is part of the commit of the outcome.
    Lasting {
        /// The tool.
        tool: String,
        /// Its arguments: a JSON object as text.
        arguments: String,
    },
    /// Time passes.
    Timer {
        /// Time at which it is due.
        due: Timestamp,
    },
    /// No performer: a rule refused it, or its result is cached. This is its outcome.
    Refused {
        /// The outcome.
        outcome: OperationOutcome,
        /// True if the outcome rests on content from outside, as a cached result may.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        untrusted: bool,
        /// True if it is the agent's own call of `delegate`, which is reported as a result of one.
        /// A model's call is recognised by the call that it answers.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_delegate: bool,
        /// The target and the operation, if it is a call of `delegate` and names any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<DelegateAddress>,
    },
    /// The caller that handed the run its work received a reply, in the commit that started the
    /// operation.
    Reply {
        /// The operation that is replied to.
        to: ReplyTo,
        /// True if it settled the waiting operation; otherwise it became an input of the caller's
        /// session.
        settled: bool,
    },
}

/// The data that pairs a model's call with its result.
pub type PairedWith = Option<Answers>;

/// An operation as it was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Minted from run, step and key.
    pub id: OperationId,
    /// The guest's name for it.
    pub key: String,
    /// The step that started it.
    pub step: u32,
    /// Its place among the operations of that step, counted from 0.
    pub place: u32,
    /// The performer of the operation.
    pub performer: Performer,
    /// The effect of running it again.
    pub effect: EffectClass,
    /// Time limit of one segment, in milliseconds; none for work that waits on people and clocks.
    pub time_limit_ms: Option<u64>,
    /// Time at which it ends as timed out, in whatever state; none without such a limit.
    pub deadline: Option<Timestamp>,
    /// The model's call that it answers, if it answers one.
    pub answers: PairedWith,
    /// True if its result goes to the thread (audience `user`, or a model's call).
    pub in_thread: bool,
    /// The part of the run's limits that is set aside until its actual use is known: the share of
    /// another agent's work.
    #[serde(default, skip_serializing_if = "Amount::is_nothing")]
    pub reserved: Amount,
    /// The approval that it needs from a user before it is performed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
}

impl Performer {
    /// Returns the model that a call requests; an empty name for the host's own, and for all other
    /// operations.
    #[must_use]
    pub fn asked_model(&self) -> &str {
        match self {
            Self::Model { request, .. } => request.model.as_deref().unwrap_or_default(),
            _ => "",
        }
    }

    /// Returns whether it gives work to no other agent of this host.
    #[must_use]
    pub(crate) fn stays_here(&self) -> bool {
        matches!(
            self,
            Self::Tool { .. }
                | Self::External { .. }
                | Self::Memory { .. }
                | Self::Lasting { .. }
                | Self::Recall { .. }
                | Self::Command { .. }
        )
    }

    /// Returns whether only the passing of time, or an answer of people, can end it.
    #[must_use]
    pub fn only_waits(&self) -> bool {
        matches!(self, Self::Client { .. } | Self::Timer { .. })
    }
}

impl Operation {
    /// The session that received the work, if any.
    #[must_use]
    pub fn child(&self) -> Option<SessionId> {
        match self.performer {
            Performer::Agent { session, .. } => Some(session),
            _ => None,
        }
    }

    /// Returns its due time, if it is a timer.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self.performer {
            Performer::Timer { due } => Some(due),
            _ => None,
        }
    }

    /// Returns the question with which it starts: its approval, or its client action.
    #[must_use]
    pub fn question_at_start(&self) -> Option<PendingAction> {
        let (call, action) = match (&self.approval, &self.performer) {
            (Some(approval), _) => (self.id.approval(), &approval.action),
            (None, Performer::Client { action }) => (self.id, action),
            (None, _) => return None,
        };
        Some(self.asking(call, action))
    }

    /// Returns one of its questions, under its [`asker`](Self::asker).
    #[must_use]
    pub fn asking(&self, call: OperationId, action: &ClientAction) -> PendingAction {
        PendingAction {
            tool_call_id: call,
            tool_name: self.asker().to_owned(),
            action: action.clone(),
        }
    }

    /// Returns the name under which it asks: that of its tool, or otherwise the agent's name for
    /// it.
    #[must_use]
    pub fn asker(&self) -> &str {
        match &self.performer {
            Performer::Tool { tool, .. } | Performer::Lasting { tool, .. } => tool,
            _ => &self.key,
        }
    }
}

/// The end of an operation, with the facts recorded with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settlement {
    /// The operation.
    pub operation: OperationId,
    /// The outcome. A result for the thread is in `result`, and becomes its message once it has a
    /// place.
    pub outcome: OperationOutcome,
    /// The result that enters the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Draft>,
    /// True if its result rests on content from outside, even if no result enters the thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// The attempts at a model, with the cost of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// The names of the program's own tools that it called, in order, if a program took the model's
    /// place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_calls: Vec<String>,
    /// Resources that the guest's call used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<CallUsage>,
    /// Resources that another agent used for it. If they are unknown, the reservation counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Amount>,
    /// The end of the task, if the operation is a task of another agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskState>,
    /// Milliseconds of the run's active time that are recorded with it. Models and tools worked
    /// then, and no earlier outcome of the run counts this time. A monotonic clock measured it at
    /// the place of the work.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub active_ms: u64,
    /// Time at which it ended.
    pub time: Timestamp,
}

impl Settlement {
    /// An outcome with no further facts.
    #[must_use]
    pub fn new(operation: OperationId, outcome: OperationOutcome, time: Timestamp) -> Self {
        Self {
            operation,
            outcome,
            result: None,
            untrusted: false,
            attempts: Vec::new(),
            own_calls: Vec::new(),
            usage: None,
            spent: None,
            task: None,
            active_ms: 0,
            time,
        }
    }

    /// Adds the end of the task.
    #[must_use]
    pub fn ending(mut self, task: TaskState) -> Self {
        self.task = Some(task);
        self
    }

    /// Returns the end of the operation's task, if it is a task.
    #[must_use]
    pub fn task_state(&self) -> TaskState {
        self.task.unwrap_or(match &self.outcome {
            OperationOutcome::Message { .. }
            | OperationOutcome::Parts { .. }
            | OperationOutcome::Value { .. }
            | OperationOutcome::Elapsed => TaskState::Completed,
            OperationOutcome::Failed { .. }
            | OperationOutcome::Denied
            | OperationOutcome::Unknown { .. } => TaskState::Failed,
            OperationOutcome::TimedOut => TaskState::Timeout,
            OperationOutcome::Cancelled => TaskState::Cancelled,
        })
    }

    /// The blobs named by a result outside the thread.
    pub fn blobs(&self) -> impl Iterator<Item = Digest> {
        let parts = match &self.outcome {
            OperationOutcome::Parts { parts } => parts.as_slice(),
            _ => &[],
        };
        parts.iter().filter_map(|part| match part {
            Part::Blob { digest, .. } => Some(*digest),
            _ => None,
        })
    }
}

/// Resources that one call of a guest used, as measured by the host's meters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallUsage {
    /// Wall time in microseconds, host calls included.
    pub wall_us: u64,
    /// Ticks of the epoch during its computation.
    pub cpu_ticks: u64,
    /// The largest sum of all its memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Calls of host functions.
    pub host_calls: u64,
    /// Bytes of log that were dropped beyond the limit.
    pub log_bytes_dropped: u64,
}

/// The run and the operation that wait for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTo {
    /// The waiting run.
    pub run: RunId,
    /// Its operation.
    pub operation: OperationId,
    /// True if the work is useless once that operation has ended. A detached dispatch continues,
    /// and its reply arrives as an input.
    pub attached: bool,
}

/// The answer of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The operation that asked.
    pub operation: OperationId,
    /// The answer.
    #[serde(flatten)]
    pub kept: Kept,
    /// Time of the answer.
    pub time: Timestamp,
}

/// An answer as an event stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Itself.
    Value(Value),
    /// The JSON blob that contains it, if it is too long for an event.
    Blob(Digest),
}

/// The next step of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Progress {
    /// It is done.
    Done {
        /// Its result.
        parts: Vec<Part>,
    },
    /// Call again after a time.
    Later {
        /// The time in milliseconds.
        after_ms: u64,
        /// The state to hand over.
        #[serde(with = "crate::access::tool::bytes_as_hex")]
        state: Vec<u8>,
    },
    /// Ask the user, then call again.
    Ask {
        /// The question.
        action: ClientAction,
        /// The state to hand over.
        #[serde(with = "crate::access::tool::bytes_as_hex")]
        state: Vec<u8>,
    },
}

/// One attempt at a model: its cost is recorded whatever its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ModelAttempt)]
pub struct Attempt {
    /// The provider; empty for an attempt that ended with its host, or was stopped.
    pub provider: String,
    /// The provider's name of the model; for an interrupted attempt, the requested name.
    pub model: String,
    /// Tokens that it used, if the provider reported them; otherwise its reservation is charged.
    pub usage: Option<Usage>,
    /// Cost in millionths ([`crate::work::price`]), if the model has a price and the provider
    /// reported the usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Wall time in milliseconds.
    pub wall_ms: u64,
    /// The error; none for the attempt with the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The amount reserved for it, if its usage was not reported. Without it, the reserve of its
    /// call counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Amount>,
}

impl Attempt {
    /// Returns whether its end is unknown: it was cut off or stopped.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.provider.is_empty()
    }
}
