//! The only place that prints: results to stdout, everything about them to stderr.

use crate::answer::Answer;
use crate::failure::Failure;
use anyhow::anyhow;
use serde_json::Value;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

/// Columns of a terminal that does not tell its width.
const COLUMNS_DEFAULT: u16 = 80;
/// The least number of columns that text is wrapped to.
const COLUMNS_MIN: u16 = 20;

/// The first error of stdout that lost part of a result.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// The form in which results are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// True if results are JSON: one document, or one line for each.
    json: bool,
    /// True if notices are left out.
    quiet: bool,
    /// True if text has colours.
    colours: bool,
}

/// The shades that text can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shade {
    /// Text without a shade.
    Plain,
    /// Text beside the conversation.
    Faint,
    /// Text that asks for attention.
    Bold,
}

impl Terminal {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let wanted = !is_set("NO_COLOR") && !is_dumb;
        Self {
            json,
            quiet,
            colours: wanted && !json && io::stdout().is_terminal(),
        }
    }

    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Returns whether a person sits in front of it and types.
    pub(crate) fn is_interactive(self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Returns the width of text that is rendered and wrapped; none where text is shown as it is.
    pub(crate) fn columns(self) -> Option<usize> {
        self.colours.then(|| {
            let reported = terminal_size::terminal_size_of(io::stdout());
            let columns = reported.map_or(COLUMNS_DEFAULT, |(columns, _)| columns.0);
            usize::from(columns.max(COLUMNS_MIN))
        })
    }

    /// Prints the answer of a command.
    ///
    /// # Errors
    /// The command fails all the same, for the reason that the answer has.
    pub(crate) fn answer(self, answer: Answer) -> Result<(), Failure> {
        if let Some(file) = &answer.file {
            self.file(file)?;
        } else if self.json {
            let documents = answer.documents.iter();
            documents.for_each(|document| self.line(&document.to_string()));
        } else {
            self.lines(&answer.lines);
        }
        let notices = answer.notices.iter();
        notices.for_each(|notice| self.notice(notice));
        answer.failure.map_or(Ok(()), Err)
    }

    /// Prints something that happens: the document with `--json`, otherwise the lines.
    pub(crate) fn result(self, document: &Value, lines: impl FnOnce() -> Vec<String>) {
        match self.json {
            true => self.line(&document.to_string()),
            false => self.lines(&lines()),
        }
    }

    /// Prints lines for people. A line stays one line and cannot steer the terminal, whatever its
    /// content.
    fn lines(self, lines: &[String]) {
        lines.iter().for_each(|line| self.line(&one_line(line)));
    }

    /// One line of a result.
    pub(crate) fn line(self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    /// Part of a line, at once. [`written`] has the error if it cannot be written.
    pub(crate) fn write(self, text: &str) {
        let mut out = io::stdout().lock();
        tell(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }

    /// Writes a requested file as it is.
    ///
    /// # Errors
    /// It cannot be written as a whole, and whoever reads it has not left early.
    fn file(self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Text in a shade, where there are colours.
    pub(crate) fn shaded(self, shade: Shade, text: &str) -> String {
        match (self.colours, shade) {
            (false, _) | (true, Shade::Plain) => text.to_owned(),
            (true, Shade::Faint) => format!("\u{1b}[2m{text}\u{1b}[0m"),
            (true, Shade::Bold) => format!("\u{1b}[1m{text}\u{1b}[0m"),
        }
    }

    /// Prints a notice about a result, unless notices are left out.
    pub(crate) fn notice(self, text: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr().lock(), "{}", clean(text));
        }
    }

    /// Prints an error that the command outlives.
    pub(crate) fn problem(self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", clean(text));
    }

    /// Prints the reason why there is no result.
    pub(crate) fn failure(self, failure: &Failure) {
        let mut err = io::stderr().lock();
        if self.json {
            let _ = writeln!(err, "{}", failure.document());
            return;
        }
        for line in failure.lines() {
            let _ = writeln!(err, "{}", clean(&line));
        }
    }
}

/// Keeps the error of stdout for [`written`].
pub(crate) fn tell(wrote: io::Result<()>) {
    match wrote {
        // Whoever read this has gone; the command goes on for what it does besides.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = LOST.set(error);
        }
        Ok(()) | Err(_) => {}
    }
}

/// Checks that everything until now reached stdout, or a reader that left early by itself.
///
/// # Errors
/// Part of the result is lost: a full disk, for one.
pub(crate) fn written() -> Result<(), Failure> {
    match LOST.get() {
        None => Ok(()),
        Some(error) => Err(anyhow!("{error}")
            .context("the result could not be written as a whole")
            .into()),
    }
}

/// Returns text from outside in a form that is safe to show: without control characters, which
/// could move the cursor or forge other text.
pub(crate) fn clean(text: &str) -> String {
    let bidirectional = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .filter(|c| *c == '\n' || *c == '\t' || !(c.is_control() || bidirectional(*c)))
        .collect()
}

/// The same on one line: nothing in it passes for a line of its own.
pub(crate) fn one_line(text: &str) -> String {
    clean(text)
        .replace(['\n', '\u{2028}', '\u{2029}'], " ")
        .trim_end()
        .to_owned()
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{clean, one_line};

    #[test]
    fn what_comes_from_outside_cannot_pass_for_a_line_of_its_own() {
        assert_eq!(
            one_line("  agent    A: nice\n  granted  \u{1b}[1meverything\u{2028}x \n"),
            "  agent    A: nice   granted  [1meverything x"
        );
    }

    #[test]
    fn what_comes_from_outside_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\u{7}\r\n\tc\u{202e}d"), "a[31mb\n\tcd");
    }
}
