//! `execute_code`: a program's run by the tool of the same name.
//!
//! A program that throws or runs out of its means has a result all the same. Only a task that
//! cannot be carried out, such as one in a language that is not installed, fails. Of long output
//! the reply has the beginning and the end.

use crate::task::{REPLY_BYTES_MAX, need_tools, text_from};
use agent_host_sdk::{Failure, Operation, Outcome, Settlement, Step, Turn};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The tool's name.
const TOOL: &str = "execute_code";
/// The beginning of the names of tools that run programs in one more language, which ends them:
/// `execute_python`. They take the same arguments and give the same results.
const TOOL_OF_LANGUAGE: &str = "execute_";
/// Other names of languages, each with the one that its tool has.
const ALIASES: [(&str, &str); 2] = [("py", "python"), ("python3", "python")];
/// The key of its call.
const RUN: &str = "run";
/// The part of the task's own limit that stays for the reply: one in so many.
const RESERVE_PART: u64 = 6;
/// Milliseconds of the longest time that has a timer: longer than any task of the coder's.
const TIMEOUT_MS_MAX: u64 = 3_600_000;
/// Milliseconds after a program's time at which its call is given up. The tool looks at the clock
/// between instructions, and one of them may take for ever. The timer runs from the step on, and
/// the call may have to wait for its place before its own time begins.
const GRACE_MS: u64 = 5_000;
/// Milliseconds that a tool lets a program run for if its call has no `timeout`.
const TOOL_MS: u64 = 800;
/// Milliseconds before a call is given up at which the tool stops the program itself, so that its
/// output is kept.
const MARGIN_MS: u64 = 500;
/// The part of a call's time that this is at most: one in so many.
const MARGIN_PART: u64 = 4;
/// Bytes of a long field's beginning, and of its end, in a reply: the first that fits.
const EDGE_BYTES: [usize; 4] = [5 << 10, 2 << 10, 512, 128];
/// Words of a crash by which calls, or the parts of a value, were nested too deeply.
const NO_DEPTH: &str = "call stack exhausted";
/// Words of a crash by which a value was asked for that no memory can hold: the interpreter gives
/// up before it asks the host.
const NO_ROOM: [&str; 2] = ["capacity overflow", "memory allocation of"];

/// The parameters of `execute_code`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteCode {
    code: String,
    language: Option<String>,
    timeout: Option<u64>,
}

pub(crate) fn begin(
    turn: Turn<'_>,
    asked: ExecuteCode,
    timeout_ms: Option<u64>,
) -> Result<Step, String> {
    let tool = tool_for(turn, asked.language.as_deref());
    need_tools(turn, &[tool.as_str()])?;
    let mut arguments = Map::from_iter([("code".to_owned(), Value::from(asked.code))]);
    if let Some(language) = asked.language {
        arguments.insert("language".to_owned(), language.into());
    }
    let before_end = timeout_ms.map(|ms| ms - ms / RESERVE_PART);
    let own = program_ms(asked.timeout, before_end);
    if let Some(timeout) = own {
        arguments.insert("timeout".to_owned(), timeout.into());
    }
    let mut start = vec![Operation::tool(RUN, tool, arguments.into())];
    let with_grace = own.map(|ms| ms.saturating_add(GRACE_MS));
    let time_ms = with_grace.into_iter().chain(before_end).min();
    if let Some(time_ms) = time_ms.filter(|time_ms| *time_ms <= TIMEOUT_MS_MAX) {
        start.push(Operation::timer_ms("time", time_ms));
    }
    Ok(Step::start(start).until_any())
}

/// Returns the milliseconds that a call asks for its program: those of the task, within the time
/// after which the call is given up. None where the tool's own are right.
fn program_ms(asked_ms: Option<u64>, call_ms: Option<u64>) -> Option<u64> {
    let Some(call_ms) = call_ms else {
        return asked_ms;
    };
    let most_ms = call_ms - MARGIN_MS.min(call_ms / MARGIN_PART);
    match asked_ms {
        Some(asked_ms) => Some(asked_ms.min(most_ms)),
        None => (most_ms < TOOL_MS).then_some(most_ms),
    }
}

