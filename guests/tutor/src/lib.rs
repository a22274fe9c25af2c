//! The tutor: teaches a lesson part by part, checks what was understood, and remembers what helps
//! the next time: of each user how they learn, and for all users which lessons were taught and how
//! they went.
//!
//! The lesson is the user's, given with the session; or the operator's; or a built-in one. A model
//! explains, writes questions where the lesson has none, judges words and answers what the student
//! asks. A lesson of closed questions and no text needs no model at all. How far the lesson has
//! come is the session's state, what is under way the turn's memo.

mod course;
mod evaluate;
mod lesson;
mod memory;
mod prompts;
mod session;

use crate::lesson::Lesson;
use crate::session::Session;
use agent_host_sdk::{Agent, Description, News, Step, Turn, export_agent};

/// The agent.
#[derive(Debug)]
pub struct Tutor;

impl Agent for Tutor {
    fn describe(&self) -> Description {
        let summary = "Teaches a lesson and checks what was understood.";
        Description::new("tutor", "Tutor", summary)
            .leads("learning")
            .reads_memo(course::MEMO_FORMAT)
    }

    fn step(&self, turn: Turn<'_>, news: &[News]) -> Step {
        let lesson = match Lesson::of(turn) {
            Ok(lesson) => lesson,
            Err(reason) => return Step::fail(reason),
        };
        match Session::resume(turn, lesson) {
            Ok(session) => session.step(news),
            Err(error) => Step::fail_with(&error),
        }
    }
}

export_agent!(Tutor);

#[cfg(test)]
mod tests;
