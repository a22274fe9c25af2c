//! `search_files`.

use crate::folders::{Folders, GrantedPath};
use crate::read::open_text;
use crate::walk::{DEPTH_MAX, Walked, walk};
use agent_host_sdk::{CallContext, ToolError};
use regex_lite::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;
use std::io::{self, BufRead, Read};

/// Matches that one call returns.
pub(crate) const MATCHES_MAX: usize = 100;
/// Characters of a line that are returned.
const LINE_CHARS_MAX: usize = 240;
/// Bytes of a file that is searched; larger ones are passed over.
const SEARCHED_BYTES_MAX: u64 = 8 << 20;
/// Bytes of a line that are searched.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Bytes that a compiled expression may take.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// The arguments of `search_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    /// A file or a folder.
    path: String,
    /// A regular expression.
    pattern: String,
    /// True by default.
    recursive: Option<bool>,
}

/// The matches so far.
#[derive(Default)]
struct Findings {
    lines: Vec<String>,
    passed_over: usize,
}

pub(crate) fn search(
    folders: &Folders,
    _: &CallContext,
    arguments: &Arguments,
) -> Result<String, ToolError> {
    let place = folders.place(&arguments.path)?;
    if arguments.pattern.is_empty() {
        return Err(ToolError::invalid("pattern", "must not be empty"));
    }
    let regex = RegexBuilder::new(&arguments.pattern)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| {
            ToolError::invalid(
                "pattern",
                format_args!("is not a regular expression ({error}); write `\\(` for a plain `(`"),
            )
        })?;
    let meta = fs::metadata(&place.path).map_err(|error| folders.error(&place, &error))?;
    let mut findings = Findings::default();
    let walked = if meta.is_dir() {
        let depth = if arguments.recursive == Some(false) {
            1
        } else {
            DEPTH_MAX
        };
        walk(folders, &place, depth, |found| {
            if found.kind.is_file() {
                findings.look_into(&found.place, &found.relative, &regex);
            }
            findings.lines.len() < MATCHES_MAX
        })?
    } else {
        findings.look_into(&place, &place.shown, &regex);
        if findings.lines.len() < MATCHES_MAX {
            Walked::All
        } else {
            Walked::Part
        }
    };
    let mut lines = findings.lines;
    if lines.is_empty() {
        lines.push(format!("[no line in `{}` matches]", place.shown));
    }
    if walked == Walked::Part {
        lines.push("[there may be more; narrow the path or the pattern]".to_owned());
    }
    if findings.passed_over > 0 {
        lines.push(format!(
            "[passed over {} files that are not text, too large or not readable]",
            findings.passed_over
        ));
    }
    Ok(lines.join("\n"))
}

impl Findings {
    fn look_into(&mut self, place: &GrantedPath, name: &str, regex: &Regex) {
        if self.search_file(place, name, regex).is_none() {
            self.passed_over += 1;
        }
    }

    /// None when the file is not one that is searched.
    fn search_file(&mut self, place: &GrantedPath, name: &str, regex: &Regex) -> Option<()> {
        let meta = fs::metadata(&place.path).ok()?;
        // Opening a pipe would wait for its writer.
        if !meta.is_file() || meta.len() > SEARCHED_BYTES_MAX {
            return None;
        }
        let mut text = open_text(place).ok()??;
        let mut number = 0_u64;
        while let Some(line) = next_line(&mut text).ok()? {
            number += 1;
            if regex.is_match(&line) {
                let shown: String = line.chars().take(LINE_CHARS_MAX).collect();
                self.lines
                    .push(format!("{name}:{number}: {}", shown.trim_end()));
                if self.lines.len() == MATCHES_MAX {
                    break;
                }
            }
        }
        Some(())
    }
}

/// The next line without its end; what is over the limit of a line is skipped.
fn next_line(text: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    Read::by_ref(text)
        .take(LINE_BYTES_MAX)
        .read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else {
        text.skip_until(b'\n')?;
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}
