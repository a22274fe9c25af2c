//! Payloads of a run's stream.

use crate::access::tool::EffectClass;
use crate::access::user::UserId;
use crate::agents::authority::{Denies, Permissions};
use crate::agents::definition::DefinitionId;
use crate::agents::persona::PersonaId;
use crate::agents::session::CHAT;
use crate::events::event::BoundaryDecided;
use crate::thread::compaction::{Compacted, Compaction};
use crate::thread::message::Message;
use crate::thread::prompt_cut::PromptCut;
use crate::thread::sampling::GenerationSettings;
use crate::thread::transcript::EMPTY_STATE;
use crate::thread::turn::TurnEnd;
use crate::values::digest::Digest;
use crate::values::id::{AgentId, InputId, OperationId, RunId, SessionId, TurnId};
use crate::values::limits::TurnLimits;
use crate::values::text::words;
use crate::values::time::Timestamp;
use crate::work::account::Accounts;
use crate::work::basis::{Basis, ResolvedConfigDigests};
use crate::work::budget::Amount;
use crate::work::delegate::Priority;
use crate::work::hints::Hint;
use crate::work::operation::{Attempt, CallUsage, Operation, ReplyTo, Settlement};
use crate::work::queue::OverflowNotice;
use crate::work::sections::FrozenSections;
use crate::work::step::{Decision, Effect, Memo, News};
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
    /// The agent's view of the host, frozen at the start.
    pub resolved_config: ResolvedConfigDigests,
    /// The whole configuration of the host at the start of the run.
    pub configuration: Digest,
    /// The persona of its session, if any. While the turn is open, it loses what its persona is
    /// denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<PersonaId>,
    /// The turn before it.
    pub base: Option<TurnId>,
    /// The last message of that turn; 0 without one.
    pub base_message: u64,
    /// The session's revision when it began: `end` expects the same.
    pub revision: u64,
    /// The session's state when it began, a blob.
    pub session_state: Digest,
    /// The inputs that it claimed, in order.
    pub claimed: Vec<InputId>,
    /// True if the inputs are one message, as collected ones are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub collected: bool,
    /// The report about inputs dropped before this run. Later runs do not repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<OverflowNotice>,
    /// The limits of the run.
    pub limits: TurnLimits,
    /// The accounts it shares with all work that follows from one message. None if a message began
    /// it ([`RunStarted::accounts`]).
    #[serde(default, skip_serializing_if = "Accounts::is_empty")]
    pub accounts: Accounts,
    /// Time at which it ends as timed out, whatever it waits for.
    pub deadline: Option<Timestamp>,
    /// The caller that waits for its reply.
    pub reply_to: Option<ReplyTo>,
    /// Depth in calls.
    pub depth: u32,
    /// Depth in spawns.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub spawn_depth: u32,
    /// Number of hops at its start ([`crate::work::dispatch::DispatchLimits::hops_max`]).
    pub hops: u32,
    /// Priority of the run. Its steps and model calls precede those of the same user's less urgent
    /// runs.
    pub priority: Priority,
    /// Denials of the agents above its own.
    #[serde(default, skip_serializing_if = "Denies::is_empty")]
    pub denies: Denies,
    /// Permissions of its session's persona. Those of the turns that handed over the work are
    /// included.
    #[serde(default, skip_serializing_if = "Permissions::are_all")]
    pub permissions: Permissions,
    /// True if the thread before it, or its agent's memory, rests on content from outside
    /// ([`crate::events::run::Run::is_untrusted`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// The notes in its models' prompts beside the user's words ([`crate::work::hints`]), best
    /// first. A forgotten note is left out from then on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Hint>,
    /// The sections after the prompts of its models, as they were when it began; none if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<FrozenSections>,
    /// The user for whom it works: the sender of its first input.
    pub user_id: UserId,
    /// The configuration with which its session was opened, a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_config: Option<Digest>,
    /// Time at which its session expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_expires_at: Option<Timestamp>,
    /// The agent's own parts of its prompt and settings, a blob of JSON
    /// ([`crate::work::basis::Overrides`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Digest>,
    /// The task of a run that compacts its thread. Such a run claims no input, and no agent decides
    /// in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacts: Option<Box<Compaction>>,
    /// The latest compaction of its thread, from which its models see it; none for a thread that
    /// was never compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Compacted>,
    /// The model that the input or the session requested.
    pub model: Option<String>,
    /// The settings of its models' replies: those of its session over those of its definition.
    #[serde(default, skip_serializing_if = "crate::values::json::is_default")]
    pub generation: GenerationSettings,
    /// Time at which it began.
    pub time: Timestamp,
    /// Its first step. None if something else had to be stored before the step, such as a failed
    /// attempt at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_step: Option<Box<RunStepped>>,
}

impl RunStarted {
    /// Returns the start of the first run of a chat, without inputs and without limits on its
    /// authority.
    #[must_use]
    pub fn of(
        run: RunId,
        session: SessionId,
        agent: AgentId,
        definition: DefinitionId,
        component: Digest,
        time: Timestamp,
    ) -> Self {
        Self {
            run,
            session,
            agent,
            definition,
            session_type: CHAT.to_owned(),
            component,
            resolved_config: ResolvedConfigDigests::all_of(Digest::of(EMPTY_STATE)),
            configuration: Digest::of(EMPTY_STATE),
            persona: None,
            base: None,
            base_message: 0,
            revision: 0,
            session_state: Digest::of(EMPTY_STATE),
            claimed: Vec::new(),
            collected: false,
            overflow: None,
            limits: TurnLimits::default(),
            accounts: Accounts::default(),
            deadline: None,
            reply_to: None,
            depth: 0,
            spawn_depth: 0,
            hops: 0,
            priority: Priority::default(),
            denies: Denies::default(),
            permissions: Permissions::default(),
            untrusted: false,
            hints: Vec::new(),
            sections: None,
            user_id: UserId::local(),
            session_config: None,
            session_expires_at: None,
            overrides: None,
            compacts: None,
            compacted: None,
            model: None,
            generation: GenerationSettings::default(),
            time,
            first_step: None,
        }
    }

