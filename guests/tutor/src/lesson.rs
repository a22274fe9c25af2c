//! Lessons: where they come from, and what they have to be.

use crate::material;
use agent_host_sdk::Turn;
use questions::{Question, check_text, read};
use serde::Deserialize;
use serde_json::Value;

const TITLE_BYTES_MAX: usize = 200;
const TEXT_BYTES_MAX: usize = 100 << 10;
const QUESTIONS_MAX: usize = 60;
const OBJECTIVES_MAX: usize = 16;
/// Bytes of an objective: all of them, scored, stand in a summary of 8 KiB.
const OBJECTIVE_BYTES_MAX: usize = 160;

/// A lesson.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Lesson {
    pub(crate) title: String,
    /// The text to teach; empty when there are only questions.
    pub(crate) text: String,
    /// The learning objectives of the student.
    pub(crate) objectives: Vec<String>,
    /// The questions to ask. A model writes them when there are none.
    pub(crate) questions: Vec<Question>,
}

impl Lesson {
    /// The lesson that the session was opened with, else the operator's, else the built-in one.
    ///
    /// # Errors
    /// The first field that makes no sense, for its author.
    pub(crate) fn of(turn: Turn<'_>) -> Result<Self, String> {
        let config: Value = turn.session_config().unwrap_or_default();
        let settings: Value = turn.settings().unwrap_or_default();
        let in_config = config.get("lesson").filter(|lesson| !lesson.is_null());
        let in_settings = settings.get("lesson").filter(|lesson| !lesson.is_null());
        let (lesson, place) = match (in_config, in_settings) {
            (None, None) => return Ok(built_in()),
            (None, Some(lesson)) => (lesson, "settings.lesson"),
            (Some(lesson), _) => (lesson, "session_config.lesson"),
        };
        let lesson: Self = read(lesson, place)?;
        lesson.check(place)?;
        Ok(lesson)
    }

    fn check(&self, place: &str) -> Result<(), String> {
        if !(1..=TITLE_BYTES_MAX).contains(&self.title.len()) {
            return Err(format!(
                "{place}.title: a text of 1 to {TITLE_BYTES_MAX} bytes is needed"
            ));
        }
        if self.text.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "{place}.text: at most {TEXT_BYTES_MAX} bytes can be taught, these are {}",
                self.text.len()
            ));
        }
        if self.questions.is_empty() && self.material().is_empty() {
            return Err(format!(
                "{place}: there is nothing to teach; give it a `text`, `objectives` or `questions`"
            ));
        }
        if self.questions.len() > QUESTIONS_MAX {
            return Err(format!(
                "{place}.questions: at most {QUESTIONS_MAX} can be asked, these are {}",
                self.questions.len()
            ));
        }
        if self.objectives.len() > OBJECTIVES_MAX {
            return Err(format!(
                "{place}.objectives: at most {OBJECTIVES_MAX} are allowed, these are {}",
                self.objectives.len()
            ));
        }
        for (at, objective) in self.objectives.iter().enumerate() {
            let place = format!("{place}.objectives[{at}]");
            check_text(&place, objective, 1..=OBJECTIVE_BYTES_MAX)?;
        }
        for (at, question) in self.questions.iter().enumerate() {
            check_question(&format!("{place}.questions[{at}]"), question)?;
        }
        Ok(())
    }

    /// Returns the material that a model teaches: the text, or the objectives of a lesson that has
    /// nothing else.
    fn material(&self) -> String {
        let objectives = self.objectives.iter();
        match (self.text.trim(), self.questions.is_empty()) {
            ("", true) => objectives.map(|it| format!("- {it}\n")).collect(),
            (text, _) => text.to_owned(),
        }
    }

    /// Returns the parts of the material that are taught one at a time, in order.
    pub(crate) fn parts(&self) -> Vec<String> {
        material::parts(&self.material())
    }

    /// Returns true if the lesson can be led without a model: there is nothing to explain, and the
    /// right answers are known.
    pub(crate) fn needs_no_model(&self) -> bool {
        self.text.trim().is_empty()
            && !self.questions.is_empty()
            && !self.questions.iter().any(Question::is_judged)
    }
}

/// Checks that a question can stand in a lesson.
pub(crate) fn check_question(place: &str, question: &Question) -> Result<(), String> {
    for (name, is_there) in [
        ("criterion", question.criterion.is_some()),
        ("points", question.points.is_some()),
    ] {
        if is_there {
            return Err(format!(
                "{place}.{name}: questions of exams have it, those of lessons do not"
            ));
        }
    }
    if let Some(objective) = &question.objective {
        let place = format!("{place}.objective");
        check_text(&place, objective, 1..=OBJECTIVE_BYTES_MAX)?;
    }
    question.check(place)
}

/// The lesson that is taught when no other is given.
fn built_in() -> Lesson {
    let question = |prompt: &str, options: [&str; 3], answer: usize, explanation: &str| Question {
        prompt: prompt.to_owned(),
        options: options.map(str::to_owned).to_vec(),
        answer: Some(answer.into()),
        explanation: Some(explanation.to_owned()),
        ..Question::default()
    };
    Lesson {
        title: "The solar system".to_owned(),
        questions: vec![
            question(
                "Which planet is closest to the Sun?",
                ["Venus", "Mercury", "Mars"],
                1,
                "Mercury orbits the Sun in 88 days, at a third of the Earth's distance.",
            ),
            question(
                "What makes day and night?",
                ["The Earth turns", "The Sun moves", "The Moon passes by"],
                0,
                "The Earth turns once in 24 hours, and the Sun shines on one half of it.",
            ),
            question(
                "Which planet is the largest?",
                ["Saturn", "Neptune", "Jupiter"],
                2,
                "Jupiter has more than twice the mass of all other planets together.",
            ),
        ],
        ..Lesson::default()
    }
}
