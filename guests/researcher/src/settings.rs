//! The operator's settings of a researcher.

use agent_host_sdk::Turn;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// Milliseconds after which nothing new is read when neither the settings nor the task say more.
/// The notes on what is under way and the report come after them.
const TIME_MS: u64 = 180_000;
/// Milliseconds of a task's own limit that stay for the notes and the report, at least, but no more
/// than half of it.
const RESERVE_MS_MIN: u64 = 10_000;
/// The part of a task's own limit that stays for them otherwise: one in so many.
const RESERVE_PART: u64 = 6;
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
    /// Milliseconds after which nothing new is read, if the operator says so.
    time_ms: Option<u64>,
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
    pub(crate) fn from_turn(turn: Turn<'_>) -> Result<Self, String> {
        let written: Written = turn.settings().map_err(|error| {
            format!(
                "{error}: {}; known are model, timeSeconds, pagesPerRound, questionsPerRound",
                error.source
            )
        })?;
        if written.model.as_deref().is_some_and(str::is_empty) {
            return Err("settings.model: the name of a model is needed, this is empty".to_owned());
        }
        if let Some(seconds) = written.time_seconds {
            within("timeSeconds", Some(seconds), seconds, TIME_S_RANGE)?;
        }
        let pages = within("pagesPerRound", written.pages_per_round, PAGES, PAGES_RANGE)?;
        let questions = within(
            "questionsPerRound",
            written.questions_per_round,
            QUESTIONS,
            QUESTIONS_RANGE,
        )?;
        Ok(Self {
            model: written.model,
            time_ms: written
                .time_seconds
                .map(|seconds| seconds.saturating_mul(1_000)),
            pages: usize::try_from(pages).unwrap_or(1),
            questions: usize::try_from(questions).unwrap_or(1),
        })
    }

    /// Milliseconds after which a task reads nothing new, one with a limit of its own early enough
    /// for a report within it.
    pub(crate) fn reading_ms(&self, timeout_ms: Option<u64>) -> u64 {
        let before_end = timeout_ms.map(|timeout_ms| {
            let reserve_ms = RESERVE_MS_MIN.max(timeout_ms / RESERVE_PART);
            timeout_ms - reserve_ms.min(timeout_ms / 2)
        });
        self.time_ms
            .into_iter()
            .chain(before_end)
            .min()
            .unwrap_or(TIME_MS)
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

#[cfg(test)]
mod tests {
    use super::Settings;
    use agent_host_sdk::harness::Scene;
    use serde_json::json;

    #[test]
    fn reading_ends_early_enough_for_a_report_within_the_tasks_limit() {
        for (seconds, timeout_ms, expected) in [
            (None, None, 180_000),
            (Some(60), None, 60_000),
            (None, Some(600_000), 500_000),
            (None, Some(30_000), 20_000),
            (None, Some(4_000), 2_000),
            (Some(60), Some(600_000), 60_000),
            (Some(60), Some(30_000), 20_000),
        ] {
            let scene = match seconds {
                Some(seconds) => Scene::new().settings(json!({ "timeSeconds": seconds })),
                None => Scene::new(),
            };
            let settings = Settings::from_turn(scene.turn()).unwrap();
            assert_eq!(
                settings.reading_ms(timeout_ms),
                expected,
                "{seconds:?} {timeout_ms:?}"
            );
        }
    }
}
