//! The lines of a text, whatever ends them: `\n`, `\r\n` or `\r` alone.

use std::io::{self, BufRead};

/// A line, and what ends it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Its beginning, as much as may be kept.
    pub(crate) bytes: Vec<u8>,
    /// The bytes that end it; none at the end of the text.
    pub(crate) end: &'static str,
    /// The bytes of all of it, without its end.
    length: usize,
}

impl Line {
    /// Reads the next line in the place of this one, and keeps so many bytes. Returns false if
    /// there is none.
    pub(crate) fn read(&mut self, text: &mut impl BufRead, bytes_max: usize) -> io::Result<bool> {
        self.bytes.clear();
        self.end = "";
        self.length = 0;
        loop {
            let ahead = text.fill_buf()?;
            if ahead.is_empty() {
                return Ok(self.length > 0);
            }
            let end = ahead.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let sign = end.and_then(|at| ahead.get(at)).copied();
            let part = ahead.get(..end.unwrap_or(ahead.len())).unwrap_or_default();
            let room = bytes_max.saturating_sub(self.bytes.len());
            self.bytes
                .extend_from_slice(part.get(..room).unwrap_or(part));
            self.length += part.len();
            let used = part.len() + usize::from(sign.is_some());
            text.consume(used);
            match sign {
                None => {}
                Some(b'\r') if text.fill_buf()?.first() == Some(&b'\n') => {
                    text.consume(1);
                    self.end = "\r\n";
                    return Ok(true);
                }
                Some(b'\r') => {
                    self.end = "\r";
                    return Ok(true);
                }
                Some(_) => {
                    self.end = "\n";
                    return Ok(true);
                }
            }
        }
    }

    /// Returns true if it was longer than what was kept.
    pub(crate) fn is_cut(&self) -> bool {
        self.length > self.bytes.len()
    }
}
