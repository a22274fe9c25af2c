//! Events in public form: one JSON object for each, the same on every stream and in every list
//! except for `spawned`.
//!
//! The public parts of an event stand in one table by subject, from which its JSON and its schema
//! follow.

mod agent;
mod connector;
mod host;
mod run;
mod session;
mod trigger;

use super::spawned::Spawned;
use super::values::Time;
use agent::*;
use connector::*;
pub(crate) use connector::{CauseView, ReplyRouteView};
use domain::event::{self, Recorded};
use domain::id::{AgentId, EventId, InputId, RunId, SessionId};
use domain::operation::Kept;
use host::*;
use run::*;
use serde::Serialize;
use serde_json::{Value, json};
use session::*;
pub(crate) use trigger::TriggerEventView;
use trigger::*;
use utoipa::openapi::schema::{Object, SchemaType, Type};

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub(crate) struct Event {
    /// Its place among all events: without gaps, in the order of commits. The `id` of event
    /// streams.
    pub(crate) position: u64,
    /// Its id.
    pub(crate) id: EventId,
    /// Its type and data.
    #[serde(flatten)]
    pub(crate) what: EventContent,
    /// The time of the event, ISO 8601.
    pub(crate) time: Time,
    /// The agent that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<AgentId>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<SessionId>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<RunId>,
    /// The actor that caused it: `user:<id>`, `agent:<path>`, `host`.
    pub(crate) actor: String,
    /// The id shared by everything that follows from one input: the id of that input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<InputId>,
    /// The place of its session below the followed one. It is set on a stream with `spawned=true`,
    /// for events of sessions that the followed one began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spawned: Option<Spawned>,
}

/// The type and the data of an event. Fields may be added to the data, and never change their
/// meaning within a type.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub(crate) enum EventContent {
    /// The whole data.
    Whole(Box<EventData>),
    /// The data was erased.
    #[schema(title = "Erased")]
    Erased {
        /// Its CloudEvents type, such as `run.stepped.v1`.
        r#type: String,
        /// Always null.
        #[schema(schema_with = null)]
        data: (),
    },
}

/// A stored event as clients see it.
pub(crate) fn event(recorded: &Recorded) -> Event {
    let said = recorded.event.as_ref().filter(|event| !is_remnant(event));
    Event {
        position: recorded.position,
        id: recorded.id,
        what: match said {
            Some(event) => EventContent::Whole(Box::new(EventData::of(event))),
            None => EventContent::Erased {
                r#type: recorded.kind.clone(),
                data: (),
            },
        },
        time: Time(recorded.time),
        agent_id: recorded.subject.agent,
        session_id: recorded.subject.session,
        run_id: recorded.subject.run,
        actor: recorded.actor.clone(),
        correlation_id: recorded.correlation,
        spawned: None,
    }
}

/// Returns whether an event is what a purge left of another, so that a schedule goes on.
fn is_remnant(event: &event::Event) -> bool {
    match event {
        event::Event::TriggerEventsSkipped(it) => it.count == 0,
        event::Event::TriggerFired(it) => it.trigger_event.0.is_nil(),
        _ => false,
    }
}

