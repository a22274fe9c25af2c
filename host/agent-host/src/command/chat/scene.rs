//! The parts of an event stream that a conversation shows. Pure: frames in, things to show out.

#[cfg(test)]
mod tests;

use super::question::Question;
use crate::fields::{is_true, list, text};
use crate::terminal::Shade;
use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of a call's arguments, and of its result, on a line.
const DETAIL_CHARS_MAX: usize = 100;
/// Levels by which what agents further below do is moved to the right.
const DEPTH_SHOWN_MAX: usize = 8;

/// Something to show.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shown {
    /// Text of the agent's, as it comes.
    Text(String),
    /// A line beside it.
    Line(Shade, String),
    /// A question to the user.
    Question(Question),
    /// A turn has ended.
    TurnEnded,
    /// The session has ended.
    SessionEnded,
}

/// The state of the display, as far as it decides what is shown next.
#[derive(Debug, Default)]
pub(super) struct Scene {
    /// The text that has streamed in, by operation.
    streamed: BTreeMap<String, String>,
    /// The one that streams now.
    streaming: Option<String>,
    /// Tools of operations that were started.
    tools: BTreeMap<String, String>,
}

fn faint(line: impl Into<String>) -> Shown {
    Shown::Line(Shade::Faint, line.into())
}

fn bold(line: String) -> Shown {
    Shown::Line(Shade::Bold, line)
}

