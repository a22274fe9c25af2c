//! Every event of the host: what is stored, hash-chained, and all state is a fold of.
//!
//! Payloads carry everything that a fold needs, times included; handlers never ask a clock. A variant's serialised name is its
//! CloudEvents type; a payload that changes shape gets a new version beside the old, never a new meaning.

use crate::basis::{Basis, OutfitDigests};
use crate::definition::DefinitionId;
use crate::delegate::Priority;
use crate::digest::{Digest, Salt};
use crate::id::{AgentId, EventId, InputId, OperationId, RunId, SessionId, TurnId};
use crate::limits::TurnLimits;
use crate::message::{Draft, Message};
use crate::operation::{Answer, CallUsage, Continuation, Operation, ReplyTo, Settlement};
use crate::step::{Decision, Effect, Memo, News};
use crate::time::Timestamp;
use crate::turn::{TurnEnd, TurnNode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event's type and payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum Event {
    /// An agent exists, at a path.
    #[serde(rename = "agent.created.v1")]
    AgentCreated(AgentCreated),
    /// Keys were merged into an agent's preferences.
    #[serde(rename = "agent.preferences.updated.v1")]
    PreferencesUpdated(PreferencesUpdated),
    /// A structured session took its agent's slot.
    #[serde(rename = "agent.session.started.v1")]
    SlotTaken(SlotTaken),
    /// A structured session ended well and left the slot.
    #[serde(rename = "agent.session.completed.v1")]
    SlotCompleted(SlotCompleted),
    /// A structured session was ended from outside, failed or expired, and left the slot.
    #[serde(rename = "agent.session.terminated.v1")]
    SlotTerminated(SlotTerminated),
    /// A note was kept for recall.
    #[serde(rename = "agent.note.remembered.v1")]
    NoteRemembered(NoteRemembered),
    /// A session exists.
    #[serde(rename = "session.opened.v1")]
    SessionOpened(SessionOpened),
    /// An input was accepted: from here on nothing loses it.
    #[serde(rename = "session.input.accepted.v1")]
    InputAccepted(InputAccepted),
    /// A turn joined the tree and the session's head moved to it.
    #[serde(rename = "session.turn.committed.v1")]
    TurnCommitted(TurnCommitted),
    /// A structured session's item went on record.
    #[serde(rename = "session.item.recorded.v1")]
    ItemRecorded(ItemRecorded),
    /// An input could not be dealt with and was put aside, to be looked at and requeued.
    #[serde(rename = "session.input.dead.v1")]
    InputDead(InputDead),
    /// An input that had been put aside waits again.
    #[serde(rename = "session.input.requeued.v1")]
    InputRequeued(InputRequeued),
    /// A run began and claimed its inputs.
    #[serde(rename = "run.started.v1")]
    RunStarted(Box<RunStarted>),
    /// The agent was stepped.
    #[serde(rename = "run.stepped.v1")]
    RunStepped(Box<RunStepped>),
    /// A step trapped or met a limit; nothing of it counts but the attempt.
    #[serde(rename = "run.step_failed.v1")]
    StepFailed(StepFailed),
    /// Outcomes arrived and no step followed at once.
    #[serde(rename = "run.settled.v1")]
    RunSettled(RunSettled),
    /// A tool's call goes on in another segment.
    #[serde(rename = "operation.continued.v1")]
    OperationContinued(Continuation),
    /// A client answered a tool's question; the next segment is due.
    #[serde(rename = "operation.answered.v1")]
    OperationAnswered(Answer),
    /// A non-idempotent segment is about to be sent. After a crash this tells "sent" from "never sent".
    #[serde(rename = "operation.started.v1")]
    OperationStarted(OperationStarted),
    /// A run ended.
    #[serde(rename = "run.ended.v1")]
    RunEnded(RunEnded),
    /// An event of an agent's own.
    #[serde(rename = "plugin.emitted.v1")]
    PluginEmitted(PluginEmitted),
}

/// See [`Event::AgentCreated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCreated {
    /// The agent.
    pub agent: AgentId,
    /// The template it was made from.
    pub definition: DefinitionId,
    /// Its address, unique among active agents.
    pub path: String,
    /// The agent that spawned it.
    pub parent: Option<AgentId>,
    /// Who it belongs to.
    pub owner_user_id: String,
    /// Its name.
    pub name: String,
    /// When.
    pub created_at: Timestamp,
}

/// See [`Event::PreferencesUpdated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreferencesUpdated {
    /// The agent.
    pub agent: AgentId,
    /// The keys to merge.
    pub preferences: Value,
}

/// See [`Event::SlotTaken`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotTaken {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// Its type.
    pub session_type: String,
    /// When.
    pub started_at: Timestamp,
}

/// See [`Event::SlotCompleted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotCompleted {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// The agent's summary.
    pub summary: Value,
    /// When.
    pub completed_at: Timestamp,
}

/// See [`Event::SlotTerminated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotTerminated {
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session_id: SessionId,
    /// Why.
    pub reason: String,
    /// When.
    pub terminated_at: Timestamp,
}

