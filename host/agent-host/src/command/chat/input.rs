//! Lines from stdin, one at a time and only when they are wanted: edited by a person at a terminal,
//! or as they are piped in.

use super::editor::Editor;
use std::io::{self, BufRead, stdin};
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
