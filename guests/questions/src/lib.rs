//! Questions as lessons and exams hold them: how each is written down, asked, scored and put before
//! a model that judges.
//!
//! Their writers are trusted with nothing but being asked and read: nothing of a question, and
//! nothing of an answer, becomes a part of a system prompt.

mod question;
mod score;

pub use crate::question::{Question, Widget};
pub use crate::score::{JUDGE_TOKENS_MAX, Judgement, Solution, judgement_schema, read_judgement};

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ops::RangeInclusive;

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

/// Checks the length of a text at a place.
///
/// # Errors
/// The place, and the length that its text has to have.
pub fn check_text(place: &str, text: &str, bytes: RangeInclusive<usize>) -> Result<(), String> {
    if bytes.contains(&text.len()) {
        return Ok(());
    }
    let (least, most) = bytes.into_inner();
    Err(format!(
        "{place}: a text of {least} to {most} bytes is needed, this one has {}",
        text.len()
    ))
}

/// Returns a number for calculations; counts are far below the limit.
#[must_use]
pub fn number_of(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

/// Returns a number with two decimal places.
#[must_use]
pub fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