/// Declares what is public of events: by field its type, and whence it comes if not from the
/// event's field of the same name. Each becomes a struct with a schema.
macro_rules! public {
    ($($name:ident($it:ident: $event:ty) {
        $($(#[$of:meta])* $field:ident: $type:ty $(= $value:expr)?,)*
    })*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
        pub(crate) struct $name { $($(#[$of])* $field: $type,)* }

        impl $name {
            pub(super) fn of($it: &$event) -> Self {
                Self { $($field: public!(@value $it $field $($value)?),)* }
            }
        }
    )*};
    (@value $it:ident $field:ident) => { ToOwned::to_owned(&$it.$field) };
    (@value $it:ident $field:ident $value:expr) => { $value };
}
use public;

/// Lists all events with their types. One that is missing here or in the tables does not compile.
macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $type:tt,)*) => {
        /// The data of an event, by its CloudEvents type.
        #[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
        #[serde(tag = "type", content = "data")]
        pub(crate) enum EventData {
            $($(#[$doc])* #[serde(rename = $type)] $name($name),)*
        }

        impl EventData {
            fn of(event: &event::Event) -> Self {
                match event {
                    $(event::Event::$name(it) => Self::$name($name::of(it)),)*
                }
            }
        }
    };
}

events! {
    /// An agent exists, at a path.
    AgentCreated = "agent.created.v1",
    /// An agent was archived: its stream stays and takes nothing more.
    AgentArchived = "agent.archived.v1",
    /// A user was assigned to an agent.
    UserAssigned = "agent.user.assigned.v1",
    /// A user's role with an agent changed.
    RoleChanged = "agent.user.role.changed.v1",
    /// A user was removed from an agent.
    UserUnassigned = "agent.user.unassigned.v1",
    /// An agent has another name.
    AgentRenamed = "agent.renamed.v1",
    /// The configuration of an agent changed: all that is kept about it beside its address.
    AgentConfigured = "agent.config.updated.v1",
    /// An agent got a system prompt of its own, or lost it.
    PromptOverridden = "agent.prompt.overridden.v1",
    /// Keys were merged into an agent's settings, or taken away.
    SettingsUpdated = "agent.settings.updated.v1",
    /// Keys were merged into an agent's preferences.
    PreferencesUpdated = "agent.preferences.updated.v1",
    /// The preferences about a user who handed over an agent were copied to their successor.
    PreferencesTransferred = "agent.preferences.transferred.v1",
    /// A structured session took its agent's slot.
    SlotTaken = "agent.session.started.v1",
    /// A structured session ended well and left the slot.
    SlotCompleted = "agent.session.completed.v1",
    /// A structured session was ended from outside, failed or expired, and left the slot.
    SlotTerminated = "agent.session.terminated.v1",
    /// A structured session began to wait for its client.
    ExecutionSuspended = "agent.execution.suspended.v1",
    /// Its client answered the last of what waited, and it goes on.
    ExecutionResumed = "agent.execution.resumed.v1",
    /// A structured session asked something more while it waited.
    ActionRequested = "agent.client.action.requested.v1",
    /// Its client answered one of several questions.
    ResponseReceived = "agent.client.response.received.v1",
    /// A question is not to be answered any more.
    ActionWithdrawn = "agent.client.action.withdrawn.v1",
    /// A structured session of another system, which had ended there, joined the agent's history.
    SessionImported = "agent.session.imported.v1",
    /// A note was kept for recall.
    NoteRemembered = "agent.note.remembered.v1",
    /// A note was forgotten: what it said is erased from the event that kept it.
    NoteForgotten = "agent.note.forgotten.v1",
    /// A session exists.
    SessionOpened = "session.opened.v1",
    /// A session is called something else, or nothing.
    SessionRenamed = "session.renamed.v1",
    /// A session was pinned, or is not pinned any more.
    SessionPinned = "session.pinned.v1",
    /// Keys were merged into a session's attributes, or taken away.
    SessionAttributed = "session.attributes.updated.v1",
    /// A session points to an empty thread again. Its turns stay, and what else points to them.
    SessionCleared = "session.cleared.v1",
    /// A session was deleted: it can no longer be found. Its turns stay, and what else points to
    /// them.
    SessionDeleted = "session.deleted.v1",
    /// A session's own queue settings changed.
    QueueConfigured = "session.queue.configured.v1",
    /// An input was accepted: from here on nothing loses it.
    InputAccepted = "session.input.accepted.v1",
    /// A turn joined the tree and the session's head moved to it.
    TurnCommitted = "session.turn.committed.v1",
    /// A session has turns that its memory agent has not read, and will get when it is idle; or it
    /// is not to be read after all.
    MemoryDue = "session.memory.due.v1",
    /// Turns of a session were handed to its memory agent. No later reading begins before them.
    MemoryRead = "session.memory.read.v1",
    /// A structured session's item went on record.
    ItemRecorded = "session.item.recorded.v1",
    /// A client kept what is filled in so far in the widget of an open question.
    UiSaved = "session.ui.saved.v1",
    /// A client handed over a file.
    FileUploaded = "session.file.uploaded.v1",
    /// An input could not be dealt with and was put aside, to be looked at and requeued.
    InputDead = "session.input.dead.v1",
    /// An input that had been put aside waits again.
    InputRequeued = "session.input.requeued.v1",
    /// An input that waited was cancelled, or one that had been put aside was dropped for good.
    InputCancelled = "session.input.cancelled.v1",
    /// Inputs that waited were dropped, because more came than the queue holds. The next turn of
    /// messages reports them.
    InputsDropped = "session.inputs.dropped.v1",
    /// A run began and claimed its inputs.
    RunStarted = "run.started.v1",
    /// The agent was stepped.
    RunStepped = "run.stepped.v1",
    /// A step trapped or met a limit; nothing of it counts but the attempt.
    StepFailed = "run.step_failed.v1",
    /// A run is gone on with after the host ended without being told to. Recorded before anything
    /// of it is done again.
    RunRecovered = "run.recovered.v1",
    /// Outcomes arrived and no step followed at once.
    RunSettled = "run.settled.v1",
    /// A tool's call goes on in another segment.
    OperationContinued = "operation.continued.v1",
    /// A client answered a tool's question; the next segment is due.
    OperationAnswered = "operation.answered.v1",
    /// A user agreed to a call that the host asked about, or did not. The answer is used up when
    /// the call is sent.
    ApprovalAnswered = "operation.approval.answered.v1",
    /// A non-idempotent segment is about to be sent. After a crash this distinguishes "sent" from
    /// "never sent".
    OperationStarted = "operation.started.v1",
    /// A model is about to be asked again for the same call, which the budget allows. After a crash
    /// this shows which attempts there may have been.
    OperationAttempted = "operation.attempted.v1",
    /// The prompts of a run were cut, because they outgrew the window of a model. Recorded before
    /// the model is asked; the thread loses nothing.
    RunCut = "run.cut.v1",
    /// A run ended.
    RunEnded = "run.ended.v1",
    /// The decisions of the boundary during a call: what was granted, refused and limited. They
    /// include what left the host.
    BoundaryDecided = "boundary.decided.v1",
    /// A tool's call wrote to a bucket. In the commit of the call's outcome, or of what it left for
    /// its next segment.
    KeyValueWritten = "keyvalue.written.v1",
    /// A component is served with a grant that it did not have before, or with other code.
    ComponentAdmitted = "component.admitted.v1",
    /// A user has an API key.
    KeyIssued = "user.key.issued.v1",
    /// An API key no longer counts.
    KeyRevoked = "user.key.revoked.v1",
    /// A service's key for a person stands for a user from now on.
    ConnectorKeyBound = "user.connector.bound.v1",
    /// A service's key no longer stands for a user.
    ConnectorKeyUnbound = "user.connector.unbound.v1",
    /// A user made a definition of their own from a template.
    DefinitionMade = "user.definition.made.v1",
    /// A definition that a user had made is no longer there. Its agents stay, and take no words.
    DefinitionRemoved = "user.definition.removed.v1",
    /// The host serves a store that was restored from a backup.
    HostRestored = "host.restored.v1",
    /// The operator read the messages of an agent's users without being assigned to it. Recorded
    /// before the answer was given.
    OperatorRead = "operator.read.v1",
    /// Another configuration is in force, for every turn that begins from here on.
    ConfigReloaded = "config.reloaded.v1",
    /// A configuration that was read again was refused as a whole: what was in force stays so.
    ConfigRefused = "config.refused.v1",
    /// An event of an agent's own.
    PluginEmitted = "plugin.emitted.v1",
    /// Turns that were made elsewhere joined the tree.
    TurnsImported = "session.turns.imported.v1",
    /// The purge of a session that was deleted, or of an agent that was archived, began. Its
    /// content is erased from here on.
    PurgeBegun = "purge.begun.v1",
    /// It was: this much is gone, and this much stays because others point to it.
    Purged = "purge.done.v1",
    /// A trigger is there, or is another one under the same name.
    TriggerDefined = "trigger.defined.v1",
    /// A trigger is no longer there. Its history stays.
    TriggerRemoved = "trigger.removed.v1",
    /// A trigger is not fired until somebody resumes it.
    TriggerPaused = "trigger.paused.v1",
    /// A trigger is fired again.
    TriggerResumed = "trigger.resumed.v1",
    /// An event of a trigger was accepted: from here on nothing loses it.
    TriggerEventAccepted = "trigger.event.accepted.v1",
    /// Trigger events of a trigger's schedule were passed over.
    TriggerEventsSkipped = "trigger.events.skipped.v1",
    /// A trigger was fired: its trigger event is acknowledged, and its messages are to be handed
    /// over.
    TriggerFired = "trigger.fired.v1",
    /// A trigger event could not be dealt with, and is tried again or given up.
    TriggerEventFailed = "trigger.event.failed.v1",
    /// The messages of a trigger run were handed over.
    TriggerPosted = "trigger.posted.v1",
    /// An operator should know something of a trigger.
    TriggerTroubled = "trigger.troubled.v1",
    /// Messages arrived from people outside: from here on nothing loses them.
    ConnectorReceived = "connector.received.v1",
    /// It is known what became of messages that had arrived.
    InboundMessagesSettled = "connector.inbound.settled.v1",
    /// A sender whom nobody knows got a pairing code.
    PairingOffered = "connector.pairing.offered.v1",
    /// A pairing was confirmed, declined or expired.
    PairingSettled = "connector.pairing.settled.v1",
    /// A message to people outside is to be sent. In the commit of what it comes of.
    OutboundMessageQueued = "connector.outbound.queued.v1",
    /// A message to people outside is about to be sent. After a crash this distinguishes "sent"
    /// from "never sent".
    OutboundMessageStarted = "connector.outbound.started.v1",
    /// It is known what became of an attempt to send a message to people outside.
    OutboundMessageSettled = "connector.outbound.settled.v1",
    /// A message to people outside that had been given up is tried again.
    OutboundMessageRequeued = "connector.outbound.requeued.v1",
    /// An operator should know something of a connector.
    ConnectorTroubled = "connector.troubled.v1",
    /// An operator should know something of a provider of models.
    ProviderTroubled = "provider.troubled.v1",
}

/// Returns an answer; a long one by the digest under which it is kept.
fn kept(kept: &Kept) -> Value {
    match kept {
        Kept::Value(value) => value.clone(),
        Kept::Blob(digest) => json!({ "blob": digest.reference() }),
    }
}

/// The schema of what is always null.
fn null() -> Object {
    Object::with_type(SchemaType::Type(Type::Null))
}
