//! The memory of dialogues: for a user how the next one begins, and for all users which questions
//! were pursued.

use crate::dialogue::Dialogue;
use agent_host_sdk::{Turn, fenced, shortened};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const THEMES_MAX: usize = 10;
const QUESTIONS_MAX: usize = 5;
/// Topics that are remembered for all users.
const PURSUED_MAX: usize = 10;
/// Bytes of a theme or a question, which anyone may have written into the preferences.
const NOTE_BYTES_MAX: usize = 300;

/// The part of a user's preferences that this agent keeps, the latest first.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    dialogues: u64,
    themes: Vec<String>,
    open_questions: Vec<String>,
    /// The topics that were pursued with this agent, by any user.
    #[serde(skip)]
    pursued: Vec<Pursued>,
}

/// The part of the preferences that this agent keeps for all users, the latest first.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shared {
    pursued: Vec<Pursued>,
}

/// A topic, and what stayed open in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Pursued {
    topic: String,
    open_questions: Vec<String>,
}

impl Pursued {
    /// The same, no longer than what is kept: anyone who may set up the agent may have written it.
    fn bounded(mut self) -> Self {
        self.topic = shortened(&self.topic, NOTE_BYTES_MAX);
        self.open_questions.truncate(QUESTIONS_MAX);
        for question in &mut self.open_questions {
            *question = shortened(question, NOTE_BYTES_MAX);
        }
        self
    }
}

impl Memory {
    /// Looks at the preferences, and where they say nothing at the last dialogue of the user's own.
    pub(crate) fn of(turn: Turn<'_>) -> Self {
        let mut memory: Self = turn.remembered();
        if memory.themes.is_empty() {
            let topic_of = |summary: &Value| Some(summary.get("topic")?.as_str()?.to_owned());
            let mut sessions = turn.own_history().into_iter();
            let last =
                sessions.find_map(|session| Some((topic_of(&session.summary)?, session.summary)));
            if let Some((topic, summary)) = last {
                let open = summary.get("open_questions").and_then(Value::as_array);
                let open = open.into_iter().flatten();
                let open = open.filter_map(|question| question.as_str().map(str::to_owned));
                memory.open_questions = open.collect();
                memory.themes.push(topic);
            }
        }
        memory.themes.truncate(THEMES_MAX);
        memory.open_questions.truncate(QUESTIONS_MAX);
        for note in memory.themes.iter_mut().chain(&mut memory.open_questions) {
            *note = shortened(note, NOTE_BYTES_MAX);
        }
        let shared: Shared = turn.remembered_for_all();
        let pursued = shared.pursued.into_iter().take(PURSUED_MAX);
        memory.pursued = pursued.map(Pursued::bounded).collect();
        memory
    }

    /// The first words of a dialogue about nothing in particular yet.
    pub(crate) fn opening(&self) -> String {
        match (self.themes.first(), self.open_questions.first()) {
            (None, _) => "What is on your mind?".to_owned(),
            (Some(theme), None) => format!(
                "Welcome back. Last time we thought about \"{theme}\". What is on your mind today?"
            ),
            (Some(theme), Some(open)) => format!(
                "Welcome back. Last time we thought about \"{theme}\", and this stayed open: \
                 \"{open}\" Shall we go on with it, or is \
                 something else on your mind?"
            ),
        }
    }

    /// Returns the text about earlier dialogues for the model; empty when there were none.
    pub(crate) fn for_model(&self) -> String {
        let mut reported = String::new();
        if !self.themes.is_empty() || !self.open_questions.is_empty() {
            let lines = [
                ("Themes", &self.themes),
                ("Stayed open", &self.open_questions),
            ];
            let lines = lines.map(|(what, notes)| format!("{what}: {}", notes.join("; ")));
            reported.push_str(&format!(
                "From earlier dialogues with this user:\n{}\n\n",
                fenced(&lines.join("\n"))
            ));
        }
        if !self.pursued.is_empty() {
            let line = |pursued: &Pursued| {
                format!("{}: {}", pursued.topic, pursued.open_questions.join("; "))
            };
            let lines: Vec<String> = self.pursued.iter().map(line).collect();
            reported.push_str(&format!(
                "Topics that were pursued here before, by this user or by others, with what stayed \
                 open; do not take it that this user \
                 thought about them:\n{}\n\n",
                fenced(&lines.join("\n"))
            ));
        }
        reported
    }

    /// Returns the preferences to keep about the topic itself, for everybody. They are made only
    /// from what holds for everybody.
    pub(crate) fn after_for_all(&self, topic: &str, dialogue: &Dialogue) -> Value {
        let this = Pursued {
            topic: topic.to_owned(),
            open_questions: dialogue.notes.open_questions.clone(),
        }
        .bounded();
        let others = self.pursued.iter();
        let others = others.filter(|pursued| pursued.topic != this.topic);
        let pursued: Vec<&Pursued> = [&this]
            .into_iter()
            .chain(others)
            .take(PURSUED_MAX)
            .collect();
        json!({ "pursued": pursued })
    }

    /// Returns the preferences to keep for the user when a dialogue is over.
    pub(crate) fn after(&self, topic: &str, dialogue: &Dialogue) -> Value {
        let first = |new: &[String], old: &[String], count: usize| {
            let mut kept: Vec<String> = Vec::new();
            for note in new.iter().chain(old) {
                if kept.len() < count && !kept.contains(note) {
                    kept.push(note.clone());
                }
            }
            kept
        };
        let open_questions = &dialogue.notes.open_questions;
        json!({
            "dialogues": self.dialogues.saturating_add(1),
            "themes": first(&[topic.to_owned()], &self.themes, THEMES_MAX),
            "open_questions": first(open_questions, &self.open_questions, QUESTIONS_MAX),
            "last_rating": dialogue.rating,
        })
    }
}
