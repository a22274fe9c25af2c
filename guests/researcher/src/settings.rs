//! The operator's settings of a researcher.

use agent_host_sdk::Turn;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// Seconds after which nothing new is read. The notes on what is under way and the report come
/// after them, so that a delegation with the default limit of 300 seconds has its report in time.
const TIME_S: u64 = 180;
const TIME_S_RANGE: RangeInclusive<u64> = 10..=86_400;
/// Pages that are read in one round, beside the given sources.
const PAGES: u64 = 5;
/// Bounded by the number of tool calls that the host performs at the same time.
const PAGES_RANGE: RangeInclusive<u64> = 1..=8;
/// Questions of one round.
const QUESTIONS: u64 = 3;
const QUESTIONS_RANGE: RangeInclusive<u64> = 1..=5;

/// The settings as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Written {
    model: Option<String>,
    time_seconds: Option<u64>,
    pages_per_round: Option<u64>,
    questions_per_round: Option<u64>,
}

/// The settings, checked.
#[derive(Debug)]
pub(crate) struct Settings {
    /// A model or alias of the operator's, for all that this agent asks.
    pub(crate) model: Option<String>,
    /// Milliseconds after which nothing new is read.
    pub(crate) time_ms: u64,
    /// Pages that are read in one round.
    pub(crate) pages: usize,
    /// Questions of one round.
    pub(crate) questions: usize,
}

impl Settings {
    /// Reads `model`, `timeSeconds`, `pagesPerRound` and `questionsPerRound`.
    ///
    /// # Errors
    /// The setting that makes no sense, and what it has to be.
    pub(crate) fn of(turn: Turn<'_>) -> Result<Self, String> {
        let written: Written = turn.settings().map_err(|error| {
            format!(
                "{error}: {}; known are model, timeSeconds, pagesPerRound, questionsPerRound",
                error.source
            )
        })?;
        if written.model.as_deref().is_some_and(str::is_empty) {
            return Err("settings.model: the name of a model is needed, this is empty".to_owned());
        }
        let seconds = within("timeSeconds", written.time_seconds, TIME_S, TIME_S_RANGE)?;
        let pages = within("pagesPerRound", written.pages_per_round, PAGES, PAGES_RANGE)?;
        let questions = within(
            "questionsPerRound",
            written.questions_per_round,
            QUESTIONS,
            QUESTIONS_RANGE,
        )?;
        Ok(Self {
            model: written.model,
            time_ms: seconds.saturating_mul(1_000),
            pages: usize::try_from(pages).unwrap_or(1),
            questions: usize::try_from(questions).unwrap_or(1),
        })
    }
}

fn within(
    name: &str,
    written: Option<u64>,
    otherwise: u64,
    range: RangeInclusive<u64>,
) -> Result<u64, String> {
    let value = written.unwrap_or(otherwise);
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    Err(format!(
        "settings.{name}: a whole number from {least} to {most} is needed, this is {value}"
    ))
}
