//! `search_files`.

use crate::disk::Kind;
use crate::disk::{DEPTH_MAX, Extent, Stopwatch, Walked, walk};
use crate::folders::{Folders, GrantedPath};
use crate::read::{Line, open_text};
use agent_host_sdk::{CallContext, ToolError};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fs;

/// Matches that one call returns.
pub(crate) const MATCHES_MAX: usize = 100;
/// Characters of a line that are returned.
const LINE_CHARS_MAX: usize = 240;
/// Bytes of a file that is searched; larger ones are passed over.
const SEARCHED_BYTES_MAX: u64 = 8 << 20;
/// Bytes of a line that are searched.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Lines between two polls at the clock.
const LINES_UNTIMED: u64 = 64;
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
struct Findings {
    regex: Regex,
    stopwatch: Stopwatch,
    lines: Vec<String>,
    passed_over: usize,
    /// Lines of which only the beginning was searched.
    cut: usize,
}

pub(crate) fn search(
    folders: &Folders,
    context: &CallContext,
    arguments: &Arguments,
) -> Result<String, ToolError> {
    let place = folders.place(&arguments.path)?;
    if arguments.pattern.is_empty() {
        return Err(ToolError::invalid("pattern", "must not be empty"));
    }
    let regex = regex(&arguments.pattern)?;
    let meta = fs::metadata(&place.path).map_err(|error| folders.read_error(&place, &error))?;
    let stopwatch = Stopwatch::start(context);
    let mut findings = Findings {
        regex,
        stopwatch,
        lines: Vec::new(),
        passed_over: 0,
        cut: 0,
    };
    let mut notes = Vec::new();
    let mut walked = Walked::All;
    if meta.is_dir() {
        let extent = Extent {
            depth: match arguments.recursive {
                Some(false) => 1,
                Some(true) | None => DEPTH_MAX,
            },
            stopwatch,
            wants: |_: &str, kind| kind == Kind::File,
        };
        let walk = walk(folders, &place, &extent, |found| {
            let relative = &found.relative;
            findings.search_in(&place.below(relative), relative);
            !findings.is_over()
        })?;
        walked = walk.walked;
        notes.extend(walk.notes());
    } else {
        findings.search_in(&place, &place.shown);
        if findings.is_over() {
            walked = Walked::Part;
        }
    }
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
    if findings.cut > 0 {
        lines.push(format!(
            "[searched only the first {LINE_BYTES_MAX} bytes of {} longer lines]",
            findings.cut
        ));
    }
    lines.extend(notes);
    Ok(lines.join("\n"))
}

fn regex(pattern: &str) -> Result<Regex, ToolError> {
    let built = RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES_MAX)
        .build();
    built.map_err(|error| {
        // The lines before the last one draw where it is.
        let said = error.to_string();
        let why = said.lines().last().unwrap_or_default();
        let why = why.trim_start_matches("error: ");
        ToolError::invalid(
            "pattern",
            format_args!("is not a regular expression ({why}); write `\\(` for a plain `(`"),
        )
    })
}

impl Findings {
    /// Returns true if no more is looked for.
    fn is_over(&self) -> bool {
        self.lines.len() >= MATCHES_MAX || self.stopwatch.has_run_out()
    }

    fn search_in(&mut self, place: &GrantedPath, name: &str) {
        if self.search_file(place, name).is_none() {
            self.passed_over += 1;
        }
    }

    /// None when the file is not one that is searched.
    fn search_file(&mut self, place: &GrantedPath, name: &str) -> Option<()> {
        let meta = fs::metadata(&place.path).ok()?;
        // Opening a pipe would wait for its writer.
        if !meta.is_file() || meta.len() > SEARCHED_BYTES_MAX {
            return None;
        }
        let mut text = open_text(place).ok()??;
        let mut line = Line::default();
        let mut number = 0_u64;
        while line.read(&mut text, LINE_BYTES_MAX).ok()? {
            number += 1;
            if self.regex.is_match(&line.bytes) {
                let shown = String::from_utf8_lossy(&line.bytes);
                let shown: String = shown.chars().take(LINE_CHARS_MAX).collect();
                self.lines
                    .push(format!("{name}:{number}: {}", shown.trim_end()));
            } else if line.is_cut() {
                self.cut += 1;
            }
            let is_timed = number.is_multiple_of(LINES_UNTIMED) || line.is_cut();
            if self.lines.len() >= MATCHES_MAX || (is_timed && self.stopwatch.has_run_out()) {
                break;
            }
        }
        Some(())
    }
}
