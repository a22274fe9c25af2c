//! The house rules that a compiler does not check, as pure functions from texts to findings.
//!
//! Each rule takes what it looks at as an argument and returns sentences that say where and what,
//! so every rule is tested on a text that breaks it. `tests/tidy.rs` runs them over this
//! repository.

pub mod docs;
pub mod frozen;
pub mod layers;
pub mod names;
pub mod requirements;
pub mod source;
pub mod tree;
