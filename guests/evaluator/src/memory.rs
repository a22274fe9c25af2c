//! What is remembered of a user's attempts: how many there were at each exam, and the best of them.

use agent_host_sdk::{Turn, log};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Exams that are remembered.
const EXAMS_MAX: usize = 20;

/// What is kept in the preferences of a user. Anyone may write there, so what cannot be read counts as not there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    /// The latest first.
    exams: Vec<Known>,
}

/// What is known of the attempts at one exam.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Known {
    title: String,
    attempts: u64,
    best_percent: Option<f64>,
    last_percent: Option<f64>,
    #[serde(default)]
    ended_ms: u64,
}

impl Memory {
    /// Looks at the preferences, and at the user's sessions before this one: these nobody can write, so there are never fewer attempts, nor a
    /// lower best, than they say.
    pub(crate) fn of(turn: Turn<'_>, title: &str) -> Self {
        let mut memory: Self = turn.preferences().unwrap_or_else(|error| {
            log::warn(&format!("what is remembered of the user is left aside: {error}"));
            Self::default()
        });
        let is_same = |summary: &Value| summary.get("title").and_then(Value::as_str) == Some(title);
        let percent = |summary: &Value| summary.get("percent").and_then(Value::as_f64);
        let past: Vec<Option<f64>> =
            turn.history().iter().filter(|past| is_same(&past.summary)).map(|past| percent(&past.summary)).collect();
        let Some(last_percent) = past.first().copied() else { return memory };
        let best_percent = past.iter().copied().flatten().reduce(f64::max);
        let attempts = u64::try_from(past.len()).unwrap_or(u64::MAX);
        match memory.exams.iter_mut().find(|known| known.title == title) {
            Some(known) => {
                known.attempts = known.attempts.max(attempts);
                known.best_percent = [known.best_percent, best_percent].into_iter().flatten().reduce(f64::max);
            }
            None => memory.exams.push(Known { title: title.to_owned(), attempts, best_percent, last_percent, ended_ms: 0 }),
        }
        memory
    }

    /// What is said of earlier attempts; nothing at the first.
    pub(crate) fn greeting(&self, title: &str) -> String {
        let Some(known) = self.known(title) else { return String::new() };
        let best = known.best_percent.map(|percent| format!(" Your best result so far is {percent:.0} %.")).unwrap_or_default();
        format!("Welcome back: this is your attempt {}.{best} ", known.attempts.saturating_add(1))
    }

    /// How many attempts there are with this one.
    pub(crate) fn attempts(&self, title: &str) -> u64 {
        self.known(title).map_or(0, |known| known.attempts).saturating_add(1)
    }

    /// What to keep of an exam that is over.
    pub(crate) fn after(&self, title: &str, percent: Option<f64>, now_ms: u64) -> Value {
        let known = self.known(title);
        let best_percent = [known.and_then(|known| known.best_percent), percent].into_iter().flatten().reduce(f64::max);
        let attempts = self.attempts(title);
        let this = Known { title: title.to_owned(), attempts, best_percent, last_percent: percent, ended_ms: now_ms };
        let others = self.exams.iter().filter(|known| known.title != title).cloned();
        let exams: Vec<Known> = std::iter::once(this).chain(others).take(EXAMS_MAX).collect();
        json!({ "exams": exams })
    }

    fn known(&self, title: &str) -> Option<&Known> {
        self.exams.iter().find(|known| known.title == title)
    }
}
