//! Transcripts there and back, in both dialects, and what is refused.

mod foreign;
mod golden;
mod hostile;
mod property;
mod story;
mod tree;
