//! Thought: leads a Socratic dialogue. It asks, one question at a time, and never lectures.
//!
//! Each message of the user's is a turn that ends with the next question; the session goes on until
//! the user ends it. A model asks the questions, and now and then notes what was found; the notes
//! are the session's state.

mod dialogue;
mod memory;
mod prompts;
mod session;

use crate::dialogue::Config;
use crate::session::Session;
use agent_host_sdk::{Agent, Description, News, Step, Turn, export_agent};

/// The agent.
#[derive(Debug)]
pub struct Thought;

impl Agent for Thought {
    fn describe(&self) -> Description {
        let summary = "Leads a Socratic dialogue: asks until you see more clearly what you think.";
        Description::new("thought", "Thought", summary)
            .leads("thought")
            .reads_memo(dialogue::MEMO_FORMAT)
    }

    fn step(&self, turn: Turn<'_>, news: &[News]) -> Step {
        let config = match Config::of(turn) {
            Ok(config) => config,
            Err(reason) => return Step::fail(reason),
        };
        match Session::resume(turn, config) {
            Ok(session) => session.step(news),
            Err(error) => Step::fail_with(&error),
        }
    }
}

export_agent!(Thought);

#[cfg(test)]
mod tests;
