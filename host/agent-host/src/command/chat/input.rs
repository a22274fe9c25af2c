//! Lines from stdin, one at a time and only when they are wanted: edited by a person at a terminal,
//! or as they are piped in.

use crate::markdown::{Markdown, wrapped};
use crate::terminal::{Shade, Terminal, clean};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, ExternalPrinter};
use std::io;
use std::io::{BufRead, stdin};
use std::path::{Path, PathBuf};
use std::sync::mpsc as threads;
use tokio::sync::mpsc;

/// The reason why there is no next line, though the input has not ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    /// A line is not text. The one after it can be read.
    #[error("line {number} of the input is not UTF-8")]
    NotText {
        /// The number of the line, from 1.
        number: u64,
    },
    /// The line cannot be read.
    #[error("cannot read line {number} of the input")]
    Unreadable {
        /// The number of the line, from 1.
        number: u64,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The next thing that was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A line without its end.
    Line(String),
    /// The end of the input: Ctrl-D.
    End,
    /// Ctrl-C at the prompt.
    Interrupted,
}

type Read = Result<Typed, InputError>;

/// Lines from stdin. Reading blocks, so it has a thread of its own, which ends with the process.
#[derive(Debug)]
pub(super) struct Input {
    wanted: threads::Sender<&'static str>,
    lines: mpsc::UnboundedReceiver<Read>,
    /// True if a line has been requested already.
    asked: bool,
}

impl Input {
    /// Starts the thread, with an editor for the lines if a person types them.
    pub(super) fn start(mut editor: Option<Editor>) -> Self {
        let (wanted, wants) = threads::channel();
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for number in 1.. {
                let Ok(prompt) = wants.recv() else { return };
                let read = match &mut editor {
                    Some(editor) => editor.read(prompt, number),
                    None => read_line(&mut stdin().lock(), number),
                };
                if sender.send(read).is_err() {
                    return;
                }
            }
        });
        Self {
            wanted,
            lines,
            asked: false,
        }
    }

    /// The next line, asked for by a prompt if a person types it. May be dropped and asked again:
    /// no line gets lost.
    pub(super) async fn next(&mut self, prompt: &'static str) -> Read {
        if !self.asked {
            self.asked = self.wanted.send(prompt).is_ok();
        }
        let line = self.lines.recv().await.unwrap_or(Ok(Typed::End));
        self.asked = false;
        line
    }
}

