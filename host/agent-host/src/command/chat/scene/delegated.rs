//! Results of `delegate` and reports of turns, in words. Pure: the JSON text that the model got in,
//! a line's words out.

use crate::answer::text;
use domain::delegate::NAME;
use serde_json::Value;
use std::collections::VecDeque;

/// The operation whose result is a program's. A program that failed has a result too.
const EXECUTE_CODE: &str = "execute_code";
/// The status of a program that ran to its end.
const COMPLETED: &str = "completed";

/// A result of `delegate`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Delegated {
    /// The call: the tool, and the target and operation as far as they exist.
    pub(super) call: String,
    pub(super) outcome: DelegatedOutcome,
}

/// The outcome of a delegation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DelegatedOutcome {
    /// It was done: what came of it.
    Done(String),
    /// It failed, or the program that it ran did.
    Failed { code: String, reason: String },
}

/// Reads the text of a result. None if it is no result of a delegation.
pub(super) fn read(words: &str) -> Option<Delegated> {
    let result: Value = serde_json::from_str(words).ok()?;
    let succeeded = result.get("success")?.as_bool()?;
    let operation = text(&result, "/metadata/operation");
    let address = joined(&[text(&result, "/metadata/target"), operation], ".");
    let outcome = match result.get("data") {
        _ if !succeeded => DelegatedOutcome::Failed {
            code: text(&result, "/error/code").to_owned(),
            reason: text(&result, "/error/message").to_owned(),
        },
        Some(data) if operation == EXECUTE_CODE => program(data),
        Some(data) => DelegatedOutcome::Done(summary(data)),
        None => DelegatedOutcome::Done(text(&result, "/output").to_owned()),
    };
    Some(Delegated {
        call: joined(&[NAME, &address], " "),
        outcome,
    })
}

/// Returns the outcome of a program's run: its value, else what it printed; or how it came to
/// another end.
fn program(data: &Value) -> DelegatedOutcome {
    let status = text(data, "/status");
    if !matches!(status, "" | COMPLETED) {
        let error = [text(data, "/error/name"), text(data, "/error/message")];
        return DelegatedOutcome::Failed {
            code: status.to_owned(),
            reason: joined(&error, ": "),
        };
    }
    let value = data.get("value").map(ToString::to_string);
    let printed = ["/rendered", "/stdout", "/stderr", "/status"].map(|at| text(data, at));
    let first = printed.into_iter().find(|it| !it.trim().is_empty());
    DelegatedOutcome::Done(value.unwrap_or_else(|| first.unwrap_or_default().to_owned()))
}

/// Returns the summary in a result of fields, else the fields.
fn summary(data: &Value) -> String {
    match text(data, "/summary") {
        "" => data.to_string(),
        summary => summary.to_owned(),
    }
}

/// Joins the parts that are not empty.
pub(super) fn joined(parts: &[&str], between: &str) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|it| !it.is_empty()).collect();
    parts.join(between)
}

/// Number of reasons, and of notes, that are known again.
const REPORTED_MAX: usize = 64;
/// Words in the place of a reason that was told.
const ABOVE: &str = "(as above)";

/// The reasons and the notes on progress that a turn has told.
#[derive(Debug, Default)]
pub(super) struct ReportedReasons {
    reasons: VecDeque<String>,
    notes: VecDeque<String>,
}

impl ReportedReasons {
    /// Returns a reason as it is shown: without the part of it that was told before. One that is no
    /// longer than the words in its place is shown again.
    pub(super) fn once(&mut self, reason: &str) -> String {
        let reason = on_one_line(reason);
        if reason.len() <= ABOVE.len() {
            return reason;
        }
        let reported = || self.reasons.iter().chain(&self.notes);
        if reported().any(|reported| place(reported, &reason).is_some()) {
            return ABOVE.to_owned();
        }
        let begin = reported()
            .filter_map(|reported| place(&reason, reported))
            .min();
        match begin.and_then(|begin| reason.get(..begin)) {
            Some(before) => format!("{before}{ABOVE}"),
            None => {
                keep(&mut self.reasons, reason.clone());
                reason
            }
        }
    }

