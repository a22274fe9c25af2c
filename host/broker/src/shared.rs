//! The shared room of commands and drivers. Neither of them imports the other.
//!
//! ## Where things are
//!
//! - the broker and its handles, one for each subject: `shared/broker.rs`
//! - errors, guards of several commits: `shared/error.rs`, `shared/guards.rs`
//! - the agent that a request names, and its idempotency key: `shared/target.rs`,
//!   `shared/request.rs`
//! - runs, folded from their events, and delegations that wait for room: `shared/runs.rs`,
//!   `shared/blocked.rs`
//! - messages to chats: `shared/outbound_messages.rs`

pub(crate) mod blocked;
mod broker;
pub(crate) mod error;
pub(crate) mod guards;
pub(crate) mod outbound_messages;
mod request;
pub(crate) mod runs;
mod target;

pub use broker::{
    Access, Agents, Broker, Configuration, Connectors, DeadLetters, Definitions, ExternalAgents,
    Feeds, Files, Handle, Imports, Keys, Memory, Messages, Models, Paths, Quarantines, Queue,
    Requests, Runs, Sessions, Switches, Tasks, Transcripts, subject,
};
pub(crate) use error::DriverError;
pub use error::Error;
pub(crate) use request::{AnswerAt, Request};
pub use target::Target;
pub(crate) use target::Whom;
