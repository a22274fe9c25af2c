//! The HTTP API: routes, event streams, one form for all errors, and the server beneath them.
//!
//! It stands apart so that what clients see changes for reasons of its own: [`wire`] is the only
//! place where the host's vocabulary becomes public JSON. Never in here: SQL, wasmtime, rules.
//!
//! ## Where things are
//!
//! - routes, one file a subject: `routes.rs`
//! - public JSON of sessions, turns, agents, events: `wire/session.rs`, `wire/turn.rs`,
//!   `wire/view.rs`, `wire/event.rs`
//! - codes of errors: `codes.rs`
//! - scopes: `scopes.rs`
//! - frames of event streams: `wire/frame_name.rs`
//! - an event stream: one client, the shared reader, what is shown to whom, slow clients:
//!   `stream/feed.rs`, `stream/tail.rs`, `stream/scope.rs`, `stream/viewer.rs`, `stream/outbox.rs`
//! - the asker and their credential: `access.rs`, `credential.rs`
//! - streams that end with their credential: `standing.rs`
//! - tokens of other issuers: `identity.rs`
//! - limits of users and keys: `quota.rs`
//! - widgets in `/openapi.json`: `openapi/widgets.rs`
//! - the old system's API (can go without a change elsewhere): `routes/legacy.rs`, `wire/legacy.rs`

pub mod access;
mod caller;
mod clock;
mod codes;
mod credential;
mod cursor;
pub mod identity;
mod input;
mod openapi;
pub mod problem;
mod quota;
mod reading;
mod routes;
mod scopes;
pub mod server;
mod standing;
mod state;
mod stream;
pub mod wire;

#[cfg(test)]
mod tests;

pub use access::Access;
pub use clock::Clock;
pub use identity::Identity;
pub use routes::{checks, router};
pub use server::{Limits, Server, Stopper};
pub use state::Api;

/// The crash points of this crate, for a test that goes through all of them; see `store::point`.
pub const CRASH_POINTS: &[&str] = &["api.answered", "api.stream.pushed"];