    /// Returns the accounts that the run and all work from it draw on.
    #[must_use]
    pub fn accounts(&self) -> Accounts {
        if self.accounts.is_empty() {
            Accounts::of_message(self.run, &self.limits)
        } else {
            self.accounts.clone()
        }
    }
}

/// See [`super::Event::RunStepped`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStepped {
    /// The run.
    pub run: RunId,
    /// The step, counted from 0.
    pub step: u32,
    /// The basis of the decision.
    pub basis: Basis,
    /// Outcomes that arrived with this commit.
    pub settled: Vec<Settlement>,
    /// Inputs that it claimed in addition to those of the run's start.
    pub claimed: Vec<InputId>,
    /// The news for the guest.
    pub news: Vec<News>,
    /// The most hops of its inputs, and of the run before it.
    pub hops: u32,
    /// Messages that entered the thread before the step: results and the user's messages.
    pub heard: Vec<Message>,
    /// True if the history of ended sessions in the step's input rests on content from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub history_untrusted: bool,
    /// The guest's decision, word for word.
    pub decision: Decision,
    /// The effects that it asked for.
    pub effects: Vec<Effect>,
    /// The memo for the next step.
    pub memo: Option<Memo>,
    /// Messages that entered the thread with the decision: the agent's messages, synthetic results,
    /// the reply.
    pub said: Vec<Message>,
    /// Operations that it started.
    pub started: Vec<Operation>,
    /// Settlements of what the decision stopped: cancelled operations, and operations that the
    /// turn's end cuts off.
    pub stopped: Vec<Settlement>,
    /// A running hash over everything that the guest read. It reveals a diverging replay.
    pub answers: Digest,
    /// Resources that the guest's call used.
    pub usage: CallUsage,
    /// The ledger's entries that the host stores with it: about the step, its requests, and calls
    /// that have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ledger: Vec<BoundaryDecided>,
    /// Time of the decision.
    pub time: Timestamp,
}

/// See [`super::Event::StepFailed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFailed {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: u32,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
    /// The fault.
    pub outcome: StepFault,
    /// The error as the guest or the host described it.
    pub detail: String,
    /// Resources that the call used.
    pub usage: CallUsage,
    /// Time of the failure.
    pub time: Timestamp,
}

/// The fault of a failed step. Its serialised word is an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepFault {
    /// The host failed.
    Faulted,
    /// The agent returned an invalid result.
    Refused,
    /// The agent crashed.
    Trapped,
    /// It exceeded its memory limit.
    OutOfMemory,
    /// It exceeded its CPU limit.
    OutOfCpu,
    /// It took longer than it may.
    TimedOut,
}

words!(StepFault {
    Faulted = "faulted",
    Refused = "refused",
    Trapped = "trapped",
    OutOfMemory = "out-of-memory",
    OutOfCpu = "out-of-cpu",
    TimedOut = "timed-out",
});

/// See [`super::Event::RunRecovered`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecovered {
    /// The run.
    pub run: RunId,
    /// The number in a row without progress in between, counted from 1.
    pub count: u32,
    /// The time of the continuation.
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
    /// The effect from now on, if it is more than the effect at the beginning. That happens when a
    /// program has replaced a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    /// Time at which it started.
    pub time: Timestamp,
}

/// See [`super::Event::OperationAttempted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationAttempted {
    /// The run.
    pub run: RunId,
    /// The operation.
    pub operation: OperationId,
    /// The attempt about to be made, counted from 0. The first is recorded with the step that
    /// requests it.
    pub attempt: u32,
    /// Attempts that ended before it and are not recorded yet, including those with a lost outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Attempt>,
    /// The amount reserved for the attempt.
    pub reserved: Amount,
    /// The operation's draw from now on: the charges of the attempts that ended, plus the
    /// reservation for this one.
    pub drawn: Amount,
    /// Time of the attempt.
    pub time: Timestamp,
}

/// See [`super::Event::RunCut`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCut {
    /// The run.
    pub run: RunId,
    /// The model call for whose prompt it was made.
    pub operation: OperationId,
    /// The cut. It includes all former ones for the same model.
    pub cut: PromptCut,
    /// Time of the cut.
    pub time: Timestamp,
}

/// See [`super::Event::RunEnded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// The kind of end of the run.
    pub end: TurnEnd,
    /// A stable code for a failure or an abort.
    pub code: Option<String>,
    /// The reason, as shown to people.
    pub reason: Option<String>,
    /// The turn of the run. None if its first step never succeeded: then its inputs are dead
    /// letters and the thread is unchanged.
    pub turn: Option<TurnId>,
    /// Settlements of operations that were open when the run was ended from outside.
    pub stopped: Vec<Settlement>,
    /// Messages that entered the thread when the run was ended from outside.
    pub said: Vec<Message>,
    /// The inputs that it claimed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputId>,
    /// True if the run was the host's own, to compact the thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacts: bool,
    /// Time at which it ended.
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
