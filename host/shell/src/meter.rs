//! The work that one line may cause, counted in bytes before they are read or made.
//!
//! The memory that a line holds was counted before it was made, so the count bounds the memory as
//! well. With each count the meter also looks, now and then, at whether the line is to stop.

use crate::Stopped;
use serde_json::Value;
use std::io;

/// Bytes that a line may read and make in all, and so a bound of its time and memory.
const WORK_BYTES_MAX: usize = 64 << 20;
/// Bytes that a line may read and make with all that it does again after each call.
const REPEATED_BYTES_MAX: usize = 512 << 20;
/// Bytes that one command or one word may make.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// Bytes that each chunk of a text is counted as besides its own.
const CHUNK_BYTES: usize = 8;
/// Counts between two polls at whether the line is to stop.
const COUNTS_UNSEEN: u32 = 64;

/// Bytes that each value takes in memory besides its texts, about.
pub(crate) const VALUE_BYTES: usize = 128;
/// Bytes that an object takes in memory besides its fields, about.
pub(crate) const OBJECT_BYTES: usize = 384;

/// The reason why a line does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A call is needed that has no result yet.
    Call(crate::Wanted),
    /// A limit is met, or the line cannot go on: the reason, for people.
    Over(String),
}

/// The work that was done.
pub(crate) struct Meter {
    /// Bytes counted since the line began anew.
    used: usize,
    /// Bytes counted each time that it was carried out before.
    repeated: usize,
    /// Counts until the next inspection.
    until_check: u32,
    stopped: Stopped,
}

impl Meter {
    pub(crate) fn new(stopped: Stopped) -> Self {
        Self {
            used: 0,
            repeated: 0,
            until_check: 0,
            stopped,
        }
    }

    /// Counts work before it is done.
    pub(crate) fn work(&mut self, bytes: usize) -> Result<(), Stop> {
        self.until_check = match self.until_check.checked_sub(1) {
            Some(until_check) => until_check,
            None => {
                self.inspect()?;
                COUNTS_UNSEEN
            }
        };
        self.used = self.used.saturating_add(bytes);
        if self.used > WORK_BYTES_MAX {
            return Err(Stop::Over(format!(
                "the line works on more than {WORK_BYTES_MAX} bytes; narrow it"
            )));
        }
        if self.used.saturating_add(self.repeated) > REPEATED_BYTES_MAX {
            return Err(Stop::Over(format!(
                "the line works on more than {REPEATED_BYTES_MAX} bytes with what it does again \
                 after each call; divide it"
            )));
        }
        Ok(())
    }

    /// Looks at whether the line is to stop, before work that cannot be divided.
    pub(crate) fn inspect(&self) -> Result<(), Stop> {
        if (self.stopped)() {
            return Err(Stop::Over(
                "the line takes too long, or is not wanted any more; narrow it".to_owned(),
            ));
        }
        Ok(())
    }

    /// Counts all work up to here once more: the line was carried out up to here before, when it
    /// had no result yet of the call at which it is now.
    pub(crate) fn repeat(&mut self) -> Result<(), Stop> {
        self.repeated = self.repeated.saturating_add(self.used);
        self.work(0)
    }

    /// Counts a chunk of so many bytes that is about to be added to a text of so many.
    pub(crate) fn longer(&mut self, text: usize, chunk: usize) -> Result<(), Stop> {
        if text.saturating_add(chunk) > TEXT_BYTES_MAX {
            return Err(Stop::Over(format!(
                "a text of more than {TEXT_BYTES_MAX} bytes would be made; narrow it"
            )));
        }
        self.work(CHUNK_BYTES.saturating_add(chunk))
    }

    /// Counts a chunk, and adds it to a text.
    pub(crate) fn push(&mut self, text: &mut String, chunk: &str) -> Result<(), Stop> {
        self.longer(text.len(), chunk.len())?;
        text.push_str(chunk);
        Ok(())
    }

    /// Counts chunks, and adds them to a text.
    pub(crate) fn push_all(&mut self, text: &mut String, chunks: &[&str]) -> Result<(), Stop> {
        chunks.iter().try_for_each(|chunk| self.push(text, chunk))
    }

    /// Counts what the values of a JSON text take in memory once it is read.
    pub(crate) fn reading(&mut self, text: &str) -> Result<(), Stop> {
        let mut bytes = text.len();
        let mut is_quoted = false;
        let mut is_escaped = false;
        let mut is_between = true;
        for byte in text.bytes() {
            if is_quoted {
                is_quoted = is_escaped || byte != b'"';
                is_escaped = !is_escaped && byte == b'\\';
                continue;
            }
            let is_within = !is_between;
            is_between = true;
            bytes += match byte {
                b'{' => OBJECT_BYTES + VALUE_BYTES,
                b'[' => VALUE_BYTES,
                b'"' => {
                    is_quoted = true;
                    VALUE_BYTES
                }
                b',' | b':' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r' => 0,
                _ => {
                    is_between = false;
                    if is_within { 0 } else { VALUE_BYTES }
                }
            };
        }
        self.work(bytes)
    }

    /// Returns a value as JSON.
    pub(crate) fn json(&mut self, value: &Value, is_compact: bool) -> Result<String, Stop> {
        let mut counted = Counted {
            meter: self,
            bytes: Vec::new(),
            stop: None,
        };
        let written = if is_compact {
            serde_json::to_writer(&mut counted, value)
        } else {
            serde_json::to_writer_pretty(&mut counted, value)
        };
        match (counted.stop, written) {
            (Some(stop), _) => Err(stop),
            (None, Err(error)) => Err(Stop::Over(error.to_string())),
            (None, Ok(())) => {
                String::from_utf8(counted.bytes).map_err(|error| Stop::Over(error.to_string()))
            }
        }
    }
}

/// A text to which chunks are written, each counted before it is.
struct Counted<'m> {
    meter: &'m mut Meter,
    bytes: Vec<u8>,
    stop: Option<Stop>,
}

impl io::Write for Counted<'_> {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        match self.meter.longer(self.bytes.len(), chunk.len()) {
            Ok(()) => {
                self.bytes.extend_from_slice(chunk);
                Ok(chunk.len())
            }
            Err(stop) => {
                self.stop = Some(stop);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
