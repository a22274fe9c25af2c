//! The coder: reads, writes, reviews and runs code, one operation a task.
//!
//! A task is a message whose text is `{"operation": …, "parameters": {…}}`, which is what
//! `delegate` sends. What can be found out without a model is: files, sizes, symbols, hits, and
//! whether a finding of a review is about a line that the diff has. A model adds words to it, and
//! its part is checked before it is passed on. Code of others reaches a model as fenced data.

mod analyze;
mod diff;
mod execute;
mod generate;
mod languages;
mod listing;
mod review;
mod symbols;
mod task;

use crate::task::{Work, read_task};
use agent_host_sdk::{Agent, Description, MessageId, Settlement, Step, Turn, export_agent};

/// The agent.
#[derive(Debug)]
pub struct Coder;

impl Agent for Coder {
    fn describe(&self) -> Description {
        Description::new(
            "coder",
            "Coder",
            "Analyzes, writes, reviews and runs code, one operation a task.",
        )
        .wants("list_files")
        .wants("read_file")
        .wants("search_files")
        .wants("execute_code")
    }

    fn on_said(&self, turn: Turn<'_>, messages: &[MessageId]) -> Step {
        let [message] = messages else {
            return Step::fail("send one task at a time; this agent was sent several at once");
        };
        let text = turn
            .message(*message)
            .map(|message| message.text())
            .unwrap_or_default();
        match read_task(&text).and_then(|(task, timeout_ms)| task::begin(turn, task, timeout_ms)) {
            Ok(step) => step,
            Err(reason) => Step::fail(reason),
        }
    }

    fn on_settled(&self, turn: Turn<'_>, settled: &[Settlement]) -> Step {
        let work: Work = match turn.state() {
            Ok(work) => work,
            Err(error) => return Step::fail_with(&error),
        };
        let next = match work {
            Work::None => Err("this agent has nothing under way".to_owned()),
            Work::Analyze(analysis) => analyze::go_on(turn, *analysis, settled),
            Work::Generate(generation) => generate::finish(&generation, settled),
            Work::Review(review) => review::finish(&review, settled),
            Work::Execute => execute::finish(turn, settled),
        };
        next.unwrap_or_else(Step::fail)
    }
}

export_agent!(Coder);

#[cfg(test)]
mod tests;