/// See [`Event::NoteRemembered`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteRemembered {
    /// The agent.
    pub agent: AgentId,
    /// The session in which it was said.
    pub session: SessionId,
    /// The note.
    pub note: String,
    /// Whether it rests on content from outside: it then never becomes a system prompt.
    pub untrusted: bool,
    /// When.
    pub time: Timestamp,
}

/// See [`Event::SessionOpened`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// `chat`, or a structured type.
    pub session_type: String,
    /// A label for people.
    pub name: Option<String>,
    /// The turn that it continues; none for an empty thread.
    pub head: Option<TurnId>,
    /// The model that its turns use unless a message says otherwise.
    pub model: Option<String>,
    /// Who began it.
    pub started_by: String,
    /// When.
    pub time: Timestamp,
}

/// Where an input came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// The API.
    Api,
    /// A structured session began: there are no words.
    Opening,
    /// Another agent handed over work.
    Dispatch {
        /// Who waits for the reply; none when detached.
        reply_to: Option<ReplyTo>,
        /// The calling agent's path.
        from: String,
        /// When the work is to be done by.
        deadline: Option<Timestamp>,
        /// How many calls deep.
        depth: u32,
        /// How many hops the calling run had ([`crate::dispatch::Limits::hops_max`]).
        #[serde(default)]
        hops: u32,
        /// How urgent it is.
        #[serde(default)]
        priority: Priority,
    },
    /// A reply that nobody waits for any more.
    LateReply {
        /// The replying agent's path.
        from: String,
        /// How many calls deep the run was that handed the work over.
        #[serde(default)]
        depth: u32,
        /// One hop more than the work had that it replies to.
        #[serde(default)]
        hops: u32,
    },
    /// A reminder that the agent set itself; not to be dealt with before it is due.
    Reminder {
        /// When.
        due: Timestamp,
        /// How many calls deep the run was that set it.
        #[serde(default)]
        depth: u32,
    },
}

impl Source {
    /// Whether these are words that may join a run that is open. Work that somebody waits for, and an opening, get a run of their own.
    #[must_use]
    pub fn is_words(&self) -> bool {
        matches!(self, Self::Api | Self::LateReply { .. } | Self::Reminder { .. })
    }

    /// How many calls deep a run is that begins with it.
    #[must_use]
    pub fn depth(&self) -> u32 {
        match self {
            Self::Dispatch { depth, .. } | Self::LateReply { depth, .. } | Self::Reminder { depth, .. } => *depth,
            Self::Api | Self::Opening => 0,
        }
    }

    /// How many hops a run has that takes it in ([`crate::dispatch::Limits::hops_max`]).
    #[must_use]
    pub fn hops(&self) -> u32 {
        match self {
            Self::Dispatch { hops, .. } | Self::LateReply { hops, .. } => *hops,
            Self::Api | Self::Opening | Self::Reminder { .. } => 0,
        }
    }

    /// How urgent a run is that begins with it.
    #[must_use]
    pub fn priority(&self) -> Priority {
        match self {
            Self::Dispatch { priority, .. } => *priority,
            Self::Api | Self::Opening | Self::LateReply { .. } | Self::Reminder { .. } => Priority::default(),
        }
    }
}

/// See [`Event::InputAccepted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputAccepted {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// Where it came from.
    pub source: Source,
    /// What it says, without a place in the thread yet; none for an opening.
    pub message: Option<Draft>,
    /// The model that its turn is to use.
    pub model: Option<String>,
    /// When.
    pub time: Timestamp,
}

/// See [`Event::InputDead`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputDead {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// Why.
    pub reason: String,
    /// When.
    pub time: Timestamp,
}

/// See [`Event::InputRequeued`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRequeued {
    /// The input.
    pub input: InputId,
    /// The session.
    pub session: SessionId,
    /// When.
    pub time: Timestamp,
}

/// See [`Event::TurnCommitted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnCommitted {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnNode,
    /// The session's revision after it.
    pub revision: u64,
    /// When.
    pub time: Timestamp,
}

/// See [`Event::ItemRecorded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemRecorded {
    /// The session.
    pub session: SessionId,
    /// What was asked.
    pub prompt: Value,
    /// What was answered.
    pub response: Value,
    /// What was made of it.
    pub evaluation: Option<Value>,
    /// When.
    pub time: Timestamp,
}

/// See [`Event::RunStarted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// The agent's definition.
    pub definition: DefinitionId,
    /// The session's type.
    pub session_type: String,
    /// The component that it began with.
    pub component: Digest,
    /// What its agent sees of the host; none in events from before it was frozen: then it is what is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outfit: Option<OutfitDigests>,
    /// The turn on which it builds.
    pub base: Option<TurnId>,
    /// That turn's last message; 0 without one.
    pub base_message: u64,
    /// The session's revision when it began: `end` expects the same.
    pub revision: u64,
    /// The session's state when it began, a blob.
    pub session_state: Digest,
    /// The inputs that it claimed, in order.
    pub claimed: Vec<InputId>,
    /// What it may use.
    pub limits: TurnLimits,
    /// When it ends as timed out, whatever it waits for.
    pub deadline: Option<Timestamp>,
    /// Who waits for its reply.
    pub reply_to: Option<ReplyTo>,
    /// How many calls deep it is.
    pub depth: u32,
    /// How many hops it begins with ([`crate::dispatch::Limits::hops_max`]).
    #[serde(default)]
    pub hops: u32,
    /// How urgent it is: what of it waits for a model goes before what is less urgent.
    #[serde(default)]
    pub priority: Priority,
    /// The user for whom it works: whose agent it is.
    #[serde(default = "only_user")]
    pub user_id: String,
    /// The model that the input or the session asked for.
    pub model: Option<String>,
    /// When.
    pub time: Timestamp,
}

