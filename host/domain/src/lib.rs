//! The vocabulary of the host and every rule it follows, as pure functions.
//!
//! Whether something may happen, what follows from it and what the state is afterwards is decided
//! here and nowhere else, so that each rule can be read and tested without a database, a clock, a
//! network or a WebAssembly engine. Never in here: IO, async, clocks, randomness, wasmtime, SQL,
//! HTTP.

pub mod account;
pub mod agent;
pub mod approval;
pub mod authority;
pub mod basis;
pub mod bucket;
pub mod budget;
pub mod chain;
pub mod clock;
pub mod compaction;
pub mod definition;
pub mod delegate;
pub mod digest;
pub mod dispatch;
pub mod egress;
pub mod event;
pub mod file;
pub mod glob;
pub mod grant;
pub mod id;
pub mod import;
pub mod json;
pub mod key;
pub mod limits;
pub mod message;
pub mod model;
pub mod operation;
pub mod path;
pub mod persona;
pub mod price;
pub mod queue;
pub mod ranges;
pub mod redact;
pub mod refusal;
pub mod residency;
pub mod routing;
pub mod run;
pub mod schema;
pub mod secret;
pub mod session_label;
pub mod shown;
pub mod spill;
pub mod step;
pub mod talk;
pub mod time;
pub mod tool;
pub mod transcript;
pub mod turn;
pub mod user;
pub mod widget;
mod wildcard;
