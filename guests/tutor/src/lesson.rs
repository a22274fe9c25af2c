//! Lessons: where they come from, what they have to be, and the parts in which their material is
//! taught.

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
        parts(&self.material())
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

/// Parts of a lesson: a longer text has longer parts.
const PARTS_MAX: usize = 8;
/// Bytes of a part of a text that is not long.
const PART_BYTES: usize = 3_000;

/// Cuts a text between its paragraphs, before a heading if one is near, into parts of about the
/// same length. No part is empty.
pub(crate) fn parts(text: &str) -> Vec<String> {
    // Parts end at paragraphs and so before they are full: with room for that, there are not more
    // of them.
    let part_bytes = PART_BYTES.max(text.len().div_ceil(PARTS_MAX) * 3 / 2);
    let mut parts: Vec<String> = Vec::new();
    let mut part = String::new();
    for paragraph in text
        .split("\n\n")
        .flat_map(|paragraph| chunks(paragraph, part_bytes))
        .filter(|chunk| !chunk.trim().is_empty())
    {
        let is_full = part.len() + paragraph.len() > part_bytes;
        let is_good_end = paragraph.trim_start().starts_with('#') && part.len() > part_bytes / 2;
        if !part.is_empty() && (is_full || is_good_end) {
            parts.push(std::mem::take(&mut part));
        }
        if !part.is_empty() {
            part.push_str("\n\n");
        }
        part.push_str(paragraph.trim_end());
    }
    parts.extend((!part.is_empty()).then_some(part));
    parts
}

/// A paragraph, cut between words if it is longer than a part.
fn chunks(paragraph: &str, bytes_max: usize) -> Vec<&str> {
    let mut chunks = Vec::new();
    let mut rest = paragraph;
    while rest.len() > bytes_max {
        let (head, _) = rest.split_at(rest.floor_char_boundary(bytes_max));
        let end = head.rfind(char::is_whitespace).filter(|end| *end > 0);
        let end = end.unwrap_or(head.len());
        let (chunk, after) = rest.split_at(end);
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_one_part_and_no_text_none() {
        assert_eq!(parts("One.\n\nTwo."), ["One.\n\nTwo."]);
        assert_eq!(parts(" \n\n \n"), [""; 0]);
    }

    #[test]
    fn parts_end_between_paragraphs_and_before_headings() {
        let paragraph = "word ".repeat(400);
        let text = format!("{paragraph}\n\n# Second\n\n{paragraph}\n\n{paragraph}");
        let parts = parts(&text);
        assert_eq!(parts.len(), 3);
        assert!(parts[1].starts_with("# Second\n\n"));
    }

    #[test]
    fn a_long_text_has_no_more_parts_and_loses_nothing() {
        let text = format!(
            "{}\n\n{}",
            "word ".repeat(15_000),
            "änderung\n\n".repeat(2_000)
        );
        let parts = parts(&text);
        assert!((2..=PARTS_MAX).contains(&parts.len()), "{}", parts.len());
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            parts
                .iter()
                .flat_map(|part| words(part))
                .collect::<Vec<_>>(),
            words(&text)
        );
    }
}
