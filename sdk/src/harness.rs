//! Tests of plugins with plain `cargo test`: no host, no WebAssembly, no model.
//!
//! [`Conversation`] runs an agent against scripted replies of a model and tools given as closures
//! or as real [`Tools`](crate::Tools). [`Bench`] calls the tools of a tool component. [`Scene`] is
//! a turn for testing a single step. [`TriggerRuns`] fires a trigger, and [`Exchange`] calls a
//! connector. All of them hold plugins to the host's rules and panic, naming the rule, when one is
//! broken.
//!
//! A test grants the outside world that tools reach: [`grant_bucket`], [`grant_folder`] and
//! [`serve_http`].

mod bench;
mod buckets;
mod conversation;
mod exchange;
mod folders;
mod http;
mod performer;
mod rules;
mod scene;
mod trigger_runs;

pub use self::bench::Bench;
pub(crate) use self::buckets::Opened;
pub use self::buckets::grant_bucket;
pub use self::conversation::{Conversation, ConversationStatus};
pub use self::exchange::Exchange;
pub(crate) use self::folders::granted_folder;
pub use self::folders::{GrantedFolder, grant_folder};
pub(crate) use self::http::answer;
pub use self::http::{HttpServer, serve_http};
pub use self::performer::Reply;
pub use self::scene::Scene;
pub use self::trigger_runs::TriggerRuns;

use crate::log::Level;
use std::cell::RefCell;

thread_local! {
    static LOGGED: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
    static NOTES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn keep_logged(level: Level, message: &str) {
    LOGGED.with_borrow_mut(|logged| logged.push((level, message.to_owned())));
}

pub(crate) fn keep_note(message: &str) {
    NOTES.with_borrow_mut(|notes| notes.push(message.to_owned()));
}

/// Takes the messages that were written to the log in this test since the last call.
#[must_use]
pub fn logged() -> Vec<(Level, String)> {
    LOGGED.take()
}

/// Takes the notes that tools made with [`CallContext::note`](crate::CallContext::note) in this
/// test since the last call.
#[must_use]
pub fn notes() -> Vec<String> {
    NOTES.take()
}

#[cfg(test)]
mod tests;
