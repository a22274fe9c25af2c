//! The display of a conversation: text that streams in, lines beside it, and a prompt that neither
//! may overwrite.

use super::editor::Printer;
use crate::markdown::{Markdown, wrapped};
use crate::terminal::{Shade, Terminal, clean};

/// The prompt for a message.
const MESSAGE_PROMPT: &str = "> ";
/// The prompt for an answer.
const ANSWER_PROMPT: &str = "? ";

/// Ends the editor's mode for pasted text, and its line.
const END_OF_PASTING: &str = "\u{1b}[?2004l\n";

/// The display. Prints nothing with `--json`, where every frame is a line already.
///
/// On a terminal, text is rendered block by block and wrapped at its width; elsewhere it is written
/// as it comes.
pub(super) struct Line {
    terminal: Terminal,
    /// The text of the agent's that is not shown as a whole; none where it is not rendered.
    text: Option<Markdown>,
    /// The printer of lines above the one that a person edits; none where nobody does.
    printer: Option<Printer>,
    /// Lines to print above it.
    above: String,
    /// True if the cursor is at the beginning of a line.
    fresh: bool,
    /// True if a person edits a line.
    prompted: bool,
    /// True if the line shows a prompt that nobody edits a line behind.
    waiting: bool,
}

impl Line {
    pub(super) fn new(terminal: Terminal, printer: Option<Printer>) -> Self {
        Self {
            terminal,
            text: terminal.columns().map(Markdown::new),
            printer,
            above: String::new(),
            fresh: true,
            prompted: false,
            waiting: false,
        }
    }

    pub(super) fn terminal(&self) -> Terminal {
        self.terminal
    }

    /// Text that goes on where the last text ended.
    pub(super) fn text(&mut self, text: &str) {
        if self.terminal.is_json() || text.is_empty() {
            return;
        }
        if self.waiting {
            self.end_text();
        }
        match (&mut self.text, self.terminal.columns()) {
            (Some(markdown), Some(columns)) => {
                markdown.resize(columns);
                let lines = markdown.push(text);
                self.print(lines);
            }
            _ if self.prompted => self.above.push_str(&clean(text)),
            _ => {
                self.terminal.write(&clean(text));
                self.fresh = text.ends_with('\n');
            }
        }
    }

    /// A text of its own, as a whole.
    pub(super) fn said(&mut self, text: &str) {
        self.end_text();
        self.text(text);
        self.end_text();
    }

    /// A line of its own.
    pub(super) fn line(&mut self, shade: Shade, text: &str) {
        if self.terminal.is_json() {
            return;
        }
        self.end_text();
        let text = clean(text);
        let lines = match self.terminal.columns() {
            Some(columns) => text
                .lines()
                .flat_map(|line| wrapped(line, columns))
                .map(|line| self.terminal.shaded(shade, &line))
                .collect(),
            None => vec![self.terminal.shaded(shade, &text)],
        };
        self.print(lines);
    }

    /// Several of them, in bold: they ask for something.
    pub(super) fn lines(&mut self, lines: Vec<String>) {
        for line in lines {
            self.line(Shade::Bold, &line);
        }
    }

    /// Ends the text that streams in.
    pub(super) fn end_text(&mut self) {
        if let Some(markdown) = &mut self.text {
            let lines = markdown.finish();
            self.print(lines);
        }
        if !self.above.is_empty() && !self.above.ends_with('\n') {
            self.above.push('\n');
        }
        if !self.fresh && !self.terminal.is_json() {
            self.terminal.write("\n");
        }
        self.fresh = true;
        self.waiting = false;
    }

    /// Asks for the next line, and returns the prompt, which an editor shows by itself.
    pub(super) fn prompt(&mut self, answer: bool) -> &'static str {
        let prompt = if answer {
            ANSWER_PROMPT
        } else {
            MESSAGE_PROMPT
        };
        if self.prompted || self.waiting {
            return prompt;
        }
        self.end_text();
        if self.printer.is_some() {
            self.prompted = true;
        } else if self.terminal.is_interactive() {
            // A terminal on which no line can be edited.
            self.terminal.write(prompt);
            self.waiting = true;
            self.fresh = false;
        }
        prompt
    }

    /// The line was typed, and the terminal is on the next one.
    pub(super) fn typed(&mut self) {
        self.fresh = true;
        self.end_text();
        self.prompted = false;
        self.flush();
    }

    /// Leaves a prompt that still stands there, and shows what waits.
    pub(super) fn leave(&mut self) {
        if self.prompted {
            // Whoever edits does not draw any more.
            self.prompted = false;
            self.terminal.write(END_OF_PASTING);
        }
        self.end_text();
        self.flush();
    }

    /// Shows what waits to be printed above the prompt.
    pub(super) fn flush(&mut self) {
        let Some(end) = self.above.rfind('\n') else {
            return;
        };
        // A line that is not complete would be taken for one.
        let rest = self.above.split_off(end + 1);
        let above = std::mem::replace(&mut self.above, rest);
        match &mut self.printer {
            // At once, so that the prompt is drawn again only once.
            Some(printer) if self.prompted => {
                let _ = printer.print(above);
            }
            _ => self.terminal.write(&above),
        }
    }

    fn print(&mut self, lines: Vec<String>) {
        for line in lines {
            if self.prompted {
                self.above.push_str(&line);
                self.above.push('\n');
            } else {
                self.terminal.line(&line);
            }
        }
    }
}
