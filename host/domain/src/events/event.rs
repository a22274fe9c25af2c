//! All events of the host. They are stored in a hash chain, and all state is a fold of them.
//!
//! Payloads contain everything that a fold needs, times included; handlers never ask a clock. A
//! variant's serialised name is its CloudEvents type. A payload that changes shape gets a new
//! version, never a new meaning, and [`upcast`] converts the old versions to the new.

mod agent;
mod host;
mod input;
mod outbound_message;
mod reader;
mod record;
mod run;
mod session;
mod trigger;
pub mod upcast;

pub use agent::{
    ActionRequested, ActionWithdrawn, AgentArchived, AgentConfigured, AgentCreated, AgentRenamed,
    ExecutionResumed, ExecutionSuspended, NoteForgotten, NoteRemembered, PreferencesTransferred,
    PreferencesUpdated, PromptOverridden, Provenance, ResponseReceived, RoleChanged,
    SessionImported, SettingsUpdated, SlotCompleted, SlotTaken, SlotTerminated, UserAssigned,
    UserUnassigned,
};
pub use host::{
    BoundaryDecided, BoundaryDecision, BoundaryVerdict, ComponentAdmitted, ConfigRefused,
    ConfigReloaded, ConnectorKeyBound, ConnectorKeyUnbound, DECISIONS_RECORDED_MAX,
    DETAIL_BYTES_MAX, DefinitionMade, DefinitionRemoved, HostRestored, KeyIssued, KeyRevoked,
    KeyValueWritten, NOTHING_OPENED, OPERATOR_READ, OperatorRead, ProviderTroubled,
    REFUSAL_BYTES_MAX, ReloadCause, RestoreChoice,
};
pub use input::{InputAccepted, InputCancelled, InputDead, InputRequeued, InputsDropped, Source};
pub use outbound_message::{
    ConnectorReceived, ConnectorTroubled, InboundMessage, InboundMessageOutcome,
    InboundMessagesSettled, OutboundMessageCause, OutboundMessageOutcome, OutboundMessageQueued,
    OutboundMessageRequeued, OutboundMessageSettled, OutboundMessageStarted, PairingOffered,
    PairingSettled,
};
pub use reader::READER;
pub use record::{NewEvent, Recorded, Subject, kinds};
pub use run::{
    OperationAttempted, OperationStarted, PluginEmitted, RunCut, RunEnded, RunRecovered,
    RunSettled, RunStarted, RunStepped, StepFailed, StepFault,
};
pub use session::{
    Erased, FileUploaded, ImportedTurn, ItemRecorded, KeptByPurge, MemoryDue, MemoryRead,
    PurgeBegun, Purged, QueueConfigured, Remains, SessionAttributed, SessionCleared,
    SessionDeleted, SessionOpened, SessionPinned, SessionRenamed, TurnCommitted, TurnsImported,
    UiSaved,
};
pub use trigger::{
    PauseReason, PostedMessage, SkipReason, TriggerDefined, TriggerEventAccepted,
    TriggerEventFailed, TriggerEventsSkipped, TriggerFired, TriggerMessage, TriggerOrigin,
    TriggerPaused, TriggerPosted, TriggerRemoved, TriggerResumed, TriggerTrouble, TriggerTroubled,
};

use crate::values::id::InputId;
use crate::work::approval::ApprovalAnswered;
use crate::work::operation::{Answer, Continuation};
use serde::{Deserialize, Serialize};

