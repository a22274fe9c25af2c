//! The guest's log, stdout and stderr: bounded, and harmless to any reader.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// The cost of a line beside its text, so that empty lines are bounded too.
const LINE_COST_BYTES: usize = 32;
/// Bytes that a guest may write to stdout or stderr at once.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// For the search for a defect.
    Trace,
    /// For development.
    Debug,
    /// For operators. Stdout is logged so.
    Info,
    /// Unexpected, and dealt with. Stderr is logged so.
    Warn,
    /// Something went wrong.
    Error,
    /// Going on is impossible.
    Critical,
}

/// One line of a guest's log. Control characters, and characters that change the direction of text,
/// are escaped in both texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Its severity.
    pub level: Level,
    /// The guest's word for where it comes from; `stdout` or `stderr` for these.
    pub context: String,
    /// Its message.
    pub message: String,
}

/// The log of one call, shared by the host functions that write to it.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    lines: Vec<LogLine>,
    bytes_max: usize,
    bytes: usize,
    dropped: u64,
    /// The unfinished last lines of stdout and of stderr.
    partial: [String; 2],
}

impl Log {
    /// A log that keeps so many bytes; what is over is dropped and counted.
    pub(crate) fn keeping(bytes_max: u64) -> Self {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Self(Arc::new(Mutex::new(Kept {
            bytes_max,
            ..Kept::default()
        })))
    }

    /// Writes one line, as far as there is room.
    pub(crate) fn write(&self, level: Level, context: &str, message: &str) {
        self.kept().push(level, context, message);
    }

    /// Takes the lines written so far, and the number of bytes that were dropped. Leaves nothing
    /// behind.
    pub(crate) fn take(&self) -> (Vec<LogLine>, u64) {
        let mut kept = self.kept();
        kept.end_line(Pipe::Stdout);
        kept.end_line(Pipe::Stderr);
        kept.bytes = 0;
        (
            std::mem::take(&mut kept.lines),
            std::mem::take(&mut kept.dropped),
        )
    }

    /// The guest's stdout or stderr.
    pub(crate) fn pipe(&self, pipe: Pipe) -> LogPipe {
        LogPipe {
            log: self.clone(),
            pipe,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No code that holds the lock panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn push(&mut self, level: Level, context: &str, message: &str) {
        let cost = LINE_COST_BYTES + context.len() + message.len();
        if self.bytes + cost > self.bytes_max {
            self.dropped = self.dropped.saturating_add(cost as u64);
            return;
        }
        self.bytes += cost;
        self.lines.push(LogLine {
            level,
            context: escaped(context),
            message: escaped(message),
        });
    }

    fn text(&mut self, pipe: Pipe, text: &str) {
        let mut chunks = text.split('\n');
        let last = chunks.next_back().unwrap_or_default();
        for chunk in chunks {
            self.partial(pipe, chunk);
            self.end_line(pipe);
        }
        self.partial(pipe, last);
    }

    fn partial(&mut self, pipe: Pipe, text: &str) {
        let room = self
            .bytes_max
            .saturating_sub(self.bytes + self.partial_of(pipe).len());
        let kept = text.floor_char_boundary(room);
        self.dropped = self.dropped.saturating_add((text.len() - kept) as u64);
        let (kept, _) = text.split_at(kept);
        self.partial_of(pipe).push_str(kept);
    }

    fn end_line(&mut self, pipe: Pipe) {
        let line = std::mem::take(self.partial_of(pipe));
        if !line.trim().is_empty() {
            let (level, context) = match pipe {
                Pipe::Stdout => (Level::Info, "stdout"),
                Pipe::Stderr => (Level::Warn, "stderr"),
            };
            self.push(level, context, line.trim_end());
        }
    }

    fn partial_of(&mut self, pipe: Pipe) -> &mut String {
        let [stdout, stderr] = &mut self.partial;
        match pipe {
            Pipe::Stdout => stdout,
            Pipe::Stderr => stderr,
        }
    }
}

/// Text in which nothing moves a cursor, breaks a line or turns the reading direction.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
        if turns || (character.is_control() && character != '\t') {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "{}", character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// One of the two streams.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pipe {
    /// The guest's stdout.
    Stdout,
    /// The guest's stderr.
    Stderr,
}

/// A guest's stdout or stderr, which ends in its log.
#[derive(Debug, Clone)]
pub(crate) struct LogPipe {
    log: Log,
    pipe: Pipe,
}

impl IsTerminal for LogPipe {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogPipe {
    /// Only WASI 0.3 asks for it, which this host does not link.
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for LogPipe {
    async fn ready(&mut self) {}
}

#[async_trait::async_trait]
impl OutputStream for LogPipe {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.log
            .kept()
            .text(self.pipe, &String::from_utf8_lossy(&bytes));
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_forge_a_line_or_turn_text_around_is_escaped() {
        assert_eq!(
            escaped("a\nb\u{1b}[2J\u{202e}c\té"),
            "a\\nb\\u{1b}[2J\\u{202e}c\té"
        );
    }

    #[test]
    fn a_flood_is_cut_at_the_limit_and_counted() {
        const LOG_BYTES_MAX: usize = 10_000;
        let log = Log::keeping(LOG_BYTES_MAX as u64);
        for _ in 0..10_000 {
            log.write(Level::Info, "flood", &"x".repeat(1_000));
        }
        let mut pipe = log.pipe(Pipe::Stdout);
        for _ in 0..1_000 {
            pipe.write(Bytes::from(vec![b'y'; 1_000])).unwrap();
        }
        let (lines, dropped) = log.take();
        let kept: usize = lines.iter().map(|line| line.message.len()).sum();
        assert!(kept <= LOG_BYTES_MAX, "{kept}");
        assert!(dropped > 10_000_000, "{dropped}");
    }

    #[test]
    fn a_line_of_stderr_may_come_in_pieces() {
        let log = Log::keeping(1_000);
        let mut pipe = log.pipe(Pipe::Stderr);
        for chunk in ["one ", "line\nand", " another"] {
            pipe.write(Bytes::from(chunk)).unwrap();
        }
        let lines: Vec<String> = log.take().0.into_iter().map(|line| line.message).collect();
        assert_eq!(lines, ["one line", "and another"]);
    }
}
