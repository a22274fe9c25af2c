//! Tests of triggers and of pairing codes over a real broker and a store in a temporary folder,
//! with a clock that the test sets. No component is loaded: what a component does with a trigger
//! event is tested with the whole host.

mod commands;
mod files;
mod heard;
mod host;
mod pairings;
mod webhooks;