/// An event's type and payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum Event {
    /// An agent exists, at a path.
    #[serde(rename = "agent.created.v1")]
    AgentCreated(AgentCreated),
    /// An agent was archived: its stream stays and accepts no more events.
    #[serde(rename = "agent.archived.v1")]
    AgentArchived(AgentArchived),
    /// A user was assigned to an agent.
    #[serde(rename = "agent.user.assigned.v1")]
    UserAssigned(UserAssigned),
    /// A user's role with an agent changed.
    #[serde(rename = "agent.user.role.changed.v1")]
    RoleChanged(RoleChanged),
    /// A user was removed from an agent.
    #[serde(rename = "agent.user.unassigned.v1")]
    UserUnassigned(UserUnassigned),
    /// An agent was renamed.
    #[serde(rename = "agent.renamed.v1")]
    AgentRenamed(AgentRenamed),
    /// The configuration of an agent changed: all its stored fields besides its address.
    #[serde(rename = "agent.config.updated.v1")]
    AgentConfigured(Box<AgentConfigured>),
    /// An agent got a system prompt of its own, or lost it.
    #[serde(rename = "agent.prompt.overridden.v1")]
    PromptOverridden(PromptOverridden),
    /// Keys were merged into an agent's settings, or removed.
    #[serde(rename = "agent.settings.updated.v1")]
    SettingsUpdated(SettingsUpdated),
    /// Keys were merged into an agent's preferences.
    #[serde(rename = "agent.preferences.updated.v1")]
    PreferencesUpdated(PreferencesUpdated),
    /// The preferences about a user who handed over an agent were copied to their successor.
    #[serde(rename = "agent.preferences.transferred.v1")]
    PreferencesTransferred(PreferencesTransferred),
    /// A structured session took its agent's slot.
    #[serde(rename = "agent.session.started.v1")]
    SlotTaken(SlotTaken),
    /// A structured session ended well and left the slot.
    #[serde(rename = "agent.session.completed.v1")]
    SlotCompleted(SlotCompleted),
    /// A structured session was ended from outside, failed or expired, and left the slot.
    #[serde(rename = "agent.session.terminated.v1")]
    SlotTerminated(SlotTerminated),
    /// A structured session began to wait for its client.
    #[serde(rename = "agent.execution.suspended.v1")]
    ExecutionSuspended(Box<ExecutionSuspended>),
    /// Its client answered the last open question, and it continues.
    #[serde(rename = "agent.execution.resumed.v1")]
    ExecutionResumed(ExecutionResumed),
    /// A structured session asked a further question while it waited.
    #[serde(rename = "agent.client.action.requested.v1")]
    ActionRequested(Box<ActionRequested>),
    /// Its client answered one of several questions.
    #[serde(rename = "agent.client.response.received.v1")]
    ResponseReceived(ResponseReceived),
    /// A question was withdrawn.
    #[serde(rename = "agent.client.action.withdrawn.v1")]
    ActionWithdrawn(ActionWithdrawn),
    /// A structured session that had ended in another system joined the agent's history.
    #[serde(rename = "agent.session.imported.v1")]
    SessionImported(SessionImported),
    /// A note was kept for recall.
    #[serde(rename = "agent.note.remembered.v1")]
    NoteRemembered(NoteRemembered),
    /// A note was forgotten: its text is erased from the event that stored it.
    #[serde(rename = "agent.note.forgotten.v1")]
    NoteForgotten(NoteForgotten),
    /// A session exists.
    #[serde(rename = "session.opened.v1")]
    SessionOpened(SessionOpened),
    /// A session was renamed, or lost its name.
    #[serde(rename = "session.renamed.v1")]
    SessionRenamed(SessionRenamed),
    /// A session was pinned or unpinned.
    #[serde(rename = "session.pinned.v1")]
    SessionPinned(SessionPinned),
    /// Keys were merged into a session's attributes, or removed.
    #[serde(rename = "session.attributes.updated.v1")]
    SessionAttributed(SessionAttributed),
    /// A session was reset to an empty thread. Its turns are kept, and so are other references to
    /// them.
    #[serde(rename = "session.cleared.v1")]
    SessionCleared(SessionCleared),
    /// A session was deleted: it can no longer be found. Its turns are kept, and so are other
    /// references to them.
    #[serde(rename = "session.deleted.v1")]
    SessionDeleted(SessionDeleted),
    /// A session's own queue settings changed.
    #[serde(rename = "session.queue.configured.v1")]
    QueueConfigured(QueueConfigured),
    /// An input was accepted: from here on it cannot be lost.
    #[serde(rename = "session.input.accepted.v1")]
    InputAccepted(InputAccepted),
    /// A turn joined the tree and the session's head moved to it.
    #[serde(rename = "session.turn.committed.v1")]
    TurnCommitted(TurnCommitted),
    /// A session has turns that its memory agent has not read, and will read when the session is
    /// idle. Or the session is not to be read any more.
    #[serde(rename = "session.memory.due.v1")]
    MemoryDue(MemoryDue),
    /// Turns of a session were given to its memory agent. No later reading begins before them.
    #[serde(rename = "session.memory.read.v1")]
    MemoryRead(MemoryRead),
    /// An item of a structured session was recorded.
    #[serde(rename = "session.item.recorded.v1")]
    ItemRecorded(ItemRecorded),
    /// A client stored the present input in the widget of an open question.
    #[serde(rename = "session.ui.saved.v1")]
    UiSaved(UiSaved),
    /// A client handed over a file.
    #[serde(rename = "session.file.uploaded.v1")]
    FileUploaded(FileUploaded),
    /// An input could not be processed and was set aside, for an operator to inspect and requeue.
    #[serde(rename = "session.input.dead.v1")]
    InputDead(InputDead),
    /// An input that had been set aside waits again.
    #[serde(rename = "session.input.requeued.v1")]
    InputRequeued(InputRequeued),
    /// A waiting input was cancelled, or an input that was set aside was discarded.
    #[serde(rename = "session.input.cancelled.v1")]
    InputCancelled(InputCancelled),
    /// Waiting inputs were dropped, because the queue was full. The next turn of messages reports
    /// them.
    #[serde(rename = "session.inputs.dropped.v1")]
    InputsDropped(InputsDropped),
    /// A run began and claimed its inputs.
    #[serde(rename = "run.started.v1")]
    RunStarted(Box<RunStarted>),
    /// The agent was stepped.
    #[serde(rename = "run.stepped.v1")]
    RunStepped(Box<RunStepped>),
    /// A step trapped or met a limit; only the attempt counts.
    #[serde(rename = "run.step_failed.v1")]
    StepFailed(StepFailed),
    /// A run continues after the host ended unexpectedly. Recorded before any of its work is
    /// repeated.
    #[serde(rename = "run.recovered.v1")]
    RunRecovered(RunRecovered),
    /// Outcomes arrived and no step followed at once.
    #[serde(rename = "run.settled.v1")]
    RunSettled(RunSettled),
    /// A tool call continues in another segment.
    #[serde(rename = "operation.continued.v1")]
    OperationContinued(Continuation),
    /// A client answered a tool's question; the next segment is due.
    #[serde(rename = "operation.answered.v1")]
    OperationAnswered(Answer),
    /// A user approved or refused a call that the host asked about. Sending the call uses up the
    /// answer.
    #[serde(rename = "operation.approval.answered.v1")]
    ApprovalAnswered(ApprovalAnswered),
    /// A non-idempotent segment is about to be sent. After a crash this distinguishes "sent" from
    /// "never sent".
    #[serde(rename = "operation.started.v1")]
    OperationStarted(OperationStarted),
    /// A model is about to be asked again for the same call, within the budget. After a crash, this
    /// event shows which attempts may have been made.
    #[serde(rename = "operation.attempted.v1")]
    OperationAttempted(Box<OperationAttempted>),
    /// The prompts of a run were cut, because they outgrew the window of a model. Recorded before
    /// the next model call; the thread loses nothing.
    #[serde(rename = "run.cut.v1")]
    RunCut(Box<RunCut>),
    /// A run ended.
    #[serde(rename = "run.ended.v1")]
    RunEnded(RunEnded),
    /// The decisions of the boundary during a call: what was granted, refused and limited. They
    /// include the data that left the host.
    #[serde(rename = "boundary.decided.v1")]
    BoundaryDecided(Box<BoundaryDecided>),
    /// A tool call wrote to a bucket. In the commit of the call's outcome, or of its state for the
    /// next segment.
    #[serde(rename = "keyvalue.written.v1")]
    KeyValueWritten(KeyValueWritten),
    /// A component is served with a new grant, or with other code.
    #[serde(rename = "component.admitted.v1")]
    ComponentAdmitted(ComponentAdmitted),
    /// A user has an API key.
    #[serde(rename = "user.key.issued.v1")]
    KeyIssued(Box<KeyIssued>),
    /// An API key no longer counts.
    #[serde(rename = "user.key.revoked.v1")]
    KeyRevoked(KeyRevoked),
    /// A service's key for a person was bound to a user.
    #[serde(rename = "user.connector.bound.v1")]
    ConnectorKeyBound(ConnectorKeyBound),
    /// A service's key was unbound from a user.
    #[serde(rename = "user.connector.unbound.v1")]
    ConnectorKeyUnbound(ConnectorKeyUnbound),
    /// A user made a definition of their own from a template.
    #[serde(rename = "user.definition.made.v1")]
    DefinitionMade(Box<DefinitionMade>),
    /// A user's definition was removed. Its agents stay and accept no messages.
    #[serde(rename = "user.definition.removed.v1")]
    DefinitionRemoved(DefinitionRemoved),
    /// The host serves a store that was restored from a backup.
    #[serde(rename = "host.restored.v1")]
    HostRestored(HostRestored),
    /// The operator read the messages of an agent's users without being assigned to it. Recorded
    /// before the answer was given.
    #[serde(rename = "operator.read.v1")]
    OperatorRead(OperatorRead),
    /// A new configuration is in force, for every turn that begins from now on.
    #[serde(rename = "config.reloaded.v1")]
    ConfigReloaded(Box<ConfigReloaded>),
    /// A reloaded configuration was refused as a whole: the old one stays in force.
    #[serde(rename = "config.refused.v1")]
    ConfigRefused(Box<ConfigRefused>),
    /// An event of an agent's own.
    #[serde(rename = "plugin.emitted.v1")]
    PluginEmitted(PluginEmitted),
    /// Turns from elsewhere joined the tree.
    #[serde(rename = "session.turns.imported.v1")]
    TurnsImported(TurnsImported),
    /// The purge of a deleted session, or of an archived agent, began. Its content is erased from
    /// here on.
    #[serde(rename = "purge.begun.v1")]
    PurgeBegun(PurgeBegun),
    /// The purge is complete: this much was erased, and this much was kept because others refer to
    /// it.
    #[serde(rename = "purge.done.v1")]
    Purged(Purged),
    /// A trigger was defined, or replaced under the same name.
    #[serde(rename = "trigger.defined.v1")]
    TriggerDefined(TriggerDefined),
    /// A trigger was removed. Its history is kept.
    #[serde(rename = "trigger.removed.v1")]
    TriggerRemoved(TriggerRemoved),
    /// A trigger was paused until somebody resumes it.
    #[serde(rename = "trigger.paused.v1")]
    TriggerPaused(TriggerPaused),
    /// A trigger is fired again.
    #[serde(rename = "trigger.resumed.v1")]
    TriggerResumed(TriggerResumed),
    /// A trigger event was accepted: from here on it cannot be lost.
    #[serde(rename = "trigger.event.accepted.v1")]
    TriggerEventAccepted(TriggerEventAccepted),
    /// Trigger events of a trigger's schedule were skipped.
    #[serde(rename = "trigger.events.skipped.v1")]
    TriggerEventsSkipped(TriggerEventsSkipped),
    /// A trigger was fired: its trigger event is acknowledged, and its messages wait to be handed
    /// over.
    #[serde(rename = "trigger.fired.v1")]
    TriggerFired(TriggerFired),
    /// A trigger event could not be processed, and is tried again or given up.
    #[serde(rename = "trigger.event.failed.v1")]
    TriggerEventFailed(TriggerEventFailed),
    /// The messages of a trigger run were handed over.
    #[serde(rename = "trigger.posted.v1")]
    TriggerPosted(TriggerPosted),
    /// A trigger has a trouble that an operator should know of.
    #[serde(rename = "trigger.troubled.v1")]
    TriggerTroubled(TriggerTroubled),
    /// Messages arrived from people outside: from here on they cannot be lost.
    #[serde(rename = "connector.received.v1")]
    ConnectorReceived(ConnectorReceived),
    /// The fate of inbound messages was decided.
    #[serde(rename = "connector.inbound.settled.v1")]
    InboundMessagesSettled(InboundMessagesSettled),
    /// An unknown sender received a pairing code.
    #[serde(rename = "connector.pairing.offered.v1")]
    PairingOffered(PairingOffered),
    /// A pairing was confirmed, declined or expired.
    #[serde(rename = "connector.pairing.settled.v1")]
    PairingSettled(PairingSettled),
    /// A message to people outside is to be sent. Stored in the commit of its cause.
    #[serde(rename = "connector.outbound.queued.v1")]
    OutboundMessageQueued(OutboundMessageQueued),
    /// A message to people outside is about to be sent. After a crash this distinguishes "sent"
    /// from "never sent".
    #[serde(rename = "connector.outbound.started.v1")]
    OutboundMessageStarted(OutboundMessageStarted),
    /// An attempt to send a message to people outside has ended.
    #[serde(rename = "connector.outbound.settled.v1")]
    OutboundMessageSettled(OutboundMessageSettled),
    /// A given-up message to people outside is tried again.
    #[serde(rename = "connector.outbound.requeued.v1")]
    OutboundMessageRequeued(OutboundMessageRequeued),
    /// A connector has a trouble that an operator should know of.
    #[serde(rename = "connector.troubled.v1")]
    ConnectorTroubled(ConnectorTroubled),
    /// A provider of models has a trouble that an operator should know of.
    #[serde(rename = "provider.troubled.v1")]
    ProviderTroubled(ProviderTroubled),
}

