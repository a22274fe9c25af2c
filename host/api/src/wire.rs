//! The public JSON of everything that the API shows: events, messages, operations, agents,
//! sessions.
//!
//! Values that only the host needs (salts, a step's basis, memos, tools' states, hashes, providers'
//! opaque content) stay inside. Field names are snake_case, times ISO 8601 in UTC, digests
//! `sha256:` and hexadecimal digits.

mod active_session;
mod audit;
mod component;
mod definition;
mod event;
mod file;
mod frame;
mod key;
mod message;
mod note;
mod operation;
mod outbound_message;
mod path;
mod quarantine;
mod queue;
mod session;
mod session_event;
mod session_frame;
mod spawned;
mod task;
mod telemetry;
#[cfg(test)]
mod tests;
mod trigger;
mod turn;
mod values;
mod view;

pub(crate) use audit::{AuditLine, AuditSubject, audit};
pub use component::{ComponentView, component};
pub(crate) use definition::{
    AgentSessionsView, DefinitionEntryView, LeftOutDefinitionView, agent_sessions,
    definition_entry, left_out_definition,
};
pub use definition::{DefinitionView, Lists, definition};
pub(crate) use event::{Event, event};
pub(crate) use file::{FileView, file};
pub(crate) use frame::{CodedSchema, LogFrame, log_frame, written};
pub(crate) use key::{KeyView, key};
pub(crate) use message::{MessageView, message};
pub(crate) use note::{NoteView, note};
pub(crate) use outbound_message::{
    ChoiceView, ConnectorStateView, OutboundMessageView, PairingView, connector_state,
    outbound_message, pairing,
};
pub(crate) use path::{ConnectorView, PathView, connector, path};
pub(crate) use quarantine::{QuarantinedView, quarantined};
pub(crate) use queue::{
    InputView, QueueView, WaitingInputsView, WaitsFor, input, queue, waiting_inputs, waits_for,
};
pub(crate) use session::{
    ControlMode, ItemView, PastSessionView, PendingActionView, SessionPhase, UiStateView,
    control_mode, items, past_session, pending_action, pending_actions, phase, ui_state,
};
pub(crate) use session_event::{ephemeral_frame, message_accepted, session_frames};
pub(crate) use session_frame::{Repeatable, SessionFrame};
pub(crate) use spawned::{Spawned, spawned};
pub(crate) use task::{TaskSumView, TaskView, task, task_sum};
pub(crate) use telemetry::{LAG, TelemetryLag, telemetry_event, telemetry_schemas};
pub(crate) use trigger::{TriggerRunView, TriggerView, trigger, trigger_run};
pub(crate) use turn::{
    FoundView, PartingView, TreeTurnView, TurnView, found, parting, run_of, tree_turn, turn,
};
pub use values::ContentDigest;
pub(crate) use values::Time;
pub(crate) use view::{
    AgentView, DeadLetterDetail, DeadLetterView, SessionRowView, SessionView, agent, dead_letter,
    dead_letter_detail, session, session_row,
};
