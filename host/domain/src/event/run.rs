//! What happens in a run: the payloads of its stream.

use super::input::is_zero;
use crate::account::Accounts;
use crate::authority::{Denies, Permissions};
use crate::basis::{Basis, OutfitDigests};
use crate::budget::Spent;
use crate::compaction::{Compacted, Compaction};
use crate::definition::DefinitionId;
use crate::delegate::Priority;
use crate::digest::Digest;
use crate::id::{AgentId, InputId, OperationId, RunId, SessionId, TurnId};
use crate::limits::TurnLimits;
use crate::message::Message;
use crate::model::Attempt;
use crate::operation::{CallUsage, Operation, ReplyTo, Settlement};
use crate::queue::OverflowNotice;
use crate::step::{Decision, Effect, Memo, News};
use crate::time::Timestamp;
use crate::turn::TurnEnd;
use crate::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// See [`super::Event::RunStarted`].
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
    /// Whether what they say is one message, as those are that were collected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub collected: bool,
    /// What it tells of inputs that were dropped before it; after it nobody tells of them again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<OverflowNotice>,
    /// What it may use.
    pub limits: TurnLimits,
    /// What it draws on with all that came of the same message; none when it was begun by one, and in events from before there were any
    /// ([`RunStarted::accounts`]).
    #[serde(default, skip_serializing_if = "Accounts::is_empty")]
    pub accounts: Accounts,
    /// When it ends as timed out, whatever it waits for.
    pub deadline: Option<Timestamp>,
    /// Who waits for its reply.
    pub reply_to: Option<ReplyTo>,
    /// How many calls deep it is.
    pub depth: u32,
    /// How many spawns deep.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spawn_depth: u32,
    /// How many hops it begins with ([`crate::dispatch::Limits::hops_max`]).
    #[serde(default)]
    pub hops: u32,
    /// How urgent it is: what of it waits for a model goes before what is less urgent.
    #[serde(default)]
    pub priority: Priority,
    /// What the agents above its own may not do.
    #[serde(default, skip_serializing_if = "Denies::is_empty")]
    pub denies: Denies,
    /// What the persona permits that its session is led as, and what those permit that handed the work over.
    #[serde(default, skip_serializing_if = "Permissions::are_all")]
    pub permissions: Permissions,
    /// Whether the thread before it, or what its agent remembers, rests on content from outside ([`crate::run::Run::is_untrusted`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// The user for whom it works: from whom its first input is.
    #[serde(default = "UserId::local")]
    pub user_id: UserId,
    /// What its session was opened with, a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_config: Option<Digest>,
    /// When its session expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_expires_at: Option<Timestamp>,
    /// What of its prompt and settings is the agent's own, a blob of JSON ([`crate::basis::Overrides`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Digest>,
    /// What it is to do, of a run that compacts its thread: it claims nothing, and no agent decides in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacts: Option<Box<Compaction>>,
    /// The newest compaction of its thread, from which on its models see it; none of a thread that was never compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Compacted>,
    /// The model that the input or the session asked for.
    pub model: Option<String>,
    /// When.
    pub time: Timestamp,
}

impl RunStarted {
    /// What it draws on, and all that comes of it.
    #[must_use]
    pub fn accounts(&self) -> Accounts {
        if self.accounts.is_empty() { Accounts::of_message(self.run, &self.limits) } else { self.accounts.clone() }
    }
}

/// See [`super::Event::RunStepped`].
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

/// See [`super::Event::StepFailed`].
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

/// See [`super::Event::RunSettled`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSettled {
    /// The run.
    pub run: RunId,
    /// The outcomes.
    pub settled: Vec<Settlement>,
}

/// See [`super::Event::OperationStarted`].
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

/// See [`super::Event::OperationAttempted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationAttempted {
    /// The run.
    pub run: RunId,
    /// The operation.
    pub operation: OperationId,
    /// The attempt about to be made, counted from 0. The first is recorded with the step that asks for it.
    pub attempt: u32,
    /// Attempts that ended before it and are not recorded yet, with those whose outcome was lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Attempt>,
    /// What is reserved for it.
    pub reserved: Spent,
    /// What the operation draws from now on: what the attempts that ended are charged, and what is reserved for this one.
    pub drawn: Spent,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::RunEnded`].
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

/// See [`super::Event::PluginEmitted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginEmitted {
    /// `plugin.<definition>.<name>`.
    pub name: String,
    /// The payload.
    pub data: Value,
}
