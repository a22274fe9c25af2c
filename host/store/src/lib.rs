//! The host's memory: an append-only store of events with everything that is derived from them, on
//! an embedded database.
//!
//! It stands apart so that nothing above it knows which database that is. A [`Commit`] goes in as a
//! whole or not at all, and is acknowledged only when it is durable; whatever else can be asked is
//! a projection of events, written in the same transaction and rebuildable. Never in here: business
//! rules, clocks that decide anything, HTTP, WebAssembly.
//!
//! ## Where things are
//!
//! - the one thread that writes, and its guarantees: `writer.rs`
//! - commits and their guards: `commit.rs`, `guard.rs`
//! - questions to the store: `store.rs`, `read.rs`
//! - tables and their migrations: `schema.rs`
//! - upkeep of the projections: `projections.rs`
//! - online rebuild of all projections (can go without a change elsewhere): `rebuild.rs`
//! - purging, and its repetition after a crash: `purge.rs`
//! - amounts that are spent on an account: `read/accounts.rs`
//! - turns of a tree that a user sees: `read/trees.rs`
//! - agents by path, and their presence: `read/paths.rs`
//! - backups and checks: `backup.rs`, `verify.rs`

mod backup;
mod commit;
mod copy;
mod ended;
mod event_row;
pub mod fault;
mod full_text;
mod guard;
mod health;
mod log;
mod open;
mod panics;
mod point_reads;
mod prepared;
mod probe;
mod projections;
mod purge;
mod query;
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
    Append, Clash, Commit, CommitError, Committed, Conflict, Expected, Key, Snapshot,
};
pub use fault::{CRASH_POINTS, point};
pub use guard::{
    AccountGuard, AgentGuard, ChatWith, Footprint, Guard, KeyGuard, QueueGuard, QueueSeen,
    Resource, RunGuard, SessionGuard, UserGuard,
};
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
pub use verify::{Verification, VerificationFault};

/// The state of a session that has none yet: the JSON text `null`. Its blob is always there.
pub use domain::transcript::EMPTY_STATE;
