//! The host's memory: an append-only store of events with everything that is derived from them, on
//! an embedded database.
//!
//! It is a crate of its own so that no crate above it depends on the kind of database. A [`Commit`]
//! is stored as a whole or not at all, and is acknowledged only when it is durable. All other
//! stored data are projections of events, written in the same transaction and rebuildable. Never in
//! here: business rules, clocks that decide anything, HTTP, WebAssembly.
//!
//! ## Where things are
//!
//! Each file with the folder of its name, from the bottom up.
//!
//! - `sqlite.rs`: the database behind all statements; only this file names it
//! - `sql.rs`, `query.rs`: statements, rows by the names of their columns, and questions as data
//! - `fault.rs`, `panics.rs`: faults that tests inject, and panics of one work item
//! - `schema.rs`: tables, and their migrations
//! - `event_row.rs`, `streams.rs`, `snapshot.rs`, `meta.rs`: events, their streams,
//!   snapshots and notes of the store as rows
//! - `projections.rs`: tables derived from events, and folding all events again
//! - `full_text.rs`: the index for searches
//! - `user_storage.rs`: bytes stored by users and under their API keys
//! - `guard.rs`: conditions of commits
//! - `api_key.rs`: the API key under which a task works
//! - `commit.rs`: commits, as requested and ready to be written
//! - `open.rs`: the data directory, settings of connections, and checks before the first commit
//! - `log.rs`, `health.rs`, `stats.rs`: state of the write-ahead log and of the writer, counters
//! - `scratch.rs`, `copy.rs`: temporary databases, and copies of the store's
//! - `writer.rs`: the one thread that writes, and its guarantees
//! - `readers.rs`: threads that read, and short reads without them
//! - `store.rs`: the open store, with commits and reads
//! - `read.rs`: reads, one file for each subject
//! - `at_rest.rs`: reads of a store that no process has open
//! - `inspections.rs`: the note of the sessions that a start is about to read
//! - `probe.rs`: test reads for the health of the host
//! - `edge_notes.rs`: notes of the edge in addition to the events
//! - `purge.rs`: purging, and its repetition after a crash
//! - `verify.rs`, `backup.rs`: checks of everything, backups
//! - `rebuild.rs`: online rebuild of all projections; can be deleted without loss to the rest
//! - `tests.rs`: tests of more than one file

mod api_key;
mod at_rest;
mod backup;
mod commit;
mod copy;
mod edge_notes;
mod event_row;
pub mod fault;
mod full_text;
mod guard;
mod health;
mod inspections;
mod log;
mod meta;
mod open;
mod panics;
mod payload;
mod probe;
mod projections;
mod purge;
mod query;
mod read;
mod readers;
mod rebuild;
mod schema;
mod scratch;
mod snapshot;
mod sql;
mod sqlite;
mod stats;
mod store;
mod streams;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests spawn tasks that they wait for, and hand variables to processes of their own"
)]
mod tests;
mod texts;
mod user_storage;
mod verify;
mod writer;

pub use api_key::{api_key_here, under_api_key};
pub use at_rest::{admissions_at_rest, kept_at_rest};
pub use backup::{BackupError, BackupMark, RestoreError, Restored, restore};
pub use commit::{
    Append, Clash, Commit, CommitError, Committed, Conflict, Expected, Key, Snapshot,
};
pub use fault::{CRASH_POINTS, perform, point};
pub use guard::{
    AccountGuard, AgentGuard, ChatWith, ConnectorGuard, Footprint, Guard, KeyGuard, QueueGuard,
    QueueSeen, Resource, RunGuard, SessionGuard, TriggerGuard, UserGuard,
};
pub use health::Health;
pub use log::LogState;
pub use open::{OpenError, Options};
pub use purge::{PurgeItem, PurgePlan, Purging, Rewritten, Tally};
pub use read::{
    Addressee, AgentFilter, AgentRow, Among, ChunkUnderId, Clearance, ConnectorRow, Counts,
    DeadInput, DefinitionCounts, Door, Drawn, DueSession, EndedSession, EventFilter, FileRow,
    Found, HandedOver, HistoryFilter, Hit, InboundMessageRow, InputState, IntakeRow, Kept,
    KeptBucket, KeptConnector, KeptDefinition, KeyRow, LivingAgent, MadeDefinitionsSize, Meeting,
    NoteRow, OpenChat, OpenQuestion, OutboundMessageCounts, OutboundMessageFilter,
    OutboundMessageRow, OutboundMessageState, PairingRow, Parting, PinnedFirst, ProviderTrouble,
    QueueRow, ReadError, ReadingChunkRow, ReadingRow, RememberedRequest, RunRow, SaidBefore,
    SeenTurn, SentBefore, SessionFilter, SessionLabel, SessionRow, SessionStats, SessionStatus,
    SpawnedSession, TaskFilter, TaskRow, TreeTurn, TriggerCounts, TriggerEventRow,
    TriggerEventState, TriggerFilter, TriggerRecord, TriggerRow, TriggerTurn, TriggerUsage,
    TurnBundle, UsageBy, UsageFilter, UsageRow, UserSessionFilter, VisitorRow,
    WaitingOutboundMessages,
};
pub use readers::in_background;
pub use rebuild::{RebuildError, RebuildStage, RebuildState, Rebuilt, Replaced};
pub use sql::Source;
pub use stats::Stats;
pub use store::{Maintenance, Store};
pub use verify::{Verification, VerificationFault};

/// The state of a session that has none yet: the JSON text `null`. Its blob is always there.
pub use domain::transcript::EMPTY_STATE;
