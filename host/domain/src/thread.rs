//! Threads: messages, the tree of turns that holds them, and what a model is shown of it.
//!
//! - A message and its parts: [`message`].
//! - A turn, and its place in the tree: [`turn`].
//! - The prompt of a model's call, and the reply: [`model`].
//! - What is kept as a blob because it is too long: [`spill`].
//! - When and where a thread that fills its model's window is cut: [`compaction`];
//!   `events/run/compact.rs` has the steps of such a run.
//! - How threads leave the host as JSONL and come back: [`transcript`]; one dialect a file in
//!   `transcript/dialect/`.
//!
//! ## Where things are
//!
//! - messages and turns: `thread/message.rs`, `thread/turn.rs`
//! - threads as JSONL, out and in, by dialect: `thread/transcript.rs`,
//!   `thread/transcript/dialect.rs`
//! - compaction of a thread that fills its model's window: `thread/compaction.rs`
//! - content that is too long and kept as a blob: `thread/spill.rs`

pub mod compaction;
pub mod message;
pub mod model;
pub mod spill;
pub mod transcript;
pub mod turn;
