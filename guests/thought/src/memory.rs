//! What is remembered of a user's dialogues: how one begins, what the model is told, and what is kept for the next.

use crate::dialogue::Dialogue;
use agent_host_sdk::{Turn, fenced, log, shortened};
use serde::Deserialize;
use serde_json::{Value, json};

const THEMES_MAX: usize = 10;
const QUESTIONS_MAX: usize = 5;
/// Bytes of a theme or a question, which anyone may have written into the preferences.
const NOTE_BYTES_MAX: usize = 300;

/// What is kept in the preferences of a user, the latest first.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    dialogues: u64,
    themes: Vec<String>,
    open_questions: Vec<String>,
}

impl Memory {
    /// Looks at the preferences, and where they say nothing at the user's last dialogue.
    pub(crate) fn of(turn: Turn<'_>) -> Self {
        let mut memory: Self = turn.preferences().unwrap_or_else(|error| {
            log::warn(&format!("what is remembered of the user is left aside: {error}"));
            Self::default()
        });
        if memory.themes.is_empty() {
            let topic_of = |summary: &Value| Some(summary.get("topic")?.as_str()?.to_owned());
            let last = turn.history().into_iter().find_map(|session| Some((topic_of(&session.summary)?, session.summary)));
            if let Some((topic, summary)) = last {
                let open = summary.get("open_questions").and_then(Value::as_array).into_iter().flatten();
                memory.open_questions = open.filter_map(|question| question.as_str().map(str::to_owned)).collect();
                memory.themes.push(topic);
            }
        }
        memory.themes.truncate(THEMES_MAX);
        memory.open_questions.truncate(QUESTIONS_MAX);
        for note in memory.themes.iter_mut().chain(&mut memory.open_questions) {
            *note = shortened(note, NOTE_BYTES_MAX);
        }
        memory
    }

    /// The first words of a dialogue about nothing in particular yet.
    pub(crate) fn opening(&self) -> String {
        match (self.themes.first(), self.open_questions.first()) {
            (None, _) => "What is on your mind?".to_owned(),
            (Some(theme), None) => format!("Welcome back. Last time we thought about \"{theme}\". What is on your mind today?"),
            (Some(theme), Some(open)) => format!(
                "Welcome back. Last time we thought about \"{theme}\", and this stayed open: \"{open}\" Shall we go on with it, or is \
                 something else on your mind?"
            ),
        }
    }

    /// What the model is told of earlier dialogues; nothing when there were none.
    pub(crate) fn for_model(&self) -> String {
        if self.themes.is_empty() && self.open_questions.is_empty() {
            return String::new();
        }
        let lines = [("Themes", &self.themes), ("Stayed open", &self.open_questions)];
        let lines = lines.map(|(what, notes)| format!("{what}: {}", notes.join("; ")));
        format!("From earlier dialogues with this user:\n{}\n\n", fenced(&lines.join("\n")))
    }

    /// What to keep of a dialogue that is over.
    pub(crate) fn after(&self, topic: &str, dialogue: &Dialogue) -> Value {
        let first = |new: &mut dyn Iterator<Item = &String>, count: usize| {
            let mut kept: Vec<String> = Vec::new();
            for note in new {
                if kept.len() < count && !kept.contains(note) {
                    kept.push(note.clone());
                }
            }
            kept
        };
        let topic = topic.to_owned();
        let themes = first(&mut std::iter::once(&topic).chain(&self.themes), THEMES_MAX);
        let open_questions = first(&mut dialogue.notes.open_questions.iter().chain(&self.open_questions), QUESTIONS_MAX);
        json!({
            "dialogues": self.dialogues.saturating_add(1),
            "themes": themes,
            "open_questions": open_questions,
            "last_rating": dialogue.rating,
        })
    }
}
