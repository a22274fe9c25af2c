//! Events: all stored facts, and the agents and runs that are folds of them.
//!
//! ## Where things are
//!
//! - kinds of events: `event.rs`; payloads, one file a subject, in `event/`
//! - an event with what is stored beside it: `event/record.rs`
//! - events of older versions, and the oldest program that may read a store: `event/upcast.rs`,
//!   `event/reader.rs`; stored payloads are in `tests/golden/`
//! - the agent: `agent.rs`, and in `agent/` its transitions (`lifecycle.rs`, `assignment.rs`,
//!   `configure.rs`, `describe.rs`, `start_session.rs`, `suspend.rs`, `respond.rs`,
//!   `end_session.rs`, `import_session.rs`), who sees which event (`visibility.rs`), of whom it
//!   remembers what it learns (`memory.rs`), what a run means to its structured session
//!   (`milestones.rs`)
//! - the run: `run.rs`, and in `run/` what wakes an agent (`intake.rs`), what its decision leads to
//!   (`check.rs`, `decide.rs`, `effects.rs`), attempts at models (`attempt.rs`), outcomes
//!   (`settle.rs`), the end (`end.rs`), open operations after a restart (`recover.rs`), what is
//!   spent (`spending.rs`), the steps of a compaction (`compact.rs`)
//! - sessions as labels on a thread: `session_label.rs`
//! - telemetry, which is told of events and not stored: `telemetry.rs`, `telemetry/`
//! - import of the old system's sessions (can go): `import.rs`,
//!   `import/`

pub mod agent;
pub mod event;
pub mod import;
pub mod run;
pub mod session_label;
pub mod telemetry;
