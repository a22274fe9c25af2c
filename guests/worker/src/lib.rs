//! The worker: turns a task into one tool call and replies with its result. It never asks a model.
//!
//! A task is a message whose text is `{"operation": <a tool's name>, "parameters": {…}}`, which is
//! what `delegate` sends. One operation is two tools: `web_fetch` with a method that may change
//! something is a call of `web_send`, which the host never repeats.

use agent_host_sdk::{
    Agent, Description, MessageId, Operation, Outcome, Settlement, Step, Turn, export_agent,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The agent.
#[derive(Debug)]
pub struct Worker;

/// The operation that is also carried out by another tool.
const FETCH: &str = "web_fetch";
/// The tool for requests that may change something.
const SEND: &str = "web_send";
/// The methods of such requests.
const CHANGING: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

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
            match call_of(turn, *id) {
                Ok(call) => operations.push(Operation::tool(
                    format!("task-{id}"),
                    call.tool,
                    call.arguments.into(),
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

/// The call that carries a task out.
struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

/// Reads a task, and sees that there is a tool for it.
fn call_of(turn: Turn<'_>, id: MessageId) -> Result<Call, String> {
    let text = turn
        .message(id)
        .map(|message| message.text())
        .unwrap_or_default();
    let task: Task = serde_json::from_str(&text).map_err(|error| {
        format!("this is not a task, which is {{\"operation\": …, \"parameters\": {{…}}}}: {error}")
    })?;
    let operation = task.operation.clone();
    let call = tool_call(task)?;
    let supported = turn.tool_names();
    if supported.contains(&call.tool) {
        return Ok(call);
    }
    let supported = supported.join(", ");
    Err(if call.tool == operation {
        format!("operation `{operation}` is not supported by this worker, which has: {supported}")
    } else {
        format!(
            "operation `{operation}` with this method needs the tool `{}`, which this worker does \
             not have; it has: {supported}",
            call.tool
        )
    })
}

/// The call of a task: the tool of the operation's name with its parameters, but for requests that
/// may change something.
fn tool_call(task: Task) -> Result<Call, String> {
    let Task {
        operation,
        mut parameters,
    } = task;
    if operation != FETCH {
        return Ok(Call {
            tool: operation,
            arguments: parameters,
        });
    }
    let method = parameters.get("method").and_then(Value::as_str);
    let method = method.unwrap_or("GET").trim().to_ascii_uppercase();
    if CHANGING.contains(&method.as_str()) {
        return Ok(Call {
            tool: SEND.to_owned(),
            arguments: parameters,
        });
    }
    // Models write an empty body for none.
    match parameters.remove("body") {
        None | Some(Value::Null) => {}
        Some(Value::String(body)) if body.is_empty() => {}
        Some(_) => {
            return Err(format!(
                "a request with {method} has no body: leave `body` out, or set `method` to one of {}",
                CHANGING.join(", ")
            ));
        }
    }
    Ok(Call {
        tool: operation,
        arguments: parameters,
    })
}

export_agent!(Worker);

#[cfg(test)]
mod tests;