/// The beginning of a text, on one line.
fn brief(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(DETAIL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

impl Scene {
    /// Returns the things that a frame shows.
    pub(super) fn take(&mut self, name: &str, frame: &Value) -> Vec<Shown> {
        match frame.get("spawned") {
            Some(spawned) => self.below(name, frame, spawned),
            None => self.own(name, frame),
        }
    }

    /// Returns the activity of an agent further below, indented: its tools, its failures and its
    /// questions. Its replies are for the agent above it, whose call shows the outcome.
    fn below(&mut self, name: &str, frame: &Value, spawned: &Value) -> Vec<Shown> {
        let data = frame.get("data").unwrap_or(&Value::Null);
        let shown = match name {
            "delta" if text(frame, "/kind") == "note" => self.delta(frame),
            "run.stepped.v1" => self.stepped(data),
            "run.settled.v1" => self.mishaps(data),
            "operation.continued.v1" => questions(data),
            "run.step_failed.v1" => step_failed(data),
            "run.ended.v1" => self.messages(data),
            _ => Vec::new(),
        };
        let depth = spawned.get("depth").and_then(Value::as_u64);
        let depth = depth.map_or(1, |depth| usize::try_from(depth).unwrap_or(1));
        let margin = format!(
            "{}{}",
            "    ".repeat(depth.min(DEPTH_SHOWN_MAX)),
            relative(text(spawned, "/agent_path"), depth)
        );
        let indented = |shown| match shown {
            Shown::Line(Shade::Faint, line) => Some(faint(format!("{margin}{line}"))),
            Shown::Question(question) => {
                Some(Shown::Question(question.asked_by(text(frame, "/agent_id"))))
            }
            Shown::Line(Shade::Plain | Shade::Bold, _)
            | Shown::Text(_)
            | Shown::TurnEnded
            | Shown::SessionEnded => None,
        };
        shown.into_iter().filter_map(indented).collect()
    }

    fn own(&mut self, name: &str, frame: &Value) -> Vec<Shown> {
        let data = frame.get("data").unwrap_or(&Value::Null);
        match name {
            "delta" => self.delta(frame),
            "attempt-discarded" => {
                self.streamed.remove(text(frame, "/operation_id"));
                vec![faint("(that reply broke off; another attempt follows)")]
            }
            "run.stepped.v1" => self.stepped(data),
            "run.settled.v1" => self.mishaps(data),
            "operation.continued.v1" => questions(data),
            "run.step_failed.v1" => step_failed(data),
            "run.ended.v1" => self.ended(data),
            "session.input.dead.v1" => {
                let reason = text(data, "/reason");
                let line = bold(format!("that could not be dealt with: {reason}"));
                vec![line, Shown::TurnEnded]
            }
            "agent.session.completed.v1" => {
                let summary = data.get("summary").map(ToString::to_string);
                let summary = summary.unwrap_or_default();
                let line = bold(format!("the session is complete: {summary}"));
                vec![line, Shown::SessionEnded]
            }
            "agent.session.terminated.v1" => {
                let line = bold(format!("the session was ended: {}", text(data, "/reason")));
                vec![line, Shown::SessionEnded]
            }
            _ => Vec::new(),
        }
    }

    fn delta(&mut self, frame: &Value) -> Vec<Shown> {
        match text(frame, "/kind") {
            "text" => {
                let operation = text(frame, "/operation_id");
                let mut shown = Vec::new();
                if self.streaming.as_deref() != Some(operation) {
                    let before = self.streaming.replace(operation.to_owned());
                    shown.extend(before.map(|_| Shown::Text("\n".to_owned())));
                }
                let streamed = self.streamed.entry(operation.to_owned()).or_default();
                streamed.push_str(text(frame, "/text"));
                shown.push(Shown::Text(text(frame, "/text").to_owned()));
                shown
            }
            "note" => vec![faint(format!("  · {}", brief(text(frame, "/text"))))],
            _ => Vec::new(),
        }
    }

    fn stepped(&mut self, data: &Value) -> Vec<Shown> {
        let mut shown = self.mishaps(data);
        shown.extend(self.messages(data));
        for started in list(data, "/started") {
            let kind = text(started, "/kind");
            let tool = text(started, "/tool");
            if tool.is_empty() {
                continue;
            }
            self.tools
                .insert(text(started, "/operation_id").to_owned(), tool.to_owned());
            let arguments = started
                .get("arguments")
                .map(ToString::to_string)
                .unwrap_or_default();
            shown.push(match kind {
                "refused" => faint(format!(
                    "  ✗ {tool}: refused ({})",
                    text(started, "/outcome")
                )),
                _ => faint(format!("  → {tool} {}", brief(&arguments))),
            });
        }
        shown.extend(questions(data));
        shown
    }

    fn messages(&mut self, data: &Value) -> Vec<Shown> {
        let mut shown = Vec::new();
        for message in list(data, "/messages") {
            let words = text(message, "/text");
            match text(message, "/role") {
                "assistant" if self.has_streamed(words) => self.streaming = None,
                "assistant" if !words.is_empty() => {
                    shown.push(Shown::Line(Shade::Plain, words.to_owned()))
                }
                "notice" => shown.push(faint(format!("  ! {}", brief(words)))),
                "tool" => {
                    let failed = is_true(message, "/answers/failed");
                    let name = text(message, "/answers/name");
                    let (succeeded, result) =
                        delegated(words).unwrap_or((!failed, words.to_owned()));
                    shown.push(faint(format!(
                        "  {} {name} {}",
                        if succeeded { '✓' } else { '✗' },
                        brief(&result)
                    )));
                }
                _ => {}
            }
        }
        shown
    }

    /// Returns whether a reply is on the screen already. Parts stream in without the line breaks
    /// that are between them when they are committed.
    fn has_streamed(&self, words: &str) -> bool {
        let visible = |text: &str| {
            text.chars()
                .filter(|c| !c.is_whitespace())
                .collect::<String>()
        };
        let words = visible(words);
        !words.is_empty()
            && self
                .streamed
                .values()
                .any(|streamed| visible(streamed) == words)
    }

    /// Tools whose end leaves no message.
    fn mishaps(&self, data: &Value) -> Vec<Shown> {
        list(data, "/settled")
            .iter()
            .filter_map(|settled| {
                let tool = self.tools.get(text(settled, "/operation_id"))?;
                let outcome = text(settled, "/outcome");
                let told = settled
                    .pointer("/failure/message")
                    .and_then(Value::as_str)
                    .unwrap_or(outcome);
                matches!(outcome, "failed" | "denied" | "timed_out" | "unknown")
                    .then(|| faint(format!("  ✗ {tool} {}", brief(told))))
            })
            .collect()
    }

    fn ended(&mut self, data: &Value) -> Vec<Shown> {
        let mut shown = self.messages(data);
        let told = [text(data, "/code"), text(data, "/reason")]
            .iter()
            .filter(|part| !part.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join(": ");
        match text(data, "/end") {
            "failed" => shown.push(bold(format!("the turn failed: {told}"))),
            "aborted" => shown.push(bold(format!("the turn was cancelled: {told}"))),
            _ => {}
        }
        self.streaming = None;
        self.streamed.clear();
        self.tools.clear();
        shown.push(Shown::TurnEnded);
        shown
    }
}

/// Reads a result of `delegate`: whether the work succeeded, and its outcome.
fn delegated(words: &str) -> Option<(bool, String)> {
    let result: Value = serde_json::from_str(words).ok()?;
    let succeeded = result.get("success")?.as_bool()?;
    let told = ["/output", "/error/message"]
        .iter()
        .find_map(|pointer| result.pointer(pointer)?.as_str())
        .map(str::to_owned);
    Some((
        succeeded,
        told.or_else(|| result.get("data").map(ToString::to_string))
            .unwrap_or_default(),
    ))
}

fn step_failed(data: &Value) -> Vec<Shown> {
    let told = [
        text(data, "/outcome").to_owned(),
        brief(text(data, "/detail")),
    ];
    let told: Vec<&str> = told
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    vec![faint(format!("(a step failed: {})", told.join(", ")))]
}

/// Returns the part of a path below the conversation's agent: `sub/0` of
/// `/local/agent/assistant/sub/0` at a depth of 1.
fn relative(path: &str, depth: usize) -> String {
    let segments: Vec<&str> = path.split('/').collect();
    segments
        .get(segments.len().saturating_sub(2 * depth)..)
        .unwrap_or_default()
        .join("/")
}

fn questions(data: &Value) -> Vec<Shown> {
    list(data, "/client_actions")
        .iter()
        .filter_map(Question::read)
        .map(Shown::Question)
        .collect()
}
