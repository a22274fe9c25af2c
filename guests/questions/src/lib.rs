//! Questions as lessons and exams hold them: how each is written down, asked, scored and put before
//! a model that judges.
//!
//! Their writers are trusted with nothing but being asked and read: nothing of a question, and
//! nothing of an answer, becomes a part of a system prompt.

mod judge;
mod question;
mod score;

pub use crate::judge::{JUDGE_TOKENS_MAX, Judgement, judgement_schema, read_judgement};
pub use crate::question::{Question, TEXT_CHARS_MAX, Widget};
pub use crate::score::Solution;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads what a user or operator has written, found at a place such as `settings.lesson`.
///
/// # Errors
/// The place of the first thing that is amiss, and what it has to be.
pub fn read<T: DeserializeOwned>(value: &Value, place: &str) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        match error.path().to_string().as_str() {
            "." => format!("{place}: {}", error.inner()),
            path => format!("{place}.{path}: {}", error.inner()),
        }
    })
}

#[cfg(test)]
mod tests;