impl Event {
    /// Returns the step that the event has: a run's start has the first one, if both were stored
    /// together.
    #[must_use]
    pub fn step(&self) -> Option<&RunStepped> {
        match self {
            Self::RunStarted(started) => started.first_step.as_deref(),
            Self::RunStepped(stepped) => Some(stepped),
            _ => None,
        }
    }

    /// Returns a run's start and its first step as events of their own; any other event as it is.
    pub fn apart(mut self) -> impl Iterator<Item = Self> {
        let first_step = match &mut self {
            Self::RunStarted(started) => started.first_step.take(),
            _ => None,
        };
        std::iter::once(self).chain(first_step.map(Self::RunStepped))
    }

    /// Returns the inputs that a run claimed with the event.
    pub fn claimed(&self) -> impl Iterator<Item = InputId> {
        let begun_with: &[InputId] = match self {
            Self::RunStarted(started) => &started.claimed,
            _ => &[],
        };
        let joined = self.step().map_or(&[][..], |step| &step.claimed);
        begun_with.iter().chain(joined).copied()
    }

    /// Returns the ledger's entries that the event has.
    #[must_use]
    pub fn ledger(&self) -> &[BoundaryDecided] {
        match self {
            Self::BoundaryDecided(entry) => std::slice::from_ref(entry),
            _ => self.step().map_or(&[], |step| &step.ledger),
        }
    }
}
