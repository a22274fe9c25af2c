//! The runtime of WebAssembly components: load, grant, instantiate, limit and call them. A step of
//! an agent and a run of a trigger are pure functions of their input; a call of a tool or a
//! connector may use what it was granted.
//!
//! This crate knows wasmtime so that no other has to. A component is loaded once, its code cached
//! on disk; each call gets a fresh instance with exactly the means that the caller names, stops at
//! its limits, and ends in an [`Outcome`] that says what happened and what it used. An agent's
//! effects are returned to the caller, not performed here. The runtime never calls upward, routes
//! nothing and queues nothing but calls.
//!
//! ## Where things are
//!
//! - the runtime, its counters, and the check before it serves: `runtime.rs`, `selftest.rs`
//! - loading: `runtime/loading.rs`, `load.rs`, `load/`, `component.rs`, `manifest.rs`,
//!   `artifacts.rs`, `cache.rs`; compiling in another process: `compile.rs`
//! - calling: `run.rs`, `call.rs`, and the ends of a call: `outcome.rs`, `redacted.rs`; agents and
//!   tools: `runtime/calling.rs`, `view.rs`; triggers and connectors: `runtime/connecting.rs`
//! - what components export, in every version of the interface: `exports.rs`, `exports/`
//! - calls at a time: `guest_semaphore.rs`
//! - bounds and meters: `config.rs`, `meter.rs`
//! - what is recorded of a call: `call_audit.rs`, `host/audit_recorder.rs`, `log.rs`
//! - imports of guests: `host.rs`, one file an interface in `host/` (`clock_and_randomness.rs`,
//!   `environment.rs`, `filesystem.rs`, `http.rs`, `keyvalue.rs` with a call's own view of its
//!   buckets, `logging.rs`, `progress.rs`, `sockets.rs`, `turn.rs`), and what they share
//!   (`link.rs`, `secrets.rs`)
//! - folders that are granted: `folders.rs`, those of single users, agents and sessions:
//!   `folders/owned.rs`; and in `host/filesystem/` the walk, opening, changing, streams, accounts
//!   and failures (`walk.rs`, `open.rs`, `perform.rs`, `change.rs`, `stream.rs`, `account.rs`,
//!   `folders.rs`, `failed.rs`); the file systems that they are on: `file_system.rs`
//! - calls and their results, and the conversion between the host's types and WIT: `bindings.rs`,
//!   `convert.rs`, and in `convert/` one file a subject (`connector.rs`, `describe.rs`, `step.rs`,
//!   `tool.rs`, `trigger.rs`)

mod artifacts;
mod bindings;
mod cache;
mod call;
mod call_audit;
mod compile;
mod component;
mod config;
mod convert;
mod exports;
mod file_system;
mod folders;
mod guest_semaphore;
mod host;
mod load;
mod log;
mod manifest;
mod meter;
mod outcome;
mod redacted;
mod run;
mod runtime;
mod selftest;
mod view;

pub use crate::cache::{CRASH_POINTS, CacheError};
pub use crate::call_audit::CallAudit;
pub use crate::compile::{COMPILE_REFUSED, CompileError, CompileLimits, Compiler, compile};
pub use crate::component::{
    AgentDescription, Component, ConnectorDescription, Described, TriggerDescription,
};
pub use crate::config::Config;
pub use crate::convert::connector::{Connected, ConnectorCall, VerifiedCall};
pub use crate::convert::tool::ToolCall;
pub use crate::convert::trigger::{FireCall, Fired, FiredMessage, TriggerError, TriggerRun};
pub use crate::file_system::FileSystemKind;
pub use crate::folders::{FolderError, folder_chain};
pub use crate::guest_semaphore::Admission;
pub use crate::host::link::KNOWN as IMPORTS;
pub use crate::load::LoadError;
pub use crate::log::{Level, LogLine};
pub use crate::manifest::{StampError, stamped};
pub use crate::outcome::{
    Called, Decided, NotAdmitted, Outcome, Ran, Stepped, TurnedAway, Written,
};
pub use crate::runtime::Stats;
pub use crate::runtime::{Runtime, StartError};
pub use crate::selftest::SelfTestFailed;
pub use crate::view::{
    BucketError, Buckets, EmptyBuckets, Hold, Notes, Unheard, View, ViewError, ViewStatic,
};
