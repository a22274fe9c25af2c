//! The gateway against real servers on this machine that behave as badly as they can.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod config;
mod corpus;
mod faults;
mod happy;
mod listing;
mod programs;
mod server;
mod setting;
