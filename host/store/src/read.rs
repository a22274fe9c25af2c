//! Reads of the store. Each sees the durable state at one point in time. Reads wait for the writer
//! only for a moment, while a full log starts over.

pub(crate) mod accounts;
pub(crate) mod agents;
mod blobs;
mod buckets;
mod clearance;
pub(crate) mod components;
mod connectors;
mod counts;
mod definitions;
mod door;
mod events;
mod files;
pub(crate) mod inbound_messages;
mod inputs;
pub(crate) mod kept;
mod keys;
mod messages;
mod notes;
mod outbound_messages;
mod pairings;
mod providers;
mod questions;
pub(crate) mod queue;
mod recall;
pub(crate) mod runs;
pub(crate) mod search;
mod sessions;
mod spawned;
pub(crate) mod tasks;
pub(crate) mod trees;
mod trigger_events;
mod triggers;
pub(crate) mod turns;
mod usage;

pub use accounts::Drawn;
pub use agents::{AgentFilter, AgentRow, LivingAgent};
pub use clearance::Clearance;
pub use connectors::{ConnectorRow, VisitorRow};
pub use counts::Counts;
pub use definitions::{DefinitionCounts, MadeDefinitionsSize};
pub use door::{Addressee, Door, RememberedRequest};
pub use events::EventFilter;
pub use files::FileRow;
pub use inbound_messages::{InboundMessageRow, IntakeRow, OpenChat, SaidBefore, SentBefore};
pub use inputs::{DeadInput, InputState};
pub use kept::{Kept, KeptBucket, KeptConnector, KeptDefinition};
pub use keys::KeyRow;
pub use notes::{NoteRow, ReadingChunkRow, ReadingRow};
pub use outbound_messages::{
    ChunkUnderId, OutboundMessageCounts, OutboundMessageFilter, OutboundMessageRow,
    OutboundMessageState, WaitingOutboundMessages,
};
pub use pairings::PairingRow;
pub use providers::ProviderTrouble;
pub use questions::OpenQuestion;
pub use queue::{HandedOver, QueueRow};
pub use recall::Hit;
pub use runs::RunRow;
pub use search::{Among, Found};
pub use sessions::{
    DueSession, EndedSession, HistoryFilter, PinnedFirst, SessionFilter, SessionRow, SessionStats,
    SessionStatus, UserSessionFilter,
};
pub use spawned::SpawnedSession;
pub use tasks::{TaskFilter, TaskRow};
pub(crate) use trees::messages as messages_of_turn;
pub use trees::{Meeting, Parting, SeenTurn, SessionLabel, TreeTurn, TurnBundle};
pub use trigger_events::{TriggerEventRow, TriggerEventState, TriggerRecord};
pub use triggers::{TriggerCounts, TriggerFilter, TriggerRow, TriggerTurn, TriggerUsage};
pub(crate) use turns::NODE_COLUMNS;
pub use usage::{UsageBy, UsageFilter, UsageRow};

use crate::sql::{self, Failure, Source};

/// Reason why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Too many reads wait. Try again shortly.
    #[error("too many reads are waiting")]
    Busy,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The named object does not exist, in a read that requires it.
    #[error("there is no {what}")]
    Missing {
        /// The thing that is missing.
        what: String,
    },
    /// Something is stored that this program does not understand: a newer version wrote it, it was
    /// damaged, or the host panicked over it.
    #[error("something that is stored does not read as what it should be")]
    Unreadable {
        /// The cause.
        #[source]
        source: Source,
    },
    /// The read took too long while the write-ahead log had reached its bound. It was ended so that
    /// the log could start over. Try again later.
    #[error("the read took long and was in the way of shortening the write-ahead log")]
    InTheWay,
    /// The database did not answer, and may later.
    #[error("the store is not available")]
    Unavailable {
        /// The cause.
        #[source]
        source: Source,
    },
}

/// The cause of a read's failure when the read panicked. The panic itself is in the log.
pub(crate) const PANICKED: &str = "the host panicked while it read this; its log has the reason";

impl From<sql::Error> for ReadError {
    fn from(error: sql::Error) -> Self {
        match (error.failure(), error) {
            (_, sql::Error::Unreadable { source, .. }) => Self::Unreadable { source },
            (Some(Failure::Corrupt), error) => Self::Unreadable {
                source: error.into(),
            },
            (Some(Failure::Interrupted), _) => Self::InTheWay,
            (_, error) => Self::Unavailable {
                source: error.into(),
            },
        }
    }
}
