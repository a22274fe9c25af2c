//! Blobs and the streams that name them. A blob that no stream names is not needed. A reader of a
//! thread may read the blobs that its messages name.

use crate::EMPTY_STATE;
use crate::sql::{self, Sql, insert};
use domain::digest::Digest;
use domain::event::{
    Event, ExecutionResumed, ImportedTurn, InputAccepted, ResponseReceived, RunStarted, RunStepped,
};
use domain::message::{Message, Part};
use domain::operation::{Kept, Settlement};
use domain::step::Effect;
use std::collections::BTreeSet;

/// Returns whether an event names any blob.
pub(crate) fn names_any(event: &Event) -> bool {
    let named = Named::from_event(event);
    !named.shown.is_empty() || !named.kept.is_empty()
}

/// The blobs that an event names.
#[derive(Default)]
struct Named {
    /// Blobs named by a message of a thread.
    shown: BTreeSet<Digest>,
    /// Otherwise.
    kept: BTreeSet<Digest>,
}

/// Returns the blobs that an event names, each of them once, and whether a message of a thread
/// shows it.
pub(crate) fn all_named(event: &Event) -> Vec<(Digest, bool)> {
    let Named { shown, mut kept } = Named::from_event(event);
    // This one is there from the beginning and stays.
    kept.remove(&Digest::of(EMPTY_STATE));
    let shows = shown.iter().map(|digest| (*digest, true));
    let keeps = kept.difference(&shown).map(|digest| (*digest, false));
    shows.chain(keeps).collect()
}

/// An event of the stream with this number was stored.
pub(super) fn named(sql: &Sql<'_>, stream: i64, event: &Event) -> sql::Result<()> {
    for (digest, shown) in all_named(event) {
        insert!(
            sql,
            blob_references {
                stream,
                digest,
                shown
            },
            "ON CONFLICT (stream, digest) DO UPDATE SET shown = 1 WHERE excluded.shown > shown"
        )?;
    }
    Ok(())
}

impl Named {
    /// Returns the blobs that an event names. An agent's output names only blobs that its run was
    /// shown before, so decisions and the operations that they start are not searched. The state of
    /// a turn is named by its run, which made it or began with it.
    fn from_event(event: &Event) -> Self {
        use Event as E;
        let mut named = Self::default();
        match event {
            E::InputAccepted(accepted) => named.accept(accepted),
            E::TurnsImported(imported) if imported.erased.is_none() => {
                named.import(&imported.turns);
            }
            E::RunStarted(started) => named.begin(started),
            E::RunStepped(stepped) => named.step(stepped),
            E::RunSettled(settled) => named.settle(&settled.settled),
            E::OperationAnswered(answer) => match &answer.kept {
                Kept::Blob(digest) => named.kept.extend([*digest]),
                Kept::Value(_) => {}
            },
            E::RunEnded(ended) => {
                named.settle(&ended.stopped);
                named.show(&ended.said);
            }
            E::ComponentAdmitted(admitted) => named.kept.extend([admitted.grant]),
            E::SessionOpened(opened) => named.kept.extend(opened.config),
            E::FileUploaded(uploaded) => named.kept.extend([uploaded.digest]),
            E::ExecutionResumed(ExecutionResumed {
                response_data: Kept::Blob(digest),
                ..
            })
            | E::ResponseReceived(ResponseReceived {
                response_data: Kept::Blob(digest),
                ..
            }) => named.kept.extend([*digest]),
            // Events of agents, of their users, slots and settings name none.
            E::AgentCreated(_) | E::AgentArchived(_) | E::UserAssigned(_) | E::RoleChanged(_) => {}
            E::UserUnassigned(_) | E::AgentRenamed(_) | E::AgentConfigured(_) => {}
            E::PromptOverridden(_) | E::SettingsUpdated(_) | E::PreferencesUpdated(_) => {}
            E::PreferencesTransferred(_) | E::ExecutionSuspended(_) | E::ExecutionResumed(_) => {}
            E::ActionRequested(_) | E::ResponseReceived(_) | E::ActionWithdrawn(_) => {}
            E::SessionImported(_) | E::SlotTaken(_) | E::SlotCompleted(_) => {}
            E::SlotTerminated(_) => {}
            // Nor do the labels of sessions, their memory, and the outcomes of inputs and turns.
            E::SessionRenamed(_) | E::SessionPinned(_) | E::SessionAttributed(_) => {}
            E::SessionCleared(_) | E::SessionDeleted(_) | E::QueueConfigured(_) => {}
            E::InputCancelled(_) | E::InputsDropped(_) | E::InputDead(_) => {}
            E::InputRequeued(_) | E::NoteRemembered(_) | E::NoteForgotten(_) => {}
            E::MemoryDue(_) | E::MemoryRead(_) | E::UiSaved(_) | E::ItemRecorded(_) => {}
            E::TurnsImported(_) | E::TurnCommitted(_) => {}
            // Nor does the work of a run, except its steps and outcomes.
            E::StepFailed(_) | E::RunRecovered(_) | E::RunCut(_) | E::OperationContinued(_) => {}
            E::OperationStarted(_) | E::OperationAttempted(_) | E::ApprovalAnswered(_) => {}
            E::BoundaryDecided(_) | E::KeyValueWritten(_) | E::PluginEmitted(_) => {}
            // Nor do keys, definitions and the host as a whole.
            E::KeyIssued(_) | E::KeyRevoked(_) | E::ConnectorKeyBound(_) => {}
            E::ConnectorKeyUnbound(_) | E::DefinitionMade(_) | E::DefinitionRemoved(_) => {}
            E::HostRestored(_) | E::OperatorRead(_) | E::ConfigReloaded(_) | E::PurgeBegun(_) => {}
            E::Purged(_) | E::ConfigRefused(_) | E::ProviderTroubled(_) => {}
            // Nor do triggers and connectors: a file that came with a message is named by the input
            // and by its session.
            E::TriggerDefined(_) | E::TriggerRemoved(_) | E::TriggerPaused(_) => {}
            E::TriggerResumed(_) | E::TriggerEventAccepted(_) | E::TriggerEventsSkipped(_) => {}
            E::TriggerFired(_) | E::TriggerEventFailed(_) | E::TriggerPosted(_) => {}
            E::TriggerTroubled(_) | E::ConnectorReceived(_) | E::InboundMessagesSettled(_) => {}
            E::ConnectorTroubled(_) | E::PairingOffered(_) | E::PairingSettled(_) => {}
            E::OutboundMessageQueued(_)
            | E::OutboundMessageStarted(_)
            | E::OutboundMessageSettled(_) => {}
            E::OutboundMessageRequeued(_) => {}
        }
        named
    }

