//! The parts of an event stream that a conversation shows. Pure: frames in, things to show out.

mod delegated;
#[cfg(test)]
mod tests;

use super::question::Question;
use crate::answer::{is_true, list, number, text};
use crate::terminal::Shade;
use delegated::{Delegated, DelegatedOutcome, ReportedReasons, ends_with_reason, joined};
use domain::delegate::NAME as DELEGATE;
use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of a call's arguments, and of its result, on a line.
const DETAIL_CHARS_MAX: usize = 100;
/// Characters of the reason of a failure on a line.
const REASON_CHARS_MAX: usize = 300;
/// Levels by which what agents further below do is moved to the right.
const DEPTH_SHOWN_MAX: usize = 8;

/// Something to show.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shown {
    /// Text of the agent's, as it comes.
    Text(String),
    /// A text of the agent's as a whole.
    Said(String),
    /// A line beside it.
    Line(Shade, String),
    /// A question to the user.
    Question(Question),
    /// A turn has ended.
    TurnEnded(Ending),
    /// The session has ended.
    SessionEnded,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// The agent has replied.
    Done,
    /// The host's own turn, which compacts the conversation or brings a summary back, is over.
    Compacted,
    /// The turn failed, for this reason.
    Failed(String),
    /// The turn was cancelled, for this reason.
    Cancelled(String),
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
    /// The run that compacts the conversation.
    compacting: Option<String>,
    /// The run that brings the summary of another conversation back.
    returning: Option<String>,
    /// The last message that was shown before the stream began.
    recalled: u64,
    /// The reasons that the turn has told.
    reported: ReportedReasons,
    /// The report on the last attempt at a model call that failed in the turn: what the host says
    /// of it, and the provider's own words.
    report: String,
}

/// The first words of the line about the host's notice that a step gave the turn up.
const GIVEN_UP: &str = "  ! The turn failed: ";
/// Line about a cut of the prompts of a turn.
const CUT: &str = "(the model is shown older results in short from here on)";

fn faint(line: impl Into<String>) -> Shown {
    Shown::Line(Shade::Faint, line.into())
}

fn bold(line: String) -> Shown {
    Shown::Line(Shade::Bold, line)
}

/// The beginning of a text, on one line.
fn brief(text: &str) -> String {
    cut(text, DETAIL_CHARS_MAX)
}

