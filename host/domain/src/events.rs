//! Events: everything that is stored, and the agents and runs that are folds of it.
//!
//! - The kinds of events, and the payload of each: [`event`], one file a subject in `event/`.
//! - How events of older versions are read: `event/upcast.rs`; stored payloads are in
//!   `tests/golden/`.
//! - The oldest program that may read a store: `event/reader.rs`.
//! - What may happen to an agent: [`agent`], one transition a file.
//! - Who sees which event: `agent/visibility.rs`.
//! - Of whom an agent remembers what it learns, and what a successor takes over: `agent/memory.rs`.
//! - What a run means to its structured session: `agent/milestones.rs`.
//! - What happens next in a turn: [`run`]: `intake` (what wakes an agent), `decide` (what its
//!   decision leads to), `settle`, `end`, `recover`.
//! - Which turns rest on content from outside: `run/taint.rs`.
//! - What a run has spent of its limits: `run/spending.rs`.
//! - What may be changed about a session as a label on a thread: [`session_label`].
//! - What the old system's sessions become: [`import`] and `import/`.
//!
//! ## Where things are
//!
//! - kinds of events and their payloads: `events/event.rs`
//! - events of older versions: `events/event/upcast.rs`
//! - the run: what wakes an agent, what a decision leads to, how operations settle, its end,
//!   recovery: `events/run/intake.rs`, `events/run/decide.rs`, `events/run/settle.rs`,
//!   `events/run/end.rs`, `events/run/recover.rs`
//! - content from outside that a run has heard: `events/run/taint.rs`
//! - the agent, one transition a file: `events/agent.rs`
//! - events that a user sees: `events/agent/visibility.rs`
//! - memory of an agent, and what a successor takes over: `events/agent/memory.rs`
//! - events of a structured session that follow from its run: `events/agent/milestones.rs`
//! - sessions as labels: `events/session_label.rs`
//! - import of the old system's sessions (can go without a change elsewhere): `events/import.rs`

pub mod agent;
pub mod event;
pub mod import;
pub mod run;
pub mod session_label;
