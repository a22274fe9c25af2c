//! The house rules that a compiler does not check, as pure functions from texts to findings.
//!
//! Each rule takes what it looks at as an argument and returns sentences that say where and what,
//! so every rule is tested on a text that breaks it. `tests/tidy.rs` runs them over this
//! repository.

pub mod banned;
pub mod bindings;
pub mod budgets;
pub mod circles;
pub mod docs;
pub mod enclosed;
pub mod folders;
pub mod frozen;
pub mod glossary;
pub mod layers;
pub mod lists;
pub mod map;
pub mod masked;
pub mod names;
pub mod notices;
pub mod openings;
pub mod packaging;
pub mod references;
pub mod requirements;
pub mod source;
pub mod test_names;
pub mod tree;
pub mod widths;
