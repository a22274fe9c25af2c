//! The HTTP API: routes, event streams, one form for all errors, and the server beneath them.
//!
//! It stands apart so that what clients see changes for reasons of its own: [`wire`] is the only
//! place where the host's vocabulary becomes public JSON, but for the old system's format in
//! `legacy`. Never in here: SQL, wasmtime, rules.
//!
//! ## Where things are
//!
//! Requests and responses:
//!
//! - `routes.rs`, `routes/`: the list of routes, and their handlers, one file a subject
//! - `wire.rs`, `wire/`: public JSON. Sessions, agents and dead letters are in `wire/view.rs`
//!   (`SessionView`, its list form `SessionRowView`, `AgentView`), structured sessions in
//!   `wire/session.rs` and `wire/active_session.rs`, turns in `wire/turn.rs`, messages in
//!   `wire/message.rs`, operations in `wire/operation.rs`, events in `wire/event.rs` and
//!   `wire/event/`, frames of event streams in `wire/frame.rs` and `wire/session_frame.rs`
//! - `input.rs`, `input/`: bodies, queries, paths and idempotency keys; `cursor.rs`: tokens of
//!   pages
//! - `respond.rs`: the response to a request that made something
//! - `problem.rs`: the form of all errors; `codes.rs`: their codes, in groups
//! - `openapi.rs`, `openapi/`: what `/openapi.json` says beyond the routes; widgets are in
//!   `openapi/widgets.rs`
//! - `stream.rs`, `stream/`: event streams. One client is in `stream/feed.rs`, the reader that all
//!   share in `stream/tail.rs`, what is shown in `stream/scope.rs`, to whom in the broker's feeds,
//!   slow clients in `stream/outbox.rs`, visitors of chats in `stream/visitor.rs`
//! - `legacy.rs`, `legacy/`: the API of the old system, which is the session server that this host
//!   replaces (docs/old-sessions.md), and the import of its sessions; nothing else uses it
//!
//! Callers and their limits:
//!
//! - `access.rs`: names of the host and forms of credentials; `credential.rs`: from a credential to
//!   its caller; `caller.rs`: the caller
//! - `scopes.rs`: the scopes that routes declare
//! - `identity.rs`, `identity/`: tokens of other issuers
//! - `credential_status.rs`: streams that end with their credential
//! - `reading.rs`: readings by the operator
//! - `quota.rs`: limits of users and keys; `visits.rs`: limits of callers without a credential
//! - `chat.rs`, `chat/`: chats of web pages, and who their visitors are
//!
//! Beneath them:
//!
//! - `server.rs`, `server/`: connections and their limits (`server/limits.rs`)
//! - `reloads.rs`: requests to read the configuration again
//! - `state.rs`: what all routes share; `clock.rs`: the clock
//! - `tests.rs`, `tests/`: the routes of a whole host under test

mod access;
mod caller;
mod chat;
mod clock;
mod codes;
mod credential;
mod credential_status;
mod cursor;
pub mod identity;
mod input;
mod legacy;
mod openapi;
mod problem;
mod quota;
mod reading;
mod reloads;
mod respond;
mod routes;
mod routing;
mod scopes;
pub mod server;
mod state;
mod stream;
mod visits;
pub mod wire;

#[cfg(test)]
mod tests;

pub use access::Access;
pub use clock::Clock;
pub use identity::Identity;
pub use reloads::{
    PendingChange, PendingConfig, PendingFinding, ReloadRefused, ReloadReport, ReloadRequest,
};
pub use routes::{checks, router};
pub use server::{Limits, Server, Stopper};
pub use state::Api;

/// The crash points of this crate, for a test that goes through all of them; see `store::point`.
pub const CRASH_POINTS: &[&str] = &["api.answered", "api.stream.pushed"];