/// Whose every agent was before runs said so.
fn only_user() -> String {
    "local".to_owned()
}

/// See [`Event::RunStepped`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStepped {
    /// The run.
    pub run: RunId,
    /// The step, counted from 0.
    pub step: u32,
    /// What it was decided upon.
    pub basis: Basis,
    /// Outcomes that arrived with this commit.
    pub settled: Vec<Settlement>,
    /// Inputs that it claimed beyond those of the run's start.
    pub claimed: Vec<InputId>,
    /// What the guest was told.
    pub news: Vec<News>,
    /// The most hops of what it claimed, and of the run before it.
    #[serde(default)]
    pub hops: u32,
    /// Messages that entered the thread before the step: results and the user's words.
    pub heard: Vec<Message>,
    /// What the guest decided, word for word.
    pub decision: Decision,
    /// The effects that it asked for.
    pub effects: Vec<Effect>,
    /// What it hands to the next step.
    pub memo: Option<Memo>,
    /// Messages that entered the thread with the decision: what was said, synthetic results, the reply.
    pub said: Vec<Message>,
    /// Operations that it started.
    pub started: Vec<Operation>,
    /// Settlements of what the decision stopped: cancelled operations, and what a turn's end cuts off.
    pub stopped: Vec<Settlement>,
    /// A running hash over everything that the guest read: tells a diverging replay.
    pub answers: Digest,
    /// What the guest's call used.
    pub usage: CallUsage,
    /// When it was decided.
    pub time: Timestamp,
}

/// See [`Event::StepFailed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFailed {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// Which attempt at it, counted from 1.
    pub attempt: u32,
    /// `trapped`, `out_of_memory`, `out_of_cpu`, `timed_out` or `refused`.
    pub outcome: String,
    /// What the guest or the host said of it.
    pub detail: String,
    /// What the call used.
    pub usage: CallUsage,
    /// When.
    pub time: Timestamp,
}

/// See [`Event::RunSettled`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSettled {
    /// The run.
    pub run: RunId,
    /// The outcomes.
    pub settled: Vec<Settlement>,
}

/// See [`Event::OperationStarted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationStarted {
    /// The run.
    pub run: RunId,
    /// The operation.
    pub operation: OperationId,
    /// The segment about to be sent.
    pub segment: u32,
    /// When.
    pub time: Timestamp,
}

/// See [`Event::RunEnded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// How.
    pub end: TurnEnd,
    /// For a failure or an abort: a stable code.
    pub code: Option<String>,
    /// For people.
    pub reason: Option<String>,
    /// The turn that it became; none when its first step never succeeded: then its inputs are dead letters and the thread is as it was.
    pub turn: Option<TurnId>,
    /// Settlements of what was open when the run was ended from outside.
    pub stopped: Vec<Settlement>,
    /// Messages that entered the thread when the run was ended from outside.
    pub said: Vec<Message>,
    /// When.
    pub time: Timestamp,
}

/// See [`Event::PluginEmitted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginEmitted {
    /// `plugin.<definition>.<name>`.
    pub name: String,
    /// The payload.
    pub data: Value,
}

/// Whom an event is about, for filters and for who may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Subject {
    /// The agent.
    pub agent: Option<AgentId>,
    /// The session.
    pub session: Option<SessionId>,
    /// The run.
    pub run: Option<RunId>,
}

/// An event that is about to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// What happened.
    pub event: Event,
    /// Whom it is about.
    pub subject: Subject,
    /// Who caused it: `user:<id>`, `agent:<path>`, `host`.
    pub actor: String,
    /// The event or input that led to it.
    pub causation: Option<EventId>,
    /// What ties everything together that follows from one input: that input's id.
    pub correlation: Option<InputId>,
    /// When.
    pub time: Timestamp,
    /// The salt of its payload's digest.
    pub salt: Salt,
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its place among all events, counted from 1, without gaps, in the order of commits.
    pub position: u64,
    /// Its stream, as text.
    pub stream: String,
    /// Its place in its stream, counted from 1.
    pub version: u64,
    /// Its id.
    pub id: EventId,
    /// Its CloudEvents type.
    pub kind: String,
    /// What happened; none when it was erased.
    pub event: Option<Event>,
    /// Whom it is about.
    pub subject: Subject,
    /// Who caused it.
    pub actor: String,
    /// What led to it.
    pub causation: Option<EventId>,
    /// What it belongs to.
    pub correlation: Option<InputId>,
    /// When.
    pub time: Timestamp,
    /// Its hash, chained to the event before it.
    pub hash: Digest,
}
