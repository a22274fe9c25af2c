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
mod listing;
mod review;
mod symbols;
mod task;

use crate::analyze::{Analysis, Next};
use crate::generate::Generation;
use crate::review::Review;
use agent_host_sdk::{Agent, Description, MessageId, Settlement, Step, Turn, export_agent};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The operations with their parameters, for errors.
const OPERATIONS: &str = "analyze_code(path, patterns?), generate_code(spec, language?, \
                          framework?), review_code(diff, guidelines?), execute_code(code, \
                          language?, timeout?)";

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
        begin(turn, &text).unwrap_or_else(Step::fail)
    }

    fn on_settled(&self, turn: Turn<'_>, settled: &[Settlement]) -> Step {
        let work: Work = match turn.state() {
            Ok(work) => work,
            Err(error) => return Step::fail_with(&error),
        };
        go_on(turn, work, settled).unwrap_or_else(Step::fail)
    }
}

/// A task.
#[derive(Debug, Deserialize)]
#[serde(tag = "operation", content = "parameters")]
enum Task {
    #[serde(rename = "analyze_code")]
    Analyze(analyze::AnalyzeCode),
    #[serde(rename = "generate_code")]
    Generate(generate::GenerateCode),
    #[serde(rename = "review_code")]
    Review(review::ReviewCode),
    #[serde(rename = "execute_code")]
    Execute(execute::ExecuteCode),
}

/// The work under way, as the session's state keeps it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    #[default]
    None,
    Analyze(Box<Analysis>),
    Generate(Generation),
    Review(Box<Review>),
    Execute,
}

impl Work {
    /// The step that goes on with it.
    fn kept_by(&self, step: Step) -> Step {
        step.keep(json!(self))
    }
}

/// Reads a task, and begins its work.
///
/// # Errors
/// The fault of the task with the form that one has, or the tool that is missing.
fn begin(turn: Turn<'_>, text: &str) -> Result<Step, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!("this is not a task, which is {{\"operation\": …, \"parameters\": {{…}}}}: {error}")
    })?;
    // Whoever delegated gives the task up after this time.
    let timeout_ms = value.get("timeoutMs").and_then(Value::as_u64);
    let task = serde_json::from_value(value).map_err(|error| {
        format!("the task cannot be carried out: {error}. Supported: {OPERATIONS}")
    })?;
    let (work, step) = match task {
        Task::Analyze(asked) => {
            let (analysis, step) = analyze::begin(turn, asked)?;
            (Work::Analyze(Box::new(analysis)), step)
        }
        Task::Generate(asked) => {
            let step = generate::begin(turn, &asked)?;
            (Work::Generate(asked.into()), step)
        }
        Task::Review(asked) => {
            let (review, step) = review::begin(turn, &asked)?;
            (Work::Review(Box::new(review)), step)
        }
        Task::Execute(asked) => (Work::Execute, execute::begin(turn, asked, timeout_ms)?),
    };
    Ok(work.kept_by(step))
}

/// Takes in what has ended, and goes on, or replies with the result as JSON.
fn go_on(turn: Turn<'_>, work: Work, settled: &[Settlement]) -> Result<Step, String> {
    let result = match work {
        Work::None => return Err("this agent has nothing under way".to_owned()),
        Work::Analyze(mut analysis) => match analysis.go_on(turn, settled)? {
            Next::Step(step) => return Ok(Work::Analyze(analysis).kept_by(step)),
            Next::Result(result) => result,
        },
        Work::Generate(generation) => generate::finish(&generation, settled)?,
        Work::Review(review) => review::finish(&review, settled)?,
        Work::Execute => execute::finish(turn, settled)?,
    };
    Ok(Work::None.kept_by(Step::reply(result.to_string())))
}

export_agent!(Coder);

#[cfg(test)]
mod tests;
