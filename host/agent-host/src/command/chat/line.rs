//! The current line of the terminal: text that streams in, lines beside it, and a prompt that
//! neither may overwrite.

use crate::terminal::{Shade, Terminal, clean};
use serde_json::Value;

/// The line that is being written. Prints nothing with `--json`, where every frame is a line
/// already.
#[derive(Debug)]
pub(super) struct Line {
    terminal: Terminal,
    /// True if the cursor is at the beginning of a line.
    fresh: bool,
    /// True if the line shows a prompt.
    prompted: bool,
}

impl Line {
    pub(super) fn new(terminal: Terminal) -> Self {
        Self {
            terminal,
            fresh: true,
            prompted: false,
        }
    }

    /// Text that goes on where the last text ended.
    pub(super) fn text(&mut self, text: &str) {
        if self.terminal.is_json() || text.is_empty() {
            return;
        }
        self.leave_prompt();
        self.terminal.write(&clean(text));
        self.fresh = text.ends_with('\n');
    }

    /// A line of its own.
    pub(super) fn line(&mut self, shade: Shade, text: &str) {
        if self.terminal.is_json() {
            return;
        }
        self.leave_prompt();
        self.end();
        self.terminal
            .line(&self.terminal.shaded(shade, &clean(text)));
    }

    /// Several of them, in bold: they ask for something.
    pub(super) fn lines(&mut self, lines: Vec<String>) {
        for line in lines {
            self.line(Shade::Bold, &line);
        }
    }

    /// Shows a prompt if a person can type at this terminal.
    pub(super) fn prompt(&mut self, answer: bool) {
        if self.prompted {
            return;
        }
        self.end();
        if self.terminal.is_interactive() {
            self.terminal.write(if answer { "? " } else { "> " });
            self.prompted = true;
            self.fresh = false;
        }
    }

    /// The line was typed, and the terminal is on the next one.
    pub(super) fn typed(&mut self) {
        self.prompted = false;
        self.fresh = true;
    }

    /// Shows the last snippet of a session that is continued.
    pub(super) fn remember_snippet(&mut self, session: &Value, new: bool) {
        if let (false, Some(snippet)) = (new, session.get("last_snippet").and_then(Value::as_str)) {
            self.line(Shade::Faint, &format!("… {snippet}"));
        }
    }

    fn leave_prompt(&mut self) {
        if self.prompted {
            self.prompted = false;
            self.end();
        }
    }

    fn end(&mut self) {
        if !self.fresh && !self.terminal.is_json() {
            self.terminal.write("\n");
        }
        self.fresh = true;
    }
}
