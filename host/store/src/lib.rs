//! The host's memory: an append-only store of events with everything that is derived from them, on
//! an embedded database.
//!
//! It stands apart so that nothing above it knows which database that is. A [`Commit`] goes in as a
//! whole or not at all, and is acknowledged only when it is durable; whatever else can be asked is
//! a projection of events, written in the same transaction and rebuildable. Never in here: business
//! rules, clocks that decide anything, HTTP, WebAssembly.

mod backup;
mod commit;
mod copy;
mod ended;
mod event_row;
pub mod fault;
mod full_text;
mod health;
mod log;
mod open;
mod panics;
mod point_reads;
mod prepared;
mod probe;
mod projections;
mod purge;
mod read;
mod readers;
mod rebuild;
mod schema;
mod snapshot;
mod sql;
mod stats;
mod store;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests spawn tasks that they wait for, and hand variables to processes of their own"
)]
mod tests;
mod user_storage;
mod verify;
mod writer;

pub use backup::{BackupError, BackupMark, RestoreError, Restored, restore};
pub use commit::{
    Append, ChatWith, Clash, Commit, CommitError, Committed, Conflict, Expected, Guard, Key,
    QueueSeen, Snapshot,
};
pub use fault::{CRASH_POINTS, point};
pub use health::Health;
pub use log::LogState;
pub use open::{OpenError, Options};
pub use purge::{Piece, PurgePlan, Purging, Rewritten, Tally};
pub use read::{
    Addressee, AgentFilter, AgentRow, Among, Carried, ConnectorRow, DeadInput, Door, Drawn,
    DueSession, EventFilter, FileRow, Found, HandedOver, Hit, InputState, KeyRow, LivingAgent,
    Meeting, Parting, QueueRow, ReadError, RememberedRequest, RunRow, SeenTurn, SessionFilter,
    SessionLabel, SessionRow, SessionStatus, SpawnedSession, TreeTurn, UserSession,
};
pub use readers::in_background;
pub use rebuild::{RebuildError, RebuildStage, RebuildState, Rebuilt, Replaced};
pub use sql::Source;
pub use stats::Stats;
pub use store::Store;
pub use verify::{Fault, Verification};

/// The state of a session that has none yet: the JSON text `null`. Its blob is always there.
pub use domain::transcript::EMPTY_STATE;
