//! The memory of the tutor: for a user how they learn, and for all users which lessons were taught
//! and how they went.
//!
//! The two are never mixed: no user hears that they have learned what another user has.

use crate::lesson::Lesson;
use agent_host_sdk::{Turn, fenced, shortened};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Levels from the first to the last.
const LEVELS: [&str; 3] = ["beginner", "intermediate", "advanced"];
/// Bytes of what a user wishes.
const REQUEST_BYTES_MAX: usize = 200;
/// Objectives that are kept as weak.
const WEAK_MAX: usize = 10;
/// Lessons that are remembered for all users.
const TAUGHT_MAX: usize = 20;
/// Remembered lessons that a model gets.
const REPORTED_MAX: usize = 6;
/// Difficult objectives that are kept of one of them.
const DIFFICULT_MAX: usize = 5;
/// Bytes of the name of something that was difficult.
const DIFFICULT_BYTES_MAX: usize = 100;
/// The score from which on a lesson was easy; below the other it was hard.
const EASY: f64 = 0.9;
const HARD: f64 = 0.5;

/// The part of a user's preferences that this agent keeps. Anyone may write there, so an unreadable
/// value counts as not there.
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

/// The part of the preferences that this agent keeps for all users.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shared {
    /// The latest first.
    taught: Vec<Taught>,
}

/// A lesson that was taught, to whomever.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Taught {
    title: String,
    times: u64,
    /// The score of the last time.
    score: Option<f64>,
    difficult: Vec<String>,
    ended_ms: u64,
}

/// A lesson that is over.
pub(crate) struct Finished<'a> {
    pub(crate) title: &'a str,
    pub(crate) score: Option<f64>,
    /// Its objectives.
    pub(crate) practised: &'a [String],
    /// The objectives that are weak still.
    pub(crate) weak: &'a [String],
    pub(crate) now_ms: u64,
}

/// The remembered facts that bear on this turn.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    kept: Kept,
    taught: Vec<Taught>,
    /// The score of the same lesson the last time, from 0 to 1, and what was weak then.
    earlier: Option<(Option<f64>, Vec<String>)>,
}

impl Memory {
    /// Looks at the preferences, at what the session was opened with, and at the user's own
    /// sessions before this one.
    pub(crate) fn of(turn: Turn<'_>, lesson: &Lesson) -> Self {
        let mut kept: Kept = turn.remembered();
        let config: Value = turn.session_config().unwrap_or_default();
        let request = |name: &str| {
            let request = config.get(name).and_then(Value::as_str);
            request.map(|request| shortened(request, REQUEST_BYTES_MAX))
        };
        kept.level = request("level").or(kept.level);
        kept.tone = request("tone").or(kept.tone);
        let sessions = turn.own_history();
        let same = sessions
            .iter()
            .map(|session| &session.summary)
            .find(|summary| summary["title"] == json!(lesson.title));
        let earlier = same.map(|summary| {
            let weak = summary["weak_objectives"].as_array().into_iter().flatten();
            let weak = weak.filter_map(|objective| objective.as_str().map(str::to_owned));
            (summary["score"].as_f64(), weak.collect())
        });
        let shared: Shared = turn.remembered_for_all();
        let taught = shared.taught.into_iter().take(TAUGHT_MAX);
        let mut taught: Vec<Taught> = taught.map(Taught::bounded).collect();
        // The present lesson comes first, so that a model sees it however many others there are.
        taught.sort_by_key(|taught| taught.title != lesson.title);
        Self {
            kept,
            taught,
            earlier,
        }
    }

    /// Returns the greeting that comes before the introduction of the lesson.
    pub(crate) fn greeting(&self, lesson: &Lesson) -> String {
        let last = self.kept.last_lesson.as_ref();
        let last = last.filter(|last| last.title != lesson.title);
        let mut greeting = match (&self.earlier, last) {
            (None, None) if self.kept.lessons == 0 => String::new(),
            (None, None) => "Welcome back. ".to_owned(),
            (None, Some(last)) => format!(
                "Welcome back. Last time it was \"{}\". ",
                shortened(&last.title, REQUEST_BYTES_MAX)
            ),
            (Some((None, _)), _) => "Welcome back to this lesson. ".to_owned(),
            (Some((Some(score), _)), _) => format!(
                "Welcome back. You had {} in this lesson last time. ",
                percent(*score)
            ),
        };
        if let Some((_, weak)) = self.earlier.as_ref().filter(|(_, weak)| !weak.is_empty()) {
            greeting.push_str(&format!("We will look closely at {}. ", weak.join(", ")));
        }
        greeting
    }

