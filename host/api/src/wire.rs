//! The public JSON of everything that the API shows: events, messages, operations, agents,
//! sessions.
//!
//! Values that only the host needs (salts, a step's basis, memos, tools' states, hashes, providers'
//! opaque content) stay inside. Field names are snake_case, times ISO 8601 in UTC, digests `sha256:`
//! and hexadecimal digits.

mod active_session;
mod agent_event;
mod audit;
mod component;
mod definition;
mod event;
mod file;
mod frame;
mod frame_name;
mod key;
mod label_event;
mod legacy;
mod message;
mod operation;
mod path;
mod quarantine;
mod queue;
mod run_event;
mod session;
mod session_event;
mod spawned;
#[cfg(test)]
mod tests;
mod turn;
mod view;

pub use active_session::{ActiveSessionView, ExecutionPlaceView};
pub use audit::{AuditLine, audit};
pub use component::{ComponentView, component};
pub use definition::{DefinitionView, Lists, definition};
pub use event::{Event, event};
pub use file::{FileView, file};
pub use frame::frame;
pub(crate) use frame_name::FrameSchema;
pub use frame_name::{EphemeralName, FrameName};
pub use key::{KeyView, key};
pub use legacy::{
    LegacySession, LegacyState, LegacySummary, legacy_session, legacy_state, legacy_summary,
};
pub use message::{CallView, MessageView, PartView, message};
pub use operation::{ClientActionView, client_action, operation, settlements};
pub use path::{ConnectorView, PathView, connector, path};
pub use quarantine::{QuarantinedView, quarantined};
pub use queue::{
    InputView, QueueView, WaitingInputView, WaitingInputsView, input, queue, waiting_inputs,
    waits_for,
};
pub use session::{
    ExecutionStateView, ItemView, MetricsView, PastSessionView, PendingActionView, UiStateView,
    execution_state, item, metrics, past_session, pending_action, pending_actions, remembered,
    ui_state,
};
pub use session_event::{SessionEvent, session_events, session_frame};
pub use spawned::{Spawned, spawned};
pub use turn::{
    FoundView, PartingView, SaidView, SessionLabelView, ToldTurnView, TreeTurnView, TurnView,
    found, parting, tree_turn, turn,
};
pub use view::{
    AgentView, DeadLetterDetail, DeadLetterView, SessionRowView, SessionView, agent, dead_letter,
    dead_letter_detail, session, session_row,
};
