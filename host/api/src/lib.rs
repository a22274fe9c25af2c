//! The HTTP API: routes, event streams, one form for all errors, and the server beneath them.
//!
//! It stands apart so that what clients see changes for reasons of its own: [`wire`] is the only
//! place where the host's vocabulary becomes public JSON. Never in here: SQL, wasmtime, rules.

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