    /// Returns the facts about the student for a model. They belong into the part of a prompt that
    /// it is not to obey.
    pub(crate) fn for_model(&self) -> String {
        let level = shortened(self.level(), REQUEST_BYTES_MAX);
        let mut lines = vec![format!("level: {level}")];
        if let Some(tone) = &self.kept.tone {
            let tone = shortened(tone, REQUEST_BYTES_MAX);
            lines.push(format!("wishes this tone: {tone}"));
        }
        let weak = self
            .earlier
            .as_ref()
            .map_or(&self.kept.weak_objectives, |(_, weak)| weak);
        if !weak.is_empty() {
            lines.push(format!(
                "found difficult before: {}",
                shortened(&weak.join("; "), 4 * REQUEST_BYTES_MAX)
            ));
        }
        format!(
            "About the student:\n{}{}",
            fenced(&lines.join("\n")),
            self.lessons()
        )
    }

    /// Returns the lessons that were taught with this agent, for a model; empty when there were
    /// none.
    fn lessons(&self) -> String {
        if self.taught.is_empty() {
            return String::new();
        }
        let taught = self.taught.iter().take(REPORTED_MAX);
        let lines: Vec<String> = taught.map(Taught::line).collect();
        format!(
            "\n\nLessons that were taught here before, to this student or to others; do not take \
             it that this student had them:\n{}",
            fenced(&lines.join("\n"))
        )
    }

    fn level(&self) -> &str {
        self.kept.level.as_deref().unwrap_or("intermediate")
    }

    /// Returns the preferences to keep for the student when a lesson is over.
    pub(crate) fn after(&self, finished: &Finished<'_>) -> Value {
        let old = self.kept.weak_objectives.iter();
        let old = old.filter(|old| !finished.practised.contains(old));
        let weak: Vec<&String> = finished.weak.iter().chain(old).take(WEAK_MAX).collect();
        json!({
            "level": next_level(self.level(), finished.score),
            "lessons": self.kept.lessons.saturating_add(1),
            "last_lesson": {
                "title": finished.title, "score": finished.score, "ended_ms": finished.now_ms,
            },
            "weak_objectives": weak,
        })
    }

    /// Returns the preferences to keep about the lesson itself, for everybody. They are made only
    /// from what holds for everybody.
    pub(crate) fn after_for_all(&self, finished: &Finished<'_>) -> Value {
        let mut taught = self.taught.iter();
        let known = taught.find(|taught| taught.title == finished.title);
        let mut difficult: Vec<String> = Vec::new();
        let before = known.iter().flat_map(|known| &known.difficult);
        for objective in finished.weak.iter().chain(before) {
            if !difficult.contains(objective) {
                difficult.push(objective.clone());
            }
        }
        let this = Taught {
            title: finished.title.to_owned(),
            times: known.map_or(0, |known| known.times).saturating_add(1),
            score: finished.score,
            difficult,
            ended_ms: finished.now_ms,
        };
        let mut taught = self.taught.clone();
        taught.retain(|taught| taught.title != finished.title);
        taught.sort_by_key(|taught| std::cmp::Reverse(taught.ended_ms));
        taught.insert(0, this.bounded());
        taught.truncate(TAUGHT_MAX);
        json!({ "taught": taught })
    }
}

impl Taught {
    /// The same, no longer than what is kept: anyone who may set up the agent may have written it.
    fn bounded(mut self) -> Self {
        self.title = shortened(&self.title, REQUEST_BYTES_MAX);
        self.difficult.truncate(DIFFICULT_MAX);
        for objective in &mut self.difficult {
            *objective = shortened(objective, DIFFICULT_BYTES_MAX);
        }
        self
    }

    fn line(&self) -> String {
        let times = if self.times == 1 {
            "once".to_owned()
        } else {
            format!("{} times", self.times)
        };
        let mut line = format!("{}: {times}", self.title);
        if let Some(score) = self.score {
            line.push_str(&format!(", the last time with {}", percent(score)));
        }
        if !self.difficult.is_empty() {
            line.push_str(&format!("; difficult: {}", self.difficult.join(", ")));
        }
        line
    }
}

/// A score as people read it.
pub(crate) fn percent(score: f64) -> String {
    format!("{:.0} %", score * 100.0)
}

/// Returns the level after a lesson: one more after an easy one, one less after a hard one. A level
/// in the user's own words stays.
fn next_level(level: &str, score: Option<f64>) -> &str {
    let (Some(score), Some(at)) = (score, LEVELS.iter().position(|known| *known == level)) else {
        return level;
    };
    let next = match score {
        easy if easy >= EASY => at + 1,
        hard if hard < HARD => at.saturating_sub(1),
        _ => at,
    };
    LEVELS.get(next).copied().unwrap_or(level)
}
