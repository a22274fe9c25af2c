//! The tutor: leads a structured session of multiple-choice questions, one client action each.
//!
//! How far the lesson has come is the session's state, so a failed turn or a restart costs nothing: the open question is asked again.

mod lesson;

use crate::lesson::{Lesson, Question, Settings};
use agent_host_sdk::{Agent, ClientAction, Description, Effect, Item, MessageId, Operation, Outcome, Settlement, Step, Turn, export_agent};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The agent.
#[derive(Debug)]
pub struct Tutor;

/// How far the lesson has come.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Course {
    /// The question that is asked next, counted from 0.
    next: usize,
    /// Questions that were answered correctly.
    correct: usize,
}

impl Agent for Tutor {
    fn describe(&self) -> Description {
        Description::new("tutor", "Tutor", "Teaches a short lesson by asking questions.").leads("tutor")
    }

    fn on_opened(&self, turn: Turn<'_>) -> Step {
        with_lesson(turn, |lesson, _| {
            let count = lesson.questions.len();
            let greeting = format!("Welcome to the lesson \"{}\". There are {count} questions.", lesson.title);
            go_on(turn, lesson, Course::default(), greeting)
        })
    }

    fn on_said(&self, turn: Turn<'_>, _: &[MessageId]) -> Step {
        with_lesson(turn, |lesson, course| {
            let over = course.next >= lesson.questions.len();
            let answer = if over { "The lesson is over." } else { "Let us stay with the lesson: please answer the question." };
            go_on(turn, lesson, course, answer.to_owned())
        })
    }

    fn on_settled(&self, turn: Turn<'_>, settled: &[Settlement]) -> Step {
        with_lesson(turn, |lesson, course| match settled.first().map(|settlement| &settlement.outcome) {
            Some(Outcome::Value(response)) => match lesson.questions.get(course.next) {
                Some(question) => evaluate(turn, lesson, course, question, response),
                None => go_on(turn, lesson, course, "The lesson is over.".to_owned()),
            },
            // An answer that is too long to be told is no index.
            Some(Outcome::Parts(_)) => go_on(turn, lesson, course, "That is not one of the options.".to_owned()),
            Some(outcome) => Step::fail(format!("the question could not be asked: {outcome}")),
            None => Step::fail("the question has no outcome"),
        })
    }
}

/// Decides with the lesson and how far it has come; fails when the operator's lesson or the state makes no sense.
fn with_lesson(turn: Turn<'_>, decide: impl FnOnce(&Lesson, Course) -> Step) -> Step {
    let lesson = match turn.settings::<Settings>() {
        Ok(settings) => settings.lesson.unwrap_or_else(lesson::built_in),
        Err(error) => return Step::fail_with(&error),
    };
    if let Err(reason) = lesson.check() {
        return Step::fail(reason);
    }
    match turn.state::<Course>() {
        Ok(course) => decide(&lesson, course),
        Err(error) => Step::fail_with(&error),
    }
}

/// Goes on record, says what was right, and goes on with the next question.
fn evaluate(turn: Turn<'_>, lesson: &Lesson, course: Course, question: &Question, response: &Value) -> Step {
    let chosen = response.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
    let Some(chosen) = chosen.filter(|chosen| *chosen < question.options.len()) else {
        return go_on(turn, lesson, course, "That is not one of the options.".to_owned());
    };
    let correct = chosen == question.answer;
    let item = Item {
        prompt: json!({ "prompt": question.prompt, "options": question.options }),
        response: response.clone(),
        evaluation: Some(json!({ "correct": correct, "expected": question.answer, "explanation": question.explanation })),
    };
    let verdict = if correct { "Correct.".to_owned() } else { format!("Not quite: it is \"{}\".", question.solution()) };
    let feedback = format!("{verdict} {}", question.explanation).trim_end().to_owned();
    let course = Course { next: course.next + 1, correct: course.correct + usize::from(correct) };
    let mut step = go_on(turn, lesson, course, feedback);
    step.effects.insert(0, Effect::RecordItem(item));
    step
}

/// Says something and asks the next question, or ends the session when there is none.
fn go_on(turn: Turn<'_>, lesson: &Lesson, course: Course, words: String) -> Step {
    let step = match lesson.questions.get(course.next) {
        Some(question) => {
            let action = ClientAction::multiple_choice(&question.prompt, &question.options).locking_input();
            // The thread has grown since the last question, so the key is new even when the same question is asked again.
            let key = format!("question-{}-{}", course.next, turn.head().unwrap_or_default());
            Step::start([Operation::client(key, action)])
        }
        None => Step::complete(json!({ "title": lesson.title, "correct": course.correct, "total": lesson.questions.len() })),
    };
    step.say(words).keep(json!(course))
}

export_agent!(Tutor);

#[cfg(test)]
mod tests;
