//! Lines from stdin, one at a time and only when they are wanted.

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

/// A line without its end; none when there is no more.
type Line = Result<Option<String>, InputError>;

/// Lines from stdin. Reading blocks, so it has a thread of its own, which ends with the process.
#[derive(Debug)]
pub(super) struct Input {
    wanted: threads::Sender<()>,
    lines: mpsc::UnboundedReceiver<Line>,
    /// True if a line has been requested already.
    asked: bool,
}

impl Input {
    /// Starts the thread.
    pub(super) fn start() -> Self {
        let (wanted, wants) = threads::channel::<()>();
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for number in 1.. {
                if wants.recv().is_err()
                    || sender.send(read_line(&mut stdin().lock(), number)).is_err()
                {
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

    /// The next line; none at the end. May be dropped and asked again: no line gets lost.
    pub(super) async fn next(&mut self) -> Line {
        if !self.asked {
            self.asked = self.wanted.send(()).is_ok();
        }
        let line = self.lines.recv().await.unwrap_or(Ok(None));
        self.asked = false;
        line
    }
}

fn read_line(from: &mut impl BufRead, number: u64) -> Line {
    let mut line = Vec::new();
    if from
        .read_until(b'\n', &mut line)
        .map_err(|source| InputError::Unreadable { number, source })?
        == 0
    {
        return Ok(None);
    }
    let line = String::from_utf8(line).map_err(|_| InputError::NotText { number })?;
    Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
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
                "Ok(Some(\"one\"))",
                "Err(NotText { number: 2 })",
                "Ok(Some(\"\"))",
                "Ok(Some(\"last\"))",
                "Ok(None)"
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