    fn accept(&mut self, accepted: &InputAccepted) {
        let drafts = accepted.message.iter();
        self.kept
            .extend(drafts.flat_map(|draft| blobs(&draft.parts)));
    }

    fn import(&mut self, turns: &[ImportedTurn]) {
        for it in turns {
            self.kept.insert(it.turn.session_state);
            self.shown.extend(
                it.messages
                    .iter()
                    .flatten()
                    .flat_map(|message| blobs(&message.parts)),
            );
        }
    }

    fn begin(&mut self, started: &RunStarted) {
        self.kept.insert(started.session_state);
        self.kept.extend(started.session_config);
        self.kept.extend(started.overrides);
        self.kept
            .extend(started.sections.map(|sections| sections.digest));
        self.kept.extend(started.resolved_config.all());
        if let Some(step) = &started.first_step {
            self.step(step);
        }
    }

    fn step(&mut self, stepped: &RunStepped) {
        self.kept.insert(stepped.basis.session_state);
        self.kept.extend(stepped.basis.documents.all());
        self.kept
            .extend(stepped.effects.iter().filter_map(|effect| match effect {
                Effect::SessionState { state } => Some(Digest::of(state.to_string().as_bytes())),
                _ => None,
            }));
        self.settle(&stepped.settled);
        self.settle(&stepped.stopped);
        self.show(&stepped.heard);
        self.show(&stepped.said);
    }

    fn settle(&mut self, settlements: &[Settlement]) {
        for settlement in settlements {
            self.kept.extend(settlement.blobs());
            self.kept.extend(
                settlement
                    .result
                    .iter()
                    .flat_map(|draft| blobs(&draft.parts)),
            );
        }
    }

    fn show(&mut self, messages: &[Message]) {
        self.shown
            .extend(messages.iter().flat_map(|message| blobs(&message.parts)));
    }
}

fn blobs(parts: &[Part]) -> impl Iterator<Item = Digest> {
    parts.iter().filter_map(|part| match part {
        Part::Blob { digest, .. } => Some(*digest),
        Part::Text { .. } | Part::Call { .. } | Part::Opaque { .. } => None,
    })
}
