//! Transcripts there and back, in both dialects, and what is refused.

mod foreign;
mod hostile;
mod story;
mod tree;