    /// Notes progress. Returns false if it is a reason that was told.
    pub(super) fn is_new(&mut self, note: &str) -> bool {
        let note = on_one_line(note);
        let is_reported = self
            .reasons
            .iter()
            .any(|reported| place(reported, &note).is_some());
        if !is_reported && note.len() > ABOVE.len() {
            keep(&mut self.notes, note);
        }
        !is_reported
    }
}

/// Returns whether a text ends with a reason, words before a colon and a code in parentheses aside.
pub(super) fn ends_with_reason(text: &str, reason: &str) -> bool {
    !reason.is_empty() && place(&on_one_line(text), &on_one_line(reason)).is_some()
}

/// Returns the place at which a text has a reason: at its beginning or after a colon, and with
/// nothing behind it but a code in parentheses.
fn place(text: &str, reason: &str) -> Option<usize> {
    let is_all = |begin: &usize| {
        let before = text.get(..*begin).unwrap_or_default();
        let behind = text.get(begin + reason.len()..).unwrap_or_default();
        let is_code = behind.starts_with(" (") && behind.ends_with(')');
        (before.is_empty() || before.ends_with(": ")) && (behind.is_empty() || is_code)
    };
    let mut places = text.match_indices(reason).map(|(begin, _)| begin);
    places.find(is_all)
}

