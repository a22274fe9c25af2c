//! The host functions, one interface per file, and the linker that holds them all.
//!
//! One linker serves agents and tools alike: what a call can reach is decided by its state, never
//! by what is linked, so a component that imports what it was not granted loads, and is refused
//! when it asks.

pub(crate) mod audit_recorder;
pub(crate) mod clock_and_randomness;
mod environment;
pub(crate) mod filesystem;
pub(crate) mod http;
pub(crate) mod keyvalue;
pub(crate) mod link;
pub(crate) mod logging;
pub(crate) mod progress;
pub(crate) mod secrets;
pub(crate) mod sockets;
pub(crate) mod turn;
