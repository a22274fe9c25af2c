//! The memory of exams. It keeps for a user how many attempts they made at each and the best of
//! them, and for everybody the results of each exam.
//!
//! An exam is known by its digest: another one of the same title is another exam.

use crate::exam::Exam;
use agent_host_sdk::Turn;
use questions::rounded;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Exams that are remembered for a user, and for all users.
const EXAMS_MAX: usize = 20;

/// The part of a user's preferences that this agent keeps. Anyone may write there, so an unreadable
/// value counts as not there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Kept {
    /// The latest first.
    exams: Vec<Known>,
}

/// The record of a user's attempts at one exam.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Known {
    digest: String,
    title: String,
    attempts: u64,
    best_percent: Option<f64>,
    last_percent: Option<f64>,
    ended_ms: u64,
}

/// The part of the preferences that this agent keeps for all users.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shared {
    /// The latest first.
    exam_results: Vec<Taken>,
}

/// The results of one exam, of all users together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Taken {
    digest: String,
    title: String,
    attempts: u64,
    /// Attempts of which that is decided.
    passed: u64,
    /// Attempts in which something could be scored, and their average.
    scored: u64,
    average_percent: Option<f64>,
    ended_ms: u64,
}

/// The remembered facts that bear on the exam of this turn.
#[derive(Debug)]
pub(crate) struct Memory {
    digest: String,
    title: String,
    exams: Vec<Known>,
    taken: Vec<Taken>,
}

impl Memory {
    /// Looks at the preferences, and at the user's own sessions before this one. The sessions
    /// cannot be altered, so there are never fewer attempts, nor a lower best, than they say.
    pub(crate) fn of(turn: Turn<'_>, exam: &Exam) -> Self {
        let Kept { mut exams } = turn.remembered();
        let Shared {
            exam_results: taken,
        } = turn.remembered_for_all();
        let history = turn.own_history();
        let past: Vec<Option<f64>> = history
            .iter()
            .map(|past| &past.summary)
            .filter(|summary| summary["digest"] == exam.digest.as_str())
            .map(|summary| summary["percent"].as_f64())
            .collect();
        let digest = exam.digest.clone();
        let title = exam.title.clone();
        if let Some(last_percent) = past.first().copied() {
            let best_percent = past.iter().copied().flatten().reduce(f64::max);
            let attempts = u64::try_from(past.len()).unwrap_or(u64::MAX);
            match exams.iter_mut().find(|known| known.digest == digest) {
                Some(known) => {
                    known.attempts = known.attempts.max(attempts);
                    known.best_percent = best_of(known.best_percent, best_percent);
                }
                None => exams.push(Known {
                    digest: digest.clone(),
                    title: title.clone(),
                    attempts,
                    best_percent,
                    last_percent,
                    ..Known::default()
                }),
            }
        }
        Self {
            digest,
            title,
            exams,
            taken,
        }
    }

    /// Returns a message about earlier attempts, the user's own and everybody's; empty when there
    /// were none.
    pub(crate) fn greeting(&self) -> String {
        let mut greeting = String::new();
        if let Some(known) = self.known() {
            let best = known
                .best_percent
                .map(|percent| format!(" Your best result so far is {percent:.0} %."))
                .unwrap_or_default();
            greeting = format!(
                "Welcome back: this is your attempt {}.{best} ",
                known.attempts.saturating_add(1)
            );
        }
        let own = self.known().map_or(0, |known| known.attempts);
        if let Some(Taken {
            attempts,
            average_percent: Some(percent),
            ..
        }) = self.taken().filter(|taken| taken.attempts != own)
        {
            let times = if *attempts == 1 {
                "once".to_owned()
            } else {
                format!("{attempts} times")
            };
            greeting.push_str(&format!(
                "This exam was taken {times} here before, with {percent:.0} % on average. "
            ));
        }
        greeting
    }

    /// Returns the number of attempts, this one included.
    pub(crate) fn attempts(&self) -> u64 {
        self.known()
            .map_or(0, |known| known.attempts)
            .saturating_add(1)
    }

    /// Returns the preferences to keep for the user when the exam is over.
    pub(crate) fn after(&self, percent: Option<f64>, now_ms: u64) -> Value {
        let best_before = self.known().and_then(|known| known.best_percent);
        let this = Known {
            digest: self.digest.clone(),
            title: self.title.clone(),
            attempts: self.attempts(),
            best_percent: best_of(best_before, percent),
            last_percent: percent,
            ended_ms: now_ms,
        };
        let others = self.exams.iter();
        let others = others.filter(|known| known.digest != self.digest);
        let exams: Vec<&Known> = [&this].into_iter().chain(others).take(EXAMS_MAX).collect();
        json!({ "exams": exams })
    }

    /// Returns the preferences to keep about the exam itself, for everybody. They are made only
    /// from what holds for everybody.
    pub(crate) fn after_for_all(
        &self,
        percent: Option<f64>,
        passed: Option<bool>,
        now_ms: u64,
    ) -> Value {
        let before = self.taken().cloned().unwrap_or_default();
        let count = |number: u64| u32::try_from(number).map_or(f64::MAX, f64::from);
        let scored = before.scored.saturating_add(u64::from(percent.is_some()));
        let all = before.average_percent.unwrap_or_default() * count(before.scored)
            + percent.unwrap_or_default();
        let this = Taken {
            digest: self.digest.clone(),
            title: self.title.clone(),
            attempts: before.attempts.saturating_add(1),
            passed: before
                .passed
                .saturating_add(u64::from(passed == Some(true))),
            scored,
            average_percent: (scored > 0).then(|| rounded(all / count(scored))),
            ended_ms: now_ms,
        };
        let others = self.taken.iter();
        let others = others.filter(|taken| taken.digest != self.digest);
        let taken: Vec<&Taken> = [&this].into_iter().chain(others).take(EXAMS_MAX).collect();
        json!({ "exam_results": taken })
    }

    fn known(&self) -> Option<&Known> {
        self.exams.iter().find(|known| known.digest == self.digest)
    }

    fn taken(&self) -> Option<&Taken> {
        self.taken.iter().find(|taken| taken.digest == self.digest)
    }
}

fn best_of(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    [one, other].into_iter().flatten().reduce(f64::max)
}
