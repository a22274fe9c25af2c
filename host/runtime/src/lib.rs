//! The runtime of WebAssembly components: load, grant, instantiate, limit and call them, as pure
//! functions of their input.
//!
//! This crate knows wasmtime so that no other has to. A component is loaded once, its code cached
//! on disk; each call gets a fresh instance with exactly the means that the caller names, stops at
//! its limits, and ends in an [`Outcome`] that says what happened and what it used. Guests' effects
//! are collected here and performed elsewhere: the runtime never calls upward, routes nothing and
//! queues nothing but calls.
//!
//! ## Where things are
//!
//! - imports of guests, one file an interface: `host.rs`
//! - files of a granted folder: walk, change, account: `host/filesystem.rs`,
//!   `host/filesystem/walk.rs`, `host/filesystem/change.rs`, `host/filesystem/account.rs`
//! - a call's own view of its buckets: `host/keyvalue.rs`, `host/keyvalue/write_overlay.rs`
//! - variables that a tool sees: `host/environment.rs`
//! - compiling in another process: `compile.rs`
//! - calls at a time: `slots.rs`
//! - conversion between the host's types and WIT: `convert.rs`

mod artifacts;
mod bindings;
mod cache;
mod call;
mod call_audit;
mod call_semaphore;
mod compile;
mod component;
mod config;
mod convert;
mod folders;
mod host;
mod load;
mod log;
mod meter;
mod outcome;
mod redacted;
mod run;
mod runtime;
mod selftest;
mod slots;
mod stats;
mod tool;
mod view;

pub use crate::cache::{CRASH_POINTS, CacheError};
pub use crate::call_audit::CallAudit;
pub use crate::compile::{
    CODE_BYTES_MAX, COMPILE_MS_MAX, COMPILE_REFUSED, CompileError, CompileLimits, Compiler, compile,
};
pub use crate::component::{AgentDescription, Component, Described};
pub use crate::config::{
    Config, HANDLES_MAX, HOSTCALL_BYTES_MAX, HTTP_FIELDS_BYTES_MAX, INSTANCES_PER_COMPONENT_MAX,
    MEMORIES_PER_COMPONENT_MAX, POOL_MEMORY_BYTES_MAX, RANDOM_BYTES_MAX, RESOURCES_MAX,
};
pub use crate::folders::{FolderError, FolderHandle, route_to};
pub use crate::host::link::KNOWN as IMPORTS;
pub use crate::load::LoadError;
pub use crate::log::{Level, LogLine};
pub use crate::outcome::{
    Called, Decided, NotAdmitted, Outcome, Ran, Stepped, TurnedAway, Written,
};
pub use crate::runtime::{Runtime, StartError};
pub use crate::selftest::SelfTestFailed;
pub use crate::slots::Admission;
pub use crate::stats::Stats;
pub use crate::tool::ToolCall;
pub use crate::view::{
    BucketError, Buckets, EmptyBuckets, Hold, Notes, View, ViewError, ViewStatic,
};
