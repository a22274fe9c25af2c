//! What the tutor remembers of a user: how it greets, what it tells the model, and what it keeps for the next time.

use crate::lesson::Lesson;
use agent_host_sdk::{Turn, fenced, log, shortened};
use serde::Deserialize;
use serde_json::{Value, json};

/// Levels from the first to the last.
const LEVELS: [&str; 3] = ["beginner", "intermediate", "advanced"];
/// Bytes of what a user wishes.
const WISH_BYTES_MAX: usize = 200;
/// Objectives that are kept as weak.
const WEAK_MAX: usize = 10;
/// From this score on a lesson was easy, and below the other it was hard.
const EASY: f64 = 0.9;
const HARD: f64 = 0.5;

/// What is kept in the preferences of a user. Anyone may write there, so what cannot be read counts as not there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Kept {
    level: Option<String>,
    tone: Option<String>,
    lessons: u64,
    last_lesson: Option<LastLesson>,
    weak_objectives: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct LastLesson {
    title: String,
}

/// What is remembered of the user of this turn.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    kept: Kept,
    /// The score of the same lesson the last time, from 0 to 1, and what was weak then.
    earlier: Option<(Option<f64>, Vec<String>)>,
}

impl Memory {
    /// Looks at the preferences, at what the session was opened with, and at the user's sessions before this one.
    pub(crate) fn of(turn: Turn<'_>, lesson: &Lesson) -> Self {
        let mut kept: Kept = turn.preferences().unwrap_or_else(|error| {
            log::warn(&format!("what is remembered of the user is left aside: {error}"));
            Kept::default()
        });
        let config: Value = turn.session_config().unwrap_or_default();
        let wish = |name: &str| config.get(name).and_then(Value::as_str).map(|wish| shortened(wish, WISH_BYTES_MAX));
        kept.level = wish("level").or(kept.level);
        kept.tone = wish("tone").or(kept.tone);
        let sessions = turn.history();
        let same = sessions.iter().map(|session| &session.summary).find(|summary| summary["title"] == json!(lesson.title));
        let earlier = same.map(|summary| {
            let weak = summary["weak_objectives"].as_array().into_iter().flatten();
            (summary["score"].as_f64(), weak.filter_map(|objective| objective.as_str().map(str::to_owned)).collect())
        });
        Self { kept, earlier }
    }

    /// What is said first, beside what the lesson is.
    pub(crate) fn greeting(&self, lesson: &Lesson) -> String {
        let last = self.kept.last_lesson.as_ref().filter(|last| last.title != lesson.title);
        let mut greeting = match (&self.earlier, last) {
            (None, None) if self.kept.lessons == 0 => String::new(),
            (None, None) => "Welcome back. ".to_owned(),
            (None, Some(last)) => format!("Welcome back. Last time it was \"{}\". ", shortened(&last.title, WISH_BYTES_MAX)),
            (Some((None, _)), _) => "Welcome back to this lesson. ".to_owned(),
            (Some((Some(score), _)), _) => format!("Welcome back. You had {} in this lesson last time. ", percent(*score)),
        };
        if let Some((_, weak)) = self.earlier.as_ref().filter(|(_, weak)| !weak.is_empty()) {
            greeting.push_str(&format!("We will look closely at {}. ", weak.join(", ")));
        }
        greeting
    }

    /// What a model should know of the student, for the part of a prompt that it is not to obey.
    pub(crate) fn for_model(&self) -> String {
        let mut lines = vec![format!("level: {}", shortened(self.level(), WISH_BYTES_MAX))];
        lines.extend(self.kept.tone.as_ref().map(|tone| format!("wishes this tone: {}", shortened(tone, WISH_BYTES_MAX))));
        let weak = self.earlier.as_ref().map_or(&self.kept.weak_objectives, |(_, weak)| weak);
        if !weak.is_empty() {
            lines.push(format!("found difficult before: {}", shortened(&weak.join("; "), 4 * WISH_BYTES_MAX)));
        }
        format!("About the student:\n{}", fenced(&lines.join("\n")))
    }

    fn level(&self) -> &str {
        self.kept.level.as_deref().unwrap_or("intermediate")
    }

    /// What to keep of a lesson that is over. `practised` are its objectives, `weak` those that are weak still.
    pub(crate) fn after(&self, title: &str, score: Option<f64>, practised: &[String], weak: &[String], now_ms: u64) -> Value {
        let old = self.kept.weak_objectives.iter().filter(|old| !practised.contains(old));
        let weak: Vec<&String> = weak.iter().chain(old).take(WEAK_MAX).collect();
        json!({
            "level": next_level(self.level(), score),
            "lessons": self.kept.lessons.saturating_add(1),
            "last_lesson": { "title": title, "score": score, "ended_ms": now_ms },
            "weak_objectives": weak,
        })
    }
}

/// A score as people read it.
pub(crate) fn percent(score: f64) -> String {
    format!("{:.0} %", score * 100.0)
}

/// One level more after an easy lesson and one less after a hard one. A level that the user put in other words stays.
fn next_level(level: &str, score: Option<f64>) -> &str {
    let (Some(score), Some(at)) = (score, LEVELS.iter().position(|known| *known == level)) else { return level };
    let next = match score {
        easy if easy >= EASY => at + 1,
        hard if hard < HARD => at.saturating_sub(1),
        _ => at,
    };
    LEVELS.get(next).copied().unwrap_or(level)
}
