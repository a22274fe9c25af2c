//! The researcher: answers a question from sources that it really read, and says which.
//!
//! A task is a message whose text is `{"operation": …, "parameters": {…}}`, which is what
//! `delegate` sends. `deep_research` plans questions, searches, reads pages, notes what they say,
//! asks what is still open, and writes a report; `synthesize_sources` reads the given sources
//! alone. Models see what strangers wrote between fences, and never decide what counts as a source:
//! numbers are given to what was read, and every number of a report is held against them.

mod memory;
mod notes;
mod prompts;
mod report;
mod session;
mod settings;
mod sources;
mod stages;
mod task;

use crate::memory::MEMO_FORMAT;
use crate::settings::Settings;
use agent_host_sdk::{Agent, Description, News, Step, Turn, export_agent};

/// The agent.
#[derive(Debug)]
pub struct Researcher;

impl Agent for Researcher {
    fn describe(&self) -> Description {
        let summary = "Searches, reads and compares sources, and reports what they say with \
                       numbers of those that it read.";
        Description::new("researcher", "Researcher", summary)
            .wants("web_search")
            .wants("web_fetch")
            .reads_memo(MEMO_FORMAT)
    }

    fn step(&self, turn: Turn<'_>, news: &[News]) -> Step {
        match Settings::from_turn(turn) {
            Ok(settings) => session::step(turn, &settings, news),
            Err(reason) => Step::fail(reason),
        }
    }
}

export_agent!(Researcher);

#[cfg(test)]
mod tests;