/// Keeps a text, and forgets the first of too many.
fn keep(kept: &mut VecDeque<String>, text: String) {
    if kept.len() == REPORTED_MAX {
        kept.pop_front();
    }
    kept.push_back(text);
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{DelegatedOutcome, REPORTED_MAX, ReportedReasons, ends_with_reason, read};
    use serde_json::{Value, json};

    fn run(data: &Value) -> Value {
        let metadata = json!({ "target": "coder", "operation": "execute_code" });
        json!({ "success": true, "taskState": "COMPLETED", "data": data, "metadata": metadata })
    }

    fn task(more: &Value) -> Value {
        let mut result = json!({
            "success": more.get("error").is_none(),
            "metadata": { "target": "worker", "operation": "read_file" },
        });
        let fields = more.as_object().unwrap().clone();
        result.as_object_mut().unwrap().extend(fields);
        result
    }

    fn failed(code: &str, reason: &str) -> DelegatedOutcome {
        DelegatedOutcome::Failed {
            code: code.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn check(result: &Value, call: &str, outcome: &DelegatedOutcome) {
        let read = read(&result.to_string()).unwrap();
        assert_eq!(read.call, call, "{result}");
        assert_eq!(&read.outcome, outcome, "{result}");
    }

    #[test]
    fn a_program_that_did_not_run_to_its_end_is_a_failed_delegation() {
        let error = json!({ "name": "TypeError", "message": "x is no function" });
        for (data, code, reason) in [
            (
                json!({ "status": "failed", "stdout": "", "error": error }),
                "failed",
                "TypeError: x is no function",
            ),
            (
                json!({ "status": "timed-out", "error": { "message": "too long" } }),
                "timed-out",
                "too long",
            ),
            (json!({ "status": "out-of-memory" }), "out-of-memory", ""),
            (json!({ "status": "crashed", "error": null }), "crashed", ""),
        ] {
            check(
                &run(&data),
                "delegate coder.execute_code",
                &failed(code, reason),
            );
        }
    }

    #[test]
    fn a_program_that_ran_to_its_end_is_told_by_its_value_or_what_it_printed() {
        for (data, reported) in [
            (json!({ "status": "completed", "value": 42 }), "42"),
            (json!({ "status": "completed", "value": null }), "null"),
            (
                json!({ "status": "completed", "rendered": "Map(0) {}", "stdout": "a" }),
                "Map(0) {}",
            ),
            (json!({ "status": "completed", "stdout": "a\n" }), "a\n"),
            (
                json!({ "status": "completed", "stdout": "", "stderr": "b" }),
                "b",
            ),
            (json!({ "status": "completed", "stdout": "" }), "completed"),
        ] {
            let done = DelegatedOutcome::Done(reported.to_owned());
            check(&run(&data), "delegate coder.execute_code", &done);
        }
    }

    #[test]
    fn a_result_is_told_by_its_text_its_summary_or_its_fields() {
        for (more, reported) in [
            (json!({ "output": "one line" }), "one line"),
            (
                json!({ "data": { "summary": "A greeting.", "files": [] } }),
                "A greeting.",
            ),
            (json!({ "data": ["a.txt"] }), r#"["a.txt"]"#),
            // Only a program's status says how it ended.
            (json!({ "data": { "status": 200 } }), r#"{"status":200}"#),
            (
                json!({ "data": { "status": "gone" } }),
                r#"{"status":"gone"}"#,
            ),
        ] {
            let done = DelegatedOutcome::Done(reported.to_owned());
            check(&task(&more), "delegate worker.read_file", &done);
        }
    }

    #[test]
    fn a_delegation_without_a_result_is_told_by_code_and_message() {
        let late = json!({ "code": "TASK_TIMEOUT", "message": "It took too long." });
        let timed_out = || failed("TASK_TIMEOUT", "It took too long.");
        check(
            &task(&json!({ "error": late })),
            "delegate worker.read_file",
            &timed_out(),
        );
        for (metadata, call) in [
            (json!({ "operation": "read_file" }), "delegate read_file"),
            (json!({ "target": "worker" }), "delegate worker"),
            (json!({}), "delegate"),
        ] {
            let result = json!({ "success": false, "error": late, "metadata": metadata });
            check(&result, call, &timed_out());
        }
    }

    #[test]
    fn other_words_are_no_result_of_a_delegation() {
        for words in ["", "gone", "[]", "{}", r#"{"success":"yes"}"#] {
            assert_eq!(read(words), None, "{words}");
        }
    }

    #[test]
    fn a_reason_is_told_once_whatever_stands_around_it() {
        for (first, second, shown) in [
            ("no such file", "no such file", "(as above)"),
            ("no such\nfile", "no such file (not-found)", "(as above)"),
            (
                "no such file",
                "The turn failed: no such file (not-found)",
                "The turn failed: (as above)",
            ),
            (
                "The turn failed: no such file (not-found)",
                "no such file",
                "(as above)",
            ),
            (
                "no such file",
                "there is no such file",
                "there is no such file",
            ),
            ("no such file", "no such file: a", "no such file: a"),
            ("denied", "denied", "denied"),
        ] {
            let mut reported = ReportedReasons::default();
            reported.once(first);
            assert_eq!(reported.once(second), shown, "{first}; {second}");
        }
    }

    #[test]
    fn a_note_is_left_out_if_it_is_a_reason_that_was_told_and_a_reason_after_its_note() {
        let mut reported = ReportedReasons::default();
        assert!(reported.is_new("Reading the page"));
        assert!(reported.is_new("Reading the page"));
        assert!(reported.is_new("the page is gone"));
        assert_eq!(
            reported.once("TASK_FAILED: the page is gone"),
            "TASK_FAILED: (as above)"
        );
        assert_eq!(reported.once("the search failed"), "the search failed");
        assert!(!reported.is_new("the search failed"));
    }

    #[test]
    fn only_the_last_reasons_are_known_again() {
        let mut reported = ReportedReasons::default();
        for count in 0..=REPORTED_MAX {
            reported.once(&format!("reason number {count}"));
        }
        assert_eq!(reported.once("reason number 1"), "(as above)");
        assert_eq!(reported.once("reason number 0"), "reason number 0");
    }

    #[test]
    fn the_end_of_a_turn_is_known_by_its_reason() {
        assert!(ends_with_reason(
            "The turn failed: it is\ngone",
            "it is gone"
        ));
        assert!(!ends_with_reason("The turn failed: it is gone", ""));
        assert!(!ends_with_reason("1 message was dropped", "it is gone"));
    }
}