fn read_line(from: &mut impl BufRead, number: u64) -> Read {
    let mut line = Vec::new();
    if from
        .read_until(b'\n', &mut line)
        .map_err(|source| InputError::Unreadable { number, source })?
        == 0
    {
        return Ok(Typed::End);
    }
    let line = String::from_utf8(line).map_err(|_| InputError::NotText { number })?;
    Ok(Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Lines that are remembered.
const HISTORY_LINES_MAX: usize = 1_000;
/// Bytes of a line that is remembered; a longer one is not.
const HISTORY_LINE_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a file of the history that is read; with a longer one, none is kept.
const HISTORY_FILE_BYTES_MAX: u64 = 16 << 20;

/// A printer of lines above the one that is being edited.
pub(super) type Printer = Box<dyn ExternalPrinter + Send>;

/// A line editor.
#[derive(Debug)]
pub(super) struct Editor {
    lines: rustyline::Editor<(), FileHistory>,
    /// The file of the history; none when there is no place for it.
    history: Option<PathBuf>,
}

impl Editor {
    /// An editor whose history is kept in a file. A history that cannot be used is not, and the
    /// second of the pair gives the reason.
    pub(super) fn new(history: Option<PathBuf>) -> Result<(Self, Option<String>), ReadlineError> {
        let config = Config::builder()
            .max_history_size(HISTORY_LINES_MAX)?
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            .build();
        let mut editor = Self {
            lines: rustyline::Editor::with_config(config)?,
            history: None,
        };
        let fault = match history {
            None => None,
            Some(file) => editor.remember(file).err(),
        };
        Ok((editor, fault))
    }

    /// Returns a printer of lines above the one that is being edited.
    pub(super) fn printer(&mut self) -> Result<Printer, ReadlineError> {
        let printer = self.lines.create_external_printer()?;
        Ok(Box::new(printer))
    }

    /// Reads the history, and keeps it in this file from now on.
    fn remember(&mut self, file: PathBuf) -> Result<(), String> {
        let reported = |error: &dyn std::fmt::Display| {
            format!("no history is kept in `{}`: {error}", file.display())
        };
        make_private_folder(&file).map_err(|error| reported(&error))?;
        match std::fs::metadata(&file) {
            Ok(found) if found.len() > HISTORY_FILE_BYTES_MAX => {
                return Err(reported(&"the file is too large; delete it"));
            }
            Ok(_) => {
                self.lines
                    .load_history(&file)
                    .map_err(|error| reported(&error))?;
                // Written anew, so that it does not grow for ever.
                self.lines
                    .save_history(&file)
                    .map_err(|error| reported(&error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(reported(&error)),
        }
        self.history = Some(file);
        Ok(())
    }

    /// Lets a person edit a line.
    pub(super) fn read(&mut self, prompt: &str, number: u64) -> Result<Typed, InputError> {
        match self.lines.readline(prompt) {
            Ok(line) => {
                self.keep(&line);
                Ok(Typed::Line(line))
            }
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(ReadlineError::Interrupted) => Ok(Typed::Interrupted),
            Err(error) => Err(InputError::Unreadable {
                number,
                source: io::Error::other(error),
            }),
        }
    }

    /// Adds a line to the history. One that cannot be written is remembered while this goes on.
    fn keep(&mut self, line: &str) {
        if line.trim().is_empty() || line.len() > HISTORY_LINE_BYTES_MAX {
            return;
        }
        let is_new = self.lines.add_history_entry(line).unwrap_or(false);
        if let (true, Some(file)) = (is_new, &self.history) {
            // A full disk is no reason not to send what was typed.
            let _ = self.lines.append_history(file);
        }
    }
}

/// The folder that only its owner can enter, made if it is not there.
fn make_private_folder(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let folder = file.parent().unwrap_or(Path::new("/"));
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// The settings of the terminal as they were, put back at the end: a line may still be edited then.
#[derive(Debug)]
pub(super) struct TerminalSettings(Option<Termios>);

impl TerminalSettings {
    pub(super) fn of_stdin() -> Self {
        Self(tcgetattr(stdin()).ok())
    }
}

impl Drop for TerminalSettings {
    fn drop(&mut self) {
        if let Some(settings) = &self.0 {
            // A terminal that has gone needs no settings.
            let _ = tcsetattr(stdin(), OptionalActions::Now, settings);
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_line_that_is_no_text_is_told_by_its_number_and_is_not_the_end() {
        let mut input: &[u8] = b"one\r\n\xff\xfe\n\nlast";
        let read: Vec<String> = (1..=5)
            .map(|number| format!("{:?}", read_line(&mut input, number)))
            .collect();
        assert_eq!(
            read,
            [
                "Ok(Line(\"one\"))",
                "Err(NotText { number: 2 })",
                "Ok(Line(\"\"))",
                "Ok(Line(\"last\"))",
                "Ok(End)"
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut input = io::BufReader::new(std::fs::File::open(folder.path()).unwrap());
        assert!(matches!(
            read_line(&mut input, 7),
            Err(InputError::Unreadable { number: 7, .. })
        ));
    }

    #[test]
    fn the_history_is_private_bounded_and_leaves_out_long_lines() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/agent-host/chat-history");
        let (mut editor, fault) = Editor::new(Some(file.clone())).unwrap();
        assert_eq!(fault, None);
        for line in ["one", "one", " secret", "", "two"] {
            editor.keep(line);
        }
        editor.keep(&"x".repeat(HISTORY_LINE_BYTES_MAX + 1));
        let kept = std::fs::read_to_string(&file).unwrap();
        assert!(kept.ends_with("one\ntwo\n"), "{kept}");
        assert!(!kept.contains("secret"), "{kept}");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
        for number in 0..HISTORY_LINES_MAX + 50 {
            editor.keep(&format!("line {number}"));
        }
        let (_, fault) = Editor::new(Some(file.clone())).unwrap();
        assert_eq!(fault, None);
        let kept = std::fs::read_to_string(&file).unwrap();
        let lines = kept.lines().filter(|line| line.starts_with("line"));
        assert_eq!(lines.count(), HISTORY_LINES_MAX);
        assert!(!kept.contains("two"), "the oldest are dropped");
    }

    #[test]
    fn a_history_that_cannot_be_read_is_told_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("chat-history");
        std::fs::write(&file, b"\xff\xfe\n").unwrap();
        let (mut editor, fault) = Editor::new(Some(file.clone())).unwrap();
        assert!(fault.unwrap().contains("no history is kept in"));
        editor.keep("one");
        assert_eq!(std::fs::read(&file).unwrap(), b"\xff\xfe\n");
    }
}