/// The first characters of a text, on one line.
fn cut(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Returns the line about progress.
fn note(words: &str) -> String {
    format!("  · {}", brief(words))
}

impl Scene {
    /// Returns the things that a frame shows. The start of a run may have its first step with it.
    pub(super) fn take(&mut self, name: &str, frame: &Value) -> Vec<Shown> {
        let mut shown = self.taken(name, frame);
        if let Some(step) = frame.pointer("/data/first_step") {
            let mut stepped = frame.clone();
            if let Some(data) = stepped.get_mut("data") {
                data.clone_from(step);
            }
            shown.extend(self.taken("run.stepped.v1", &stepped));
        }
        shown
    }

    fn taken(&mut self, name: &str, frame: &Value) -> Vec<Shown> {
        match frame.get("spawned") {
            Some(spawned) => self.below(name, frame, spawned),
            None => self.own(name, frame),
        }
    }

    /// Returns the activity of an agent further below, indented: its tools, its progress, its
    /// failures and its questions. Its replies are for the agent above it, whose call shows the
    /// outcome.
    fn below(&mut self, name: &str, frame: &Value, spawned: &Value) -> Vec<Shown> {
        let data = frame.get("data").unwrap_or(&Value::Null);
        let shown = match name {
            "delta" if text(frame, "/kind") == "note" => self.delta(frame),
            "run.stepped.v1" => self.stepped(data, 0),
            "run.settled.v1" => self.mishaps(data),
            "operation.continued.v1" => questions(data),
            "run.step_failed.v1" => step_failed(data),
            "run.ended.v1" => self.messages(data, 0),
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
            Shown::Said(words) if is_progress(data, &words) && self.reported.is_new(&words) => {
                Some(faint(format!("{margin}{}", note(&words))))
            }
            _ => None,
        };
        shown.into_iter().filter_map(indented).collect()
    }

    fn own(&mut self, name: &str, frame: &Value) -> Vec<Shown> {
        let data = frame.get("data").unwrap_or(&Value::Null);
        let run = text(frame, "/run_id");
        if self.compacting.as_deref().is_some_and(|it| it == run) {
            return self.compaction(name, data);
        }
        if self.returning.as_deref().is_some_and(|it| it == run) {
            return self.coming_back(name, data);
        }
        match name {
            "run.started.v1"
                if data
                    .pointer("/compacts/returns")
                    .is_some_and(Value::is_object) =>
            {
                self.returning = Some(run.to_owned());
                Vec::new()
            }
            "run.started.v1" if data.get("compacts").is_some_and(Value::is_object) => {
                self.compacting = Some(run.to_owned());
                Vec::new()
            }
            "delta" => self.delta(frame),
            "attempt-discarded" => {
                self.streamed.remove(text(frame, "/operation_id"));
                vec![faint("(that reply broke off; another attempt follows)")]
            }
            "run.stepped.v1" => {
                self.note_report(data);
                let mut shown = self.stepped(data, self.recalled);
                // The turn's end tells it too.
                if text(data, "/decision") == "fail" {
                    shown.retain(|shown| match shown {
                        Shown::Line(_, line) => !line.starts_with(GIVEN_UP),
                        _ => true,
                    });
                }
                shown
            }
            "run.settled.v1" => {
                self.note_report(data);
                self.mishaps(data)
            }
            "operation.continued.v1" => questions(data),
            "run.step_failed.v1" => step_failed(data),
            "run.cut.v1" => vec![faint(CUT)],
            "run.ended.v1" => self.ended(data),
            "session.input.dead.v1" => {
                let reported = format!("that could not be dealt with: {}", text(data, "/reason"));
                vec![Shown::TurnEnded(Ending::Failed(reported))]
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
            "so_far" => self.so_far(text(frame, "/operation_id"), text(frame, "/text")),
            "note" if self.reported.is_new(text(frame, "/text")) => {
                vec![faint(note(text(frame, "/text")))]
            }
            _ => Vec::new(),
        }
    }

    /// Takes the whole text of a reply up to now, and returns what is not shown of it yet.
    fn so_far(&mut self, operation: &str, text: &str) -> Vec<Shown> {
        let before = self.streamed.insert(operation.to_owned(), text.to_owned());
        self.streaming = Some(operation.to_owned());
        let before = before.unwrap_or_default();
        let new = match text.strip_prefix(before.as_str()) {
            Some(new) => new.to_owned(),
            None => format!("\n{text}"),
        };
        vec![Shown::Text(new)]
    }

    /// Returns what was said before the stream began, which the stream does not show again.
    pub(super) fn recall(&mut self, messages: &[Value]) -> Vec<Shown> {
        let mut shown = Vec::new();
        for message in messages {
            self.recalled = self.recalled.max(number(message, "/id"));
            let words = text(message, "/text");
            match text(message, "/role") {
                _ if is_summary(message) => {
                    shown.push(faint("(what was said before this was compacted)"));
                }
                "user" => {
                    self.reported = ReportedReasons::default();
                    shown.push(Shown::Line(Shade::Plain, format!("> {words}")));
                }
                _ => shown.extend(self.message(message)),
            }
        }
        // Where lines are piped in, nothing of it is shown.
        self.reported = ReportedReasons::default();
        shown
    }

    /// Takes a frame of the run that compacts the conversation: a line at its end.
    fn compaction(&mut self, name: &str, data: &Value) -> Vec<Shown> {
        if name != "run.ended.v1" {
            return Vec::new();
        }
        self.compacting = None;
        let summary = list(data, "/messages").iter().find(|it| is_summary(it));
        let line = match (text(data, "/end"), summary) {
            ("failed" | "aborted", _) => format!(
                "(the conversation could not be compacted: {})",
                end_reason(data)
            ),
            (_, Some(summary)) => format!(
                "(the conversation was compacted: {} tokens before, about {} now)",
                number(summary, "/compaction/tokens_before"),
                number(summary, "/compaction/tokens_after")
            ),
            (_, None) => "(the conversation was compacted)".to_owned(),
        };
        vec![faint(line), Shown::TurnEnded(Ending::Compacted)]
    }

    /// Takes a frame of the run that brings a summary back: the summary, or the reason why there is
    /// none.
    fn coming_back(&mut self, name: &str, data: &Value) -> Vec<Shown> {
        let notices = list(data, "/messages").iter();
        let notices = notices.filter(|message| text(message, "/role") == "notice");
        let mut shown: Vec<Shown> = match name {
            "run.stepped.v1" | "run.ended.v1" => notices
                .map(|notice| Shown::Said(text(notice, "/text").to_owned()))
                .collect(),
            _ => Vec::new(),
        };
        if name == "run.ended.v1" {
            self.returning = None;
            if matches!(text(data, "/end"), "failed" | "aborted") {
                let line = format!("(no summary came back: {})", end_reason(data));
                shown = vec![faint(line)];
            }
            shown.push(Shown::TurnEnded(Ending::Compacted));
        }
        shown
    }

    fn stepped(&mut self, data: &Value, after: u64) -> Vec<Shown> {
        let mut shown = self.messages(data, after);
        shown.extend(self.mishaps(data));
        for started in list(data, "/started") {
            let kind = text(started, "/kind");
            let tool = text(started, "/tool");
            if tool.is_empty() {
                continue;
            }
            self.tools
                .insert(text(started, "/operation_id").to_owned(), tool.to_owned());
            // A call that is refused is shown when it has failed, with the reason.
            if kind == "refused" {
                continue;
            }
            let arguments = started
                .get("arguments")
                .map(ToString::to_string)
                .unwrap_or_default();
            shown.push(faint(format!("  → {tool} {}", brief(&arguments))));
        }
        shown.extend(questions(data));
        shown
    }

    /// Returns the messages after one.
    fn messages(&mut self, data: &Value, after: u64) -> Vec<Shown> {
        let new = new_messages(data, after);
        new.flat_map(|message| self.message(message)).collect()
    }

    /// Notes the report on a model call that failed.
    fn note_report(&mut self, data: &Value) {
        let failed = list(data, "/settled")
            .iter()
            .filter(|settled| text(settled, "/outcome") == "failed");
        let mut last = failed.filter_map(|settled| list(settled, "/attempts").last());
        if let Some(attempt) = last.next_back() {
            text(attempt, "/error").clone_into(&mut self.report);
        }
    }

    fn message(&mut self, message: &Value) -> Vec<Shown> {
        let words = text(message, "/text");
        let mut shown = Vec::new();
        match text(message, "/role") {
            "assistant" if self.has_streamed(words) => self.streaming = None,
            "assistant" if !words.is_empty() => shown.push(Shown::Said(words.to_owned())),
            "notice" => shown.push(faint(format!("  ! {}", self.reason(words)))),
            "tool" => shown.push(faint(self.result(message))),
            _ => {}
        }
        shown.extend(cut_off(text(message, "/stop")).map(bold));
        shown
    }

    /// Returns the line about the result of a call.
    fn result(&mut self, message: &Value) -> String {
        let words = text(message, "/text");
        let name = text(message, "/answers/name");
        let delegated = (name == DELEGATE).then(|| delegated::read(words)).flatten();
        let Some(Delegated { call, outcome }) = delegated else {
            return if is_true(message, "/answers/failed") {
                self.failed(name, words)
            } else {
                format!("  ✓ {name} {}", brief(words))
            };
        };
        match outcome {
            DelegatedOutcome::Done(result) => format!("  ✓ {call} {}", brief(&result)),
            DelegatedOutcome::Failed { code, reason } => {
                let reason = self.reason(&reason);
                format!("  ✗ {call} {}", joined(&[&code, &reason], ": "))
            }
        }
    }

    /// Returns the line about a call that failed.
    fn failed(&mut self, name: &str, reason: &str) -> String {
        format!("  ✗ {name} {}", self.reason(reason))
    }

    /// Returns a reason as a line shows it.
    fn reason(&mut self, reason: &str) -> String {
        cut(&self.reported.once(reason), REASON_CHARS_MAX)
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

    /// Tools whose end leaves no message. Another's failure is shown where its message stands.
    fn mishaps(&mut self, data: &Value) -> Vec<Shown> {
        let mut shown = Vec::new();
        for settled in list(data, "/settled") {
            let outcome = text(settled, "/outcome");
            let is_failure = matches!(outcome, "failed" | "denied" | "timed_out" | "unknown");
            if settled.get("message").is_some() || !is_failure {
                continue;
            }
            if let Some(tool) = self.tools.get(text(settled, "/operation_id")).cloned() {
                let reported = settled.pointer("/failure/message").and_then(Value::as_str);
                shown.push(faint(self.failed(&tool, reported.unwrap_or(outcome))));
            }
        }
        shown
    }

    fn ended(&mut self, data: &Value) -> Vec<Shown> {
        let new = new_messages(data, self.recalled);
        let mut shown: Vec<Shown> = new
            .filter(|message| !tells_end(message, data))
            .flat_map(|message| self.message(message))
            .collect();
        let ending = match text(data, "/end") {
            "failed" => {
                let reason = reported(&end_reason(data), &self.report);
                Ending::Failed(format!("the turn failed: {reason}"))
            }
            "aborted" => Ending::Cancelled(format!("the turn was cancelled: {}", end_reason(data))),
            _ => Ending::Done,
        };
        self.streaming = None;
        self.streamed.clear();
        self.tools.clear();
        self.reported = ReportedReasons::default();
        self.report.clear();
        shown.push(Shown::TurnEnded(ending));
        shown
    }
}

/// Returns the messages of an event after one.
fn new_messages(data: &Value, after: u64) -> impl Iterator<Item = &Value> {
    let messages = list(data, "/messages").iter();
    messages.filter(move |message| after == 0 || number(message, "/id") > after)
}

/// Returns whether a message is the notice that a turn failed or was cancelled, which the line
/// about its end tells too.
fn tells_end(message: &Value, data: &Value) -> bool {
    matches!(text(data, "/end"), "failed" | "aborted")
        && text(message, "/role") == "notice"
        && ends_with_reason(text(message, "/text"), text(data, "/reason"))
}

/// Returns a reason with the whole of a report in place of the part of it that the reason has.
fn reported(reason: &str, report: &str) -> String {
    let ends = report.rmatch_indices(": ");
    let mut parts = ends.filter_map(|(end, _)| report.get(..end));
    match parts.find(|part| reason.contains(part)) {
        Some(part) if !reason.contains(report) => reason.replacen(part, report, 1),
        _ => reason.to_owned(),
    }
}

/// Returns whether words of a step are the agent's own, not a model's, and its work goes on.
fn is_progress(data: &Value, words: &str) -> bool {
    let is_own =
        |message: &Value| text(message, "/origin") == "agent" && text(message, "/text") == words;
    text(data, "/decision") == "wait" && list(data, "/messages").iter().any(is_own)
}

/// Returns the reason for which a run ended.
fn end_reason(data: &Value) -> String {
    let parts = [text(data, "/code"), text(data, "/reason")];
    let reported: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    reported.join(": ")
}

/// Returns the line about a reply that is not whole, by the reason.
fn cut_off(reason: &str) -> Option<String> {
    let reported = match reason {
        "" => return None,
        "length" => "it reached the limit of its length",
        "content_filter" => "the provider withheld the rest",
        "refusal" => "the model declined to answer",
        other => other,
    };
    Some(format!("(the reply is not whole: {reported})"))
}

/// Returns whether a message is the summary of a compaction.
fn is_summary(message: &Value) -> bool {
    message.get("compaction").is_some_and(Value::is_object)
}

fn step_failed(data: &Value) -> Vec<Shown> {
    let reported = [
        text(data, "/outcome").to_owned(),
        brief(text(data, "/detail")),
    ];
    let reported: Vec<&str> = reported
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    vec![faint(format!("(a step failed: {})", reported.join(", ")))]
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
