//! The last lines that a guest wrote to stderr: in most languages, the reason why it traps.

use domain::shown::visible;
use runtime::LogLine;

/// Lines of one call that are shown.
const LINES_MAX: usize = 8;
/// Characters of all these lines together.
const CHARS_MAX: usize = 1_024;

/// Returns the last lines of a call's stderr, but for those that `reported` has in it already.
pub(crate) fn tail(logs: &[LogLine], reported: &str) -> Vec<String> {
    let mut left = CHARS_MAX;
    let mut lines = Vec::new();
    for line in logs.iter().rev() {
        if lines.len() == LINES_MAX || left == 0 {
            break;
        }
        if line.context == "stderr" && !reported.contains(&line.message) {
            lines.push(visible(&line.message, left));
            left = left.saturating_sub(line.message.chars().count());
        }
    }
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::{CHARS_MAX, LINES_MAX, tail};
    use runtime::{Level, LogLine};

    fn line(context: &str, message: &str) -> LogLine {
        LogLine {
            level: Level::Warn,
            context: context.to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn the_last_lines_of_stderr_are_told_in_their_order_and_none_twice() {
        let logs = [
            line("stderr", "Traceback:"),
            line("stdout", "not this"),
            line("stderr", "TypeError: \u{200b}no"),
            line("stderr", "abort"),
        ];
        let reported = tail(&logs, "it traps: abort (unreachable)");
        assert_eq!(reported, ["Traceback:", "TypeError: \\u{200b}no"]);
    }

    #[test]
    fn a_flood_on_stderr_is_told_by_its_end() {
        let numbered: Vec<LogLine> = (0..100)
            .map(|number| line("stderr", &format!("line {number}")))
            .collect();
        let reported = tail(&numbered, "");
        assert_eq!(reported.len(), LINES_MAX);
        assert_eq!(reported.last().map(String::as_str), Some("line 99"));
        let long = vec![line("stderr", &"x".repeat(CHARS_MAX - 1)); 3];
        let chars: Vec<usize> = tail(&long, "")
            .iter()
            .map(|line| line.chars().count())
            .collect();
        // One character of the line before, and the mark that there is more.
        assert_eq!(chars, [2, CHARS_MAX - 1]);
    }
}
