//! The reasons that a turn has told. Pure.
//!
//! A task's failure comes in several frames: as its call's, as the end of its turn, and as the
//! result that its caller gets, each with a code or a few words around the one before. Here they
//! are known again, so that a reason stands on the screen once.

use std::collections::VecDeque;

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
    use super::{REPORTED_MAX, ReportedReasons, ends_with_reason};

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
