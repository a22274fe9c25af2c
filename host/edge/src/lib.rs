//! The edge: further ways for messages into the host besides the API, and out of it besides event
//! streams.
//!
//! A trigger turns trigger events (a time, a webhook call, changed files, an event on the host)
//! into messages for agents. A connector translates between a chat service and the host. Both are
//! components; the host owns schedules, state, retries, cursors, and the record of inbound and
//! outbound messages. Each inbound message becomes an input of a session through
//! [`Messages::post_inbound`](broker::Messages::post_inbound). It is durable before it is
//! acknowledged to the service, and has an idempotency key derived from the sender's own id of it,
//! so that a message sent twice is one input. Rules are in `domain::trigger` and
//! `domain::connector`; the order of the work is here. Never in here: wasmtime, SQL, HTTP routes.
//!
//! ## Where things are
//!
//! - start, reload and stop: `edge.rs`; what the operator configured: `settings.rs`
//! - what all of it shares, and its tasks: `core.rs`
//! - the worker on durable items, of whatever kind: `worker.rs`
//! - events and ids: `journal.rs`
//! - commands under idempotency keys: `once.rs`; their refusals: `refusals.rs`
//! - triggers, from the trigger event to its messages: `triggers.rs` and `triggers/`
//! - connectors, in and out: `connectors.rs` and `connectors/`

mod connectors;
mod core;
mod edge;
mod journal;
mod once;
mod refusals;
mod settings;
#[cfg(test)]
mod tests;
mod triggers;
mod worker;

pub use connectors::*;
pub use edge::{Edge, EdgeParts};
pub use settings::EdgeSettings;
pub use triggers::*;

/// The crash points of this crate, of triggers and of connectors, for a test that goes through all
/// of them: see `store::point`.
pub const CRASH_POINTS: [&[&str]; 2] = [triggers::CRASH_POINTS, connectors::CRASH_POINTS];