pub(crate) fn finish(turn: Turn<'_>, settled: &[Settlement]) -> Result<Value, String> {
    let Some(settlement) = settled.iter().find(|one| one.key == RUN) else {
        // The time is up; the call is cancelled with the end of this turn.
        return Ok(stopped(
            "timed-out",
            "the program was stopped in the middle of an instruction: its time was up",
        ));
    };
    match &settlement.outcome {
        Outcome::Parts(_) => {
            let text = text_from(turn, settlement)?;
            let result: Value = serde_json::from_str(&text)
                .map_err(|error| format!("the program's result cannot be read: {error}"))?;
            Ok(fitted(&result))
        }
        Outcome::TimedOut => Ok(stopped(
            "timed-out",
            "the program ran for longer than it may",
        )),
        Outcome::Failed(failure) => match failure.code.as_str() {
            "out-of-cpu" => Ok(stopped(
                "timed-out",
                "the program computed for longer than it may",
            )),
            "out-of-memory" => Ok(stopped(
                "out-of-memory",
                "the program used more memory than it may",
            )),
            "trapped" if NO_ROOM.iter().any(|sign| failure.message.contains(sign)) => Ok(stopped(
                "out-of-memory",
                "the program asked for more memory at once than there can be",
            )),
            "trapped" if failure.message.contains(NO_DEPTH) => Ok(stopped(
                "crashed",
                "the program, or a value that it made, is nested too deeply",
            )),
            "trapped" => Ok(stopped("crashed", &failure.message)),
            _ => Err(refused(turn, failure)),
        },
        outcome => Err(format!("`{TOOL}`: {outcome}")),
    }
}

/// Returns the tool that runs a language: its own if the agent has it, otherwise the common one.
fn tool_for(turn: Turn<'_>, language: Option<&str>) -> String {
    let asked = language.unwrap_or_default().trim().to_lowercase();
    let name = ALIASES
        .iter()
        .find(|(alias, _)| *alias == asked)
        .map_or(asked.as_str(), |(_, name)| *name);
    let own = format!("{TOOL_OF_LANGUAGE}{name}");
    if turn.tool_names().contains(&own) {
        own
    } else {
        TOOL.to_owned()
    }
}

/// The failure of a call, with the languages that have a tool of their own: the tool that failed
/// knows only those that it runs itself.
fn refused(turn: Turn<'_>, failure: &Failure) -> String {
    let names = turn.tool_names();
    let others: Vec<&str> = names
        .iter()
        .filter(|name| *name != TOOL)
        .filter_map(|name| name.strip_prefix(TOOL_OF_LANGUAGE))
        .collect();
    if others.is_empty() || failure.code != "invalid-arguments" {
        return failure.to_string();
    }
    let others = others.join(", ");
    format!("{failure}; languages with a tool of their own: {others}")
}

/// The result with as much of its long fields as there is room for.
fn fitted(result: &Value) -> Value {
    let mut fitted = Value::Null;
    for edge in EDGE_BYTES {
        fitted = result.clone();
        shorten(&mut fitted, edge);
        if fitted.to_string().len() <= REPLY_BYTES_MAX {
            break;
        }
    }
    fitted
}

/// Leaves of long fields their beginning and their end, those of the error included.
fn shorten(result: &mut Value, edge: usize) {
    let Some(fields) = result.as_object_mut() else {
        return;
    };
    for (name, field) in fields {
        match field {
            Value::Object(_) if name == "error" => shorten(field, edge),
            Value::String(text) => {
                if let Some(short) = without_middle(text, edge) {
                    *field = short.into();
                }
            }
            // Its frames are few and short.
            Value::Array(_) if name == "stack" => {}
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::Array(_) | Value::Object(_) => {
                if let Some(short) = without_middle(&field.to_string(), edge) {
                    *field = short.into();
                }
            }
        }
    }
}

/// The beginning and the end of a long text; none of a short one.
fn without_middle(text: &str, edge: usize) -> Option<String> {
    if text.len() <= 2 * edge {
        return None;
    }
    let head = text.get(..text.floor_char_boundary(edge));
    let tail = text.get(text.floor_char_boundary(text.len() - edge)..);
    Some(format!(
        "{}\n[… {} bytes in all; only the beginning and the end are here …]\n{}",
        head.unwrap_or_default(),
        text.len(),
        tail.unwrap_or_default()
    ))
}

/// The result of a program that the host stopped. What it printed went with it.
fn stopped(status: &str, message: &str) -> Value {
    json!({
        "status": status,
        "stdout": "",
        "stderr": "",
        "error": { "name": "Stopped", "message": message },
    })
}
