//! Lessons: what an operator writes into the definition's settings as `lesson`.

use serde::Deserialize;

/// The operator's settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// The lesson; a built-in one without.
    pub(crate) lesson: Option<Lesson>,
}

/// A lesson.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lesson {
    pub(crate) title: String,
    pub(crate) questions: Vec<Question>,
}

/// A multiple-choice question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    pub(crate) prompt: String,
    pub(crate) options: Vec<String>,
    /// The index of the right option, counted from 0.
    pub(crate) answer: usize,
    #[serde(default)]
    pub(crate) explanation: String,
}

impl Question {
    /// The right option.
    pub(crate) fn solution(&self) -> &str {
        self.options.get(self.answer).map_or("", String::as_str)
    }
}

impl Lesson {
    /// Whether it can be taught.
    ///
    /// # Errors
    /// The first thing that is wrong, for the operator.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.questions.is_empty() {
            return Err("settings.lesson.questions is empty".to_owned());
        }
        for (at, question) in self.questions.iter().enumerate() {
            if question.options.len() < 2 {
                return Err(format!("settings.lesson.questions[{at}].options needs two options at least"));
            }
            if question.answer >= question.options.len() {
                return Err(format!("settings.lesson.questions[{at}].answer is not the index of an option"));
            }
        }
        Ok(())
    }
}

/// The lesson that is taught when the operator has written none.
pub(crate) fn built_in() -> Lesson {
    let question = |prompt: &str, options: [&str; 3], answer, explanation: &str| Question {
        prompt: prompt.to_owned(),
        options: options.map(str::to_owned).to_vec(),
        answer,
        explanation: explanation.to_owned(),
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
    }
}
