//! The evaluator: examines, and scores against a rubric.
//!
//! One attempt at each item, no hints, and not a word about right and wrong before the end. Closed
//! items are scored by comparison, open ones by a model against the rubric while the next is being
//! answered. What no model could judge is left for a person and never counts as wrong. Each item is
//! on the session's record once it is scored, so that an exam that is broken off keeps what was
//! answered: an item whose judgement took longer than the next answer stands after that, and its
//! `number` says where it belongs. The whole exam is one turn; the attempt is the session's state.

mod attempt;
mod exam;
mod memory;
mod session;

use crate::exam::Exam;
use crate::session::Session;
use agent_host_sdk::{Agent, Description, News, Step, Turn, export_agent};

/// The agent.
#[derive(Debug)]
pub struct Evaluator;

impl Agent for Evaluator {
    fn describe(&self) -> Description {
        Description::new(
            "evaluator",
            "Evaluator",
            "Examines and scores against a rubric.",
        )
        .leads("validation")
    }

    fn step(&self, turn: Turn<'_>, news: &[News]) -> Step {
        let exam = match Exam::of(turn) {
            Ok(exam) => exam,
            Err(reason) => return Step::fail(reason),
        };
        match Session::resume(turn, exam) {
            Ok(session) => session.step(news),
            Err(error) => Step::fail_with(&error),
        }
    }
}

export_agent!(Evaluator);

#[cfg(test)]
mod tests;
