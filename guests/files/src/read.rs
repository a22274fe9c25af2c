//! `read_file`, and the lines of a text, whatever ends them: `\n`, `\r\n` or `\r` alone.

use crate::folders::{Folders, GrantedPath};
use agent_host_sdk::{CallContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::{fs, io};

/// Bytes of text that one call returns. Below the size from which the host keeps a text as a blob,
/// so that a model sees all of it.
pub(crate) const READ_BYTES_MAX: usize = 30 << 10;
/// Bytes at the beginning of a file that tell text from other things.
const SNIFFED_BYTES: usize = 8 << 10;
/// Bytes that are read from the disk at once.
const BUFFER_BYTES: usize = 64 << 10;
/// The mark that some editors write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The arguments of `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    /// Lines to skip.
    offset: Option<u64>,
    /// Lines at most.
    limit: Option<u64>,
}

pub(crate) fn read(
    folders: &Folders,
    _: &CallContext,
    arguments: &Arguments,
) -> Result<String, ToolError> {
    let place = folders.place(&arguments.path)?;
    let fails = |error: io::Error| folders.read_error(&place, &error);
    let meta = fs::metadata(&place.path).map_err(fails)?;
    if meta.is_dir() {
        return Err(ToolError::invalid(
            "path",
            format_args!("is a folder: `{}`; use list_files", place.shown),
        ));
    }
    if !meta.is_file() {
        return Err(ToolError::invalid(
            "path",
            format_args!("is no file that can be read: `{}`", place.shown),
        ));
    }
    let Some(mut text) = open_text(&place).map_err(fails)? else {
        return Ok(format!(
            "`{}` is not text; it has {} bytes",
            place.shown,
            meta.len()
        ));
    };
    let offset = arguments.offset.unwrap_or(0);
    let skipped = skip_lines(&mut text, offset).map_err(fails)?;
    let part = take_lines(&mut text, arguments.limit.unwrap_or(u64::MAX)).map_err(fails)?;
    let mut read = String::from_utf8_lossy(&part.bytes).into_owned();
    if skipped < offset {
        return Ok(format!("[the file has only {skipped} lines]"));
    }
    if part.line_cut {
        read.push_str(&format!(
            "\n[line {} is longer than {READ_BYTES_MAX} bytes and was cut]",
            offset + part.lines
        ));
    }
    if part.more {
        let next = offset + part.lines;
        read.push_str(&format!("\n[there is more; go on with offset {next}]"));
    }
    Ok(read)
}

/// A text file, its beginning read already.
pub(crate) type Text = BufReader<io::Chain<io::Cursor<Vec<u8>>, File>>;

/// Opens a file if it is text: UTF-8 without zeros, as far as its beginning tells. A byte order
/// mark is no part of it.
pub(crate) fn open_text(place: &GrantedPath) -> io::Result<Option<Text>> {
    let mut file = File::open(&place.path)?;
    let mut start = Vec::new();
    Read::by_ref(&mut file)
        .take(SNIFFED_BYTES as u64)
        .read_to_end(&mut start)?;
    let is_utf8 = match std::str::from_utf8(&start) {
        Ok(_) => true,
        // A character that the sniffed part cuts off is not an error.
        Err(error) => error.error_len().is_none() && start.len() == SNIFFED_BYTES,
    };
    let is_text = is_utf8 && !start.contains(&0);
    if start.starts_with(BYTE_ORDER_MARK) {
        start.drain(..BYTE_ORDER_MARK.len());
    }
    let text = io::Cursor::new(start).chain(file);
    Ok(is_text.then(|| BufReader::with_capacity(BUFFER_BYTES, text)))
}

/// Skips lines without keeping them; returns how many there were to skip.
fn skip_lines(text: &mut impl BufRead, lines: u64) -> io::Result<u64> {
    let mut line = Line::default();
    for skipped in 0..lines {
        if !line.read(text, 0)? {
            return Ok(skipped);
        }
    }
    Ok(lines)
}

/// Some lines of a file.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    lines: u64,
    /// True if the last line was too long to be returned whole.
    line_cut: bool,
    more: bool,
}

fn take_lines(text: &mut impl BufRead, limit: u64) -> io::Result<Part> {
    let mut part = Part::default();
    let mut line = Line::default();
    while part.lines < limit {
        if !line.read(text, READ_BYTES_MAX + 1)? {
            return Ok(part);
        }
        line.bytes.extend_from_slice(line.end.as_bytes());
        if part.bytes.len() + line.bytes.len() > READ_BYTES_MAX {
            part.more = true;
            // A line too long for any call would never be passed; it is cut instead.
            if part.lines == 0 {
                line.bytes.truncate(READ_BYTES_MAX);
                part.bytes.append(&mut line.bytes);
                part.lines = 1;
                part.line_cut = true;
                part.more = !text.fill_buf()?.is_empty();
            }
            return Ok(part);
        }
        part.bytes.append(&mut line.bytes);
        part.lines += 1;
    }
    part.more = !text.fill_buf()?.is_empty();
    Ok(part)
}

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
