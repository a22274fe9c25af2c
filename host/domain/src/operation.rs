//! Operations: pieces of work that a step started, from intent to settlement.
//!
//! The open operations of all runs are the host's outbox: what was decided, is stored, and has no outcome yet.

use crate::approval::Approval;
use crate::budget::Spent;
use crate::digest::Digest;
use crate::id::{AgentId, InputId, OperationId, RunId, SessionId};
use crate::message::{Answers, Draft, Part};
use crate::model::Attempt;
use crate::step::{ModelRequest, Outcome};
use crate::talk::Messaged;
use crate::time::Timestamp;
use crate::tool::{ClientAction, EffectClass};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who carries an operation out. Decided when the operation is started, from the grants of that moment, and recorded with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Performer {
    /// The gateway asks a model.
    Model {
        /// What to ask.
        request: ModelRequest,
        /// The last message that the model sees.
        through: u64,
        /// Tokens reserved for it: what its prompt is estimated at, and what its reply may have.
        reserved_tokens: u64,
        /// What they cost at most, in millionths ([`crate::price`]), where the model has a price.
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
        /// The capabilities that the call is bound to.
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
        /// For a call of `delegate`: its arguments, in whose terms the result is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delegation: Option<String>,
        /// For a call of `agents_message`: in whose terms its result is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Messaged>,
        /// When it was handed over.
        since: Timestamp,
    },
    /// The same, and nobody waits for it: it settles at once, and its reply comes as an input.
    Detached {
        /// The agent.
        agent: AgentId,
        /// Its session.
        session: SessionId,
        /// The input that carries the work.
        input: InputId,
        /// What whoever hands it over is told.
        told: String,
    },
    /// The store is searched.
    Recall {
        /// Words to look for.
        query: String,
        /// At most so many hits.
        limit: u32,
    },
    /// Time passes.
    Timer {
        /// When it is due.
        due: Timestamp,
    },
    /// Nobody: a rule refused it, and this is its outcome.
    Refused {
        /// The outcome.
        outcome: Outcome,
    },
    /// Whoever handed the run its work was replied to, in the commit that started the operation.
    Reply {
        /// To whom.
        to: ReplyTo,
        /// Whether it settled what they waited for; otherwise it became an input of their session.
        settled: bool,
    },
}

/// What a call of the model's needs to be paired with its result.
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
    /// Who carries it out.
    pub performer: Performer,
    /// What doing it again does.
    pub effect: EffectClass,
    /// How long one segment may take, in milliseconds; none for what waits on people and clocks.
    pub time_limit_ms: Option<u64>,
    /// When it ends as timed out whatever it is doing; none for no such time.
    pub deadline: Option<Timestamp>,
    /// The model's call that it answers, if it answers one.
    pub answers: PairedWith,
    /// Whether its result goes to the thread (audience `user`, or a model's call).
    pub in_thread: bool,
    /// What of the run's limits is set aside for it until it is known what it used: the share of another agent's work.
    #[serde(default, skip_serializing_if = "Spent::is_nothing")]
    pub reserved: Spent,
    /// What a user has to agree to before it is performed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
}

impl Operation {
    /// The session that it was handed to, if it was.
    #[must_use]
    pub fn child(&self) -> Option<SessionId> {
        match self.performer {
            Performer::Agent { session, .. } => Some(session),
            _ => None,
        }
    }

    /// When its time comes, if it is a timer.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self.performer {
            Performer::Timer { due } => Some(due),
            _ => None,
        }
    }
}

/// Where an operation is between its segments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pause {
    /// It is not between segments.
    #[default]
    None,
    /// Its next segment is due at a time.
    Until {
        /// The time.
        due: Timestamp,
    },
    /// Its next segment needs the user's answer.
    Asking {
        /// The question.
        action: ClientAction,
        /// Until when it may be answered; then the call has timed out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A user has to agree to it, as its [`Operation::approval`] says. Before its first segment alone.
    Approving,
    /// The user did not agree: it settles as refused.
    Declined,
}

/// An operation of a tool goes on in another segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// The operation.
    pub operation: OperationId,
    /// The segment that comes next, counted from 1.
    pub segment: u32,
    /// What the tool left for it.
    #[serde(with = "crate::tool::bytes_as_hex")]
    pub state: Vec<u8>,
    /// What it waits for.
    pub pause: Pause,
    /// Milliseconds of the run's active time that are recorded with it ([`Settlement::active_ms`]).
    #[serde(default, skip_serializing_if = "is_none")]
    pub active_ms: u64,
}

impl Continuation {
    /// The id under which what it asks is answered.
    #[must_use]
    pub fn question(&self) -> OperationId {
        self.operation.question(self.segment)
    }
}

/// How an operation ended, with what goes on record beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settlement {
    /// The operation.
    pub operation: OperationId,
    /// How it ended. A result that goes to the thread is in `result`, and this becomes its message once it has a place.
    pub outcome: Outcome,
    /// What enters the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Draft>,
    /// Whether what it brings rests on content from outside, also where no result enters the thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// What each attempt at a model cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// What each call of a guest used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<CallUsage>,
    /// What another agent used for it; what was set aside for it counts where nobody can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// Milliseconds of the run's active time that are recorded with it: models and tools were at work, and no earlier outcome of the run
    /// has them. Measured by a monotonic clock where the work was done; 0 in outcomes from before it was.
    #[serde(default, skip_serializing_if = "is_none")]
    pub active_ms: u64,
    /// When it ended.
    pub time: Timestamp,
}

impl Settlement {
    /// An outcome with nothing on record beside it.
    #[must_use]
    pub fn of(operation: OperationId, outcome: Outcome, time: Timestamp) -> Self {
        let attempts = Vec::new();
        Self { operation, outcome, result: None, untrusted: false, attempts, usage: None, spent: None, active_ms: 0, time }
    }

    /// The blobs that a result outside the thread names.
    pub fn blobs(&self) -> impl Iterator<Item = Digest> {
        let parts = match &self.outcome {
            Outcome::Parts { parts } => parts.as_slice(),
            _ => &[],
        };
        parts.iter().filter_map(|part| match part {
            Part::Blob { digest, .. } => Some(*digest),
            Part::Text { .. } | Part::Call { .. } | Part::Opaque { .. } => None,
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(ms: &u64) -> bool {
    *ms == 0
}

/// What one call of a guest used, as the host's meters saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallUsage {
    /// Wall time in microseconds, host calls included.
    pub wall_us: u64,
    /// Ticks of the epoch during which it computed.
    pub cpu_ticks: u64,
    /// The largest sum of all its memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Calls of host functions.
    pub host_calls: u64,
    /// Bytes of log that were dropped because there were too many.
    pub log_bytes_dropped: u64,
}

/// Which run and operation wait for a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTo {
    /// The waiting run.
    pub run: RunId,
    /// Its operation.
    pub operation: OperationId,
    /// Whether the work is of no use once that operation has ended. A detached dispatch goes on, and its reply comes as an input.
    pub attached: bool,
}

/// What a client answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The operation that asked.
    pub operation: OperationId,
    /// The answer.
    #[serde(flatten)]
    pub kept: Kept,
}

/// An answer as an event keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Itself.
    Value(Value),
    /// Where it is: a blob of JSON, when it is too long for an event.
    Blob(Digest),
}
