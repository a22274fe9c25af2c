//! The worker: turns a task into one tool call and replies with its result. It never asks a model.
//!
//! A task is a message whose text is `{"operation": <a tool's name>, "parameters": {…}}`, which is
//! what `delegate` sends. One operation is two tools: `web_fetch` with a method that may change
//! something is a call of `web_send`, which the host never repeats.

use agent_host_sdk::{
    Agent, Description, MessageId, Operation, Outcome, Settlement, Step, Turn, export_agent,
    shortened,
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
/// The methods of all others.
const READING: [&str; 2] = ["GET", "HEAD"];
/// The key of a task's operation begins so, and ends with the id of the task's message.
const KEY: &str = "task-";
/// Bytes of a path or a host in a title.
const PLACE_BYTES_MAX: usize = 300;

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
                    format!("{KEY}{id}"),
                    call.tool,
                    call.arguments.into(),
                )),
                Err(reason) => return Step::fail(reason),
            }
        }
        Step::start(operations)
    }

    fn on_settled(&self, turn: Turn<'_>, settled: &[Settlement]) -> Step {
        let mut results = Vec::new();
        for settlement in settled {
            match &settlement.outcome {
                Outcome::Parts(parts) => results.extend(parts.iter().cloned()),
                // A tool's own words say what they are about.
                Outcome::Failed(failure) => return Step::fail(failure.to_string()),
                outcome => {
                    let task = title_of(turn, &settlement.key);
                    return Step::fail(format!("{task}: {outcome}"));
                }
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

/// Reads a task.
fn task_of(turn: Turn<'_>, id: MessageId) -> Result<Task, String> {
    let text = turn
        .message(id)
        .map(|message| message.text())
        .unwrap_or_default();
    serde_json::from_str(&text).map_err(|error| {
        format!("this is not a task, which is {{\"operation\": …, \"parameters\": {{…}}}}: {error}")
    })
}

/// Returns a title for the task of an operation: its name, its method, and its path or host.
fn title_of(turn: Turn<'_>, key: &str) -> String {
    let id = key.strip_prefix(KEY).and_then(|id| id.parse().ok());
    let task = id.and_then(|id| task_of(turn, id).ok());
    let Some(Task {
        operation,
        parameters,
    }) = task
    else {
        return "the task".to_owned();
    };
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    if let Some(url) = text("url") {
        let method = method_of(&parameters);
        let host = shortened(host_of(url), PLACE_BYTES_MAX);
        return format!("`{operation}` with {method} to `{host}`");
    }
    match text("path") {
        Some(path) => format!("`{operation}` of `{}`", shortened(path, PLACE_BYTES_MAX)),
        None => format!("`{operation}`"),
    }
}

/// The host of an address, with its port if it names one, and without a user's name.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority).trim()
}

/// The method of a request, in capitals.
fn method_of(parameters: &Map<String, Value>) -> String {
    let method = parameters.get("method").and_then(Value::as_str);
    method.unwrap_or("GET").trim().to_ascii_uppercase()
}

/// Reads a task, and sees that there is a tool for it.
fn call_of(turn: Turn<'_>, id: MessageId) -> Result<Call, String> {
    let task = task_of(turn, id)?;
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
    let method = method_of(&parameters);
    if CHANGING.contains(&method.as_str()) {
        return Ok(Call {
            tool: SEND.to_owned(),
            arguments: parameters,
        });
    }
    if !READING.contains(&method.as_str()) {
        return Err(format!(
            "`method` must be one of {}, {}",
            READING.join(", "),
            CHANGING.join(", ")
        ));
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
