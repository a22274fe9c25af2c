//! `head` and `tail`.

use crate::reading::{Text, texts};
use crate::state::{Ended, Line, Stop, push};
use agent_host_shapes::shown::visible;

/// Lines that are shown without a number.
const LINES: usize = 10;

/// The number that one is given, and the other arguments.
struct Edge {
    count: usize,
    is_bytes: bool,
    /// True for `tail -n +N`: from a line on.
    is_from: bool,
    paths: Vec<String>,
}

impl Edge {
    /// Reads `-n N`, `-nN`, `-N` and `-c N`, of which there is one.
    fn read(name: &str, arguments: &[String]) -> Result<Self, Ended> {
        let mut edge = Self {
            count: LINES,
            is_bytes: false,
            is_from: false,
            paths: Vec::new(),
        };
        let mut is_given = false;
        let mut all = arguments.iter();
        while let Some(argument) = all.next() {
            if argument == "--" {
                edge.paths.extend(all.by_ref().cloned());
                break;
            }
            let Some(option) = argument.strip_prefix('-').filter(|it| !it.is_empty()) else {
                edge.paths.push(argument.clone());
                continue;
            };
            if std::mem::replace(&mut is_given, true) {
                let why = format!("{name}: -n and -c are given once, and not together");
                return Err(Ended::failed(2, why));
            }
            edge.is_bytes = option.starts_with('c');
            let attached = option.strip_prefix(['n', 'c']).unwrap_or(option);
            let number = match attached {
                "" => all.next().map_or("", String::as_str),
                attached => attached,
            };
            edge.is_from = name == "tail" && number.starts_with('+');
            let digits = number.strip_prefix('+').unwrap_or(number);
            let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
            edge.count = match digits.parse() {
                Ok(count) if is_number => count,
                _ => {
                    let argument = visible(argument, 80);
                    let why = format!(
                        "{name}: {argument} is not read; options are: -n NUMBER, -c NUMBER"
                    );
                    return Err(Ended::failed(2, why));
                }
            };
        }
        Ok(edge)
    }

    /// Returns the part of a text that is shown.
    fn of<'t>(&self, name: &str, text: &'t str) -> &'t str {
        let is_head = name == "head";
        let at = match (self.is_bytes, is_head) {
            (true, true) => self.count,
            (true, false) if self.is_from => self.count.saturating_sub(1),
            (true, false) => text.len().saturating_sub(self.count),
            (false, true) => after_lines(text, self.count),
            (false, false) if self.is_from => after_lines(text, self.count.saturating_sub(1)),
            (false, false) => {
                let all = text.split_inclusive('\n').count();
                after_lines(text, all.saturating_sub(self.count))
            }
        };
        let (before, after) = text.split_at(text.floor_char_boundary(at));
        if is_head { before } else { after }
    }
}

/// Returns the place after so many lines of a text.
fn after_lines(text: &str, count: usize) -> usize {
    text.split_inclusive('\n').take(count).map(str::len).sum()
}

/// Carries one out.
pub(crate) fn run(
    line: &Line<'_>,
    name: &str,
    arguments: &[String],
    input: &str,
) -> Result<Ended, Stop> {
    let edge = match Edge::read(name, arguments) {
        Ok(edge) => edge,
        Err(ended) => return Ok(ended),
    };
    let read = texts(line, name, &edge.paths, input)?;
    let has_titles = read.texts.len() > 1;
    let mut out = String::new();
    for Text { path, text } in &read.texts {
        if has_titles {
            push(&mut out, &["==> ", path, " <==\n"])?;
        }
        push(&mut out, &[edge.of(name, text)])?;
    }
    Ok(read.printed(out))
}
