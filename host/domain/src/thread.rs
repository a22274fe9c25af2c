//! Threads: messages, the tree of their turns, and the part that a model sees.
//!
//! ## Where things are
//!
//! - messages and their parts: `message.rs`
//! - labels that clients put on messages: `message_labels.rs`
//! - turns, and their places in the tree: `turn.rs`
//! - the prompt of a model's call, and the reply: `model.rs`
//! - the settings with which a model writes it: `sampling.rs`
//! - the schema that a sender wants it to fit: `reply_schema.rs`
//! - the mark of a reply that is not whole: `cut_off.rs`
//! - whose words a message is, as clients and models see it: `speaker.rs`
//! - content that is too long and kept as a blob: `spill.rs`
//! - compaction of a thread that fills its model's window: `compaction.rs`;
//!   `events/run/compact.rs` has the steps of such a
//!   run
//! - the recorded cut of a run's prompts, when tool results outgrow the window: `prompt_cut.rs`
//! - what a model thought, as far as its provider shows it: `thinking.rs`
//! - threads as JSON lines, out and in: `transcript.rs`, which lists its files

pub mod compaction;
pub mod cut_off;
pub mod message;
pub mod message_labels;
pub mod model;
pub mod prompt_cut;
pub mod reply_schema;
pub mod sampling;
pub mod speaker;
pub mod spill;
pub mod thinking;
pub mod transcript;
pub mod turn;
