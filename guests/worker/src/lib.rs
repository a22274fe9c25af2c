//! The worker: turns a task into one tool call and replies with its result. It never asks a model.
//!
//! A task is a message whose text is `{"operation": <a tool's name>, "parameters": {…}}`, which is
//! what `delegate` sends.

use agent_host_sdk::{
    Agent, Description, MessageId, Operation, Outcome, Settlement, Step, Turn, export_agent,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The agent.
#[derive(Debug)]
pub struct Worker;

/// The content of a message.
#[derive(Debug, Deserialize)]
struct Task {
    operation: String,
    #[serde(default)]
    parameters: Map<String, Value>,
}

impl Agent for Worker {
    fn describe(&self) -> Description {
        Description::new(
            "worker",
            "Worker",
            "Carries out one operation with its tools, without a model.",
        )
    }

    fn on_said(&self, turn: Turn<'_>, messages: &[MessageId]) -> Step {
        let mut operations = Vec::new();
        for id in messages {
            match task_of(turn, *id) {
                Ok(task) => operations.push(Operation::tool(
                    format!("task-{id}"),
                    task.operation,
                    task.parameters.into(),
                )),
                Err(reason) => return Step::fail(reason),
            }
        }
        Step::start(operations)
    }

    fn on_settled(&self, _: Turn<'_>, settled: &[Settlement]) -> Step {
        let mut results = Vec::new();
        for settlement in settled {
            match &settlement.outcome {
                Outcome::Parts(parts) => results.extend(parts.iter().cloned()),
                outcome => return Step::fail(outcome.to_string()),
            }
        }
        if results.is_empty() {
            Step::reply("done")
        } else {
            Step::reply(results)
        }
    }
}

/// Reads a task, and sees that there is a tool for it.
fn task_of(turn: Turn<'_>, id: MessageId) -> Result<Task, String> {
    let text = turn
        .message(id)
        .map(|message| message.text())
        .unwrap_or_default();
    let task: Task = serde_json::from_str(&text).map_err(|error| {
        format!("this is not a task, which is {{\"operation\": …, \"parameters\": {{…}}}}: {error}")
    })?;
    let supported = turn.tool_names();
    if supported.contains(&task.operation) {
        return Ok(task);
    }
    let supported = supported.join(", ");
    Err(format!(
        "operation `{}` is not supported by this worker, which has: {supported}",
        task.operation
    ))
}

export_agent!(Worker);

#[cfg(test)]
mod tests;
