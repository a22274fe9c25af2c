//! The line editor of a person at a terminal, with the history of what was typed.

use super::input::{InputError, Typed};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, ExternalPrinter};
use std::io;
use std::path::{Path, PathBuf};

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
        Self(tcgetattr(io::stdin()).ok())
    }
}

impl Drop for TerminalSettings {
    fn drop(&mut self) {
        if let Some(settings) = &self.0 {
            // A terminal that has gone needs no settings.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Editor;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_history_is_private_bounded_and_leaves_out_long_lines() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/agent-host/chat-history");
        let (mut editor, fault) = Editor::new(Some(file.clone())).unwrap();
        assert_eq!(fault, None);
        for line in ["one", "one", " secret", "", "two"] {
            editor.keep(line);
        }
        editor.keep(&"x".repeat(super::HISTORY_LINE_BYTES_MAX + 1));
        let kept = std::fs::read_to_string(&file).unwrap();
        assert!(kept.ends_with("one\ntwo\n"), "{kept}");
        assert!(!kept.contains("secret"), "{kept}");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
        for number in 0..super::HISTORY_LINES_MAX + 50 {
            editor.keep(&format!("line {number}"));
        }
        let (_, fault) = Editor::new(Some(file.clone())).unwrap();
        assert_eq!(fault, None);
        let kept = std::fs::read_to_string(&file).unwrap();
        let lines = kept.lines().filter(|line| line.starts_with("line"));
        assert_eq!(lines.count(), super::HISTORY_LINES_MAX);
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
