//! `grep`, with patterns whose time is linear in what they read.

use crate::builtins::{Options, Text, texts};
use crate::files;
use crate::meter::Stop;
use crate::state::{Ended, Line};
use regex::{Regex, RegexBuilder};

/// Bytes of memory of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// Work that a byte is counted as in which a pattern is looked for: it takes longer than copying.
pub(crate) const MATCH_FACTOR: usize = 16;

/// Carries `grep` out.
pub(crate) fn run(line: &mut Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read("grep", arguments, "EFivnclqowrRhHs") {
        Ok(options) => options,
        Err(ended) => return Ok(ended),
    };
    let Some((pattern, paths)) = options.others.split_first() else {
        return Ok(Ended::failed(2, "grep: it needs a pattern"));
    };
    let pattern = match compiled(pattern, &options) {
        Ok(pattern) => pattern,
        Err(why) => return Ok(Ended::failed(2, format!("grep: {why}"))),
    };
    let paths = if options.has('r') || options.has('R') {
        all_below(line, paths)
    } else {
        paths.to_vec()
    };
    let read = texts(line, "grep", &paths, input)?;
    let is_titled = (read.texts.len() > 1 || options.has('H')) && !options.has('h');
    let mut printed = Printed::default();
    for text in &read.texts {
        line.meter
            .work(text.text.len().saturating_mul(MATCH_FACTOR))?;
        printed.search(*text, &pattern, &options, is_titled);
        line.meter.text(printed.out.len())?;
    }
    let found = printed.found;
    let mut ended = read.printed(if options.has('q') {
        String::new()
    } else {
        printed.out
    });
    ended.exit = match (found, ended.err.is_empty()) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    };
    Ok(ended)
}

/// Returns the files that some paths mean, with those below folders.
fn all_below(line: &Line<'_>, paths: &[String]) -> Vec<String> {
    let here = [".".to_owned()];
    let paths = if paths.is_empty() {
        here.as_slice()
    } else {
        paths
    };
    paths
        .iter()
        .flat_map(|path| {
            let whole = files::whole(path);
            let below: Vec<String> = files::below(line.skills, &whole)
                .map(str::to_owned)
                .collect();
            if below.is_empty() {
                vec![path.clone()]
            } else {
                below
            }
        })
        .collect()
}

fn compiled(pattern: &str, options: &Options) -> Result<Regex, String> {
    let pattern = if options.has('F') {
        regex::escape(pattern)
    } else if options.has('E') {
        pattern.to_owned()
    } else {
        extended(pattern)
    };
    let pattern = if options.has('w') {
        format!(r"\b(?:{pattern})\b")
    } else {
        pattern
    };
    RegexBuilder::new(&pattern)
        .case_insensitive(options.has('i'))
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| error.to_string())
}

/// Returns a basic pattern as an extended one: there `\|`, `\(` and the like are operators, and the
/// characters by themselves are not.
fn extended(basic: &str) -> String {
    let mut extended = String::new();
    let mut is_in_class = false;
    let mut chars = basic.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            _ => {}
        }
        match (char, chars.peek().copied()) {
            ('\\', Some(next @ ('|' | '(' | ')' | '{' | '}' | '+' | '?'))) => {
                chars.next();
                extended.push(next);
            }
            ('\\', Some(next)) => {
                chars.next();
                extended.extend(['\\', next]);
            }
            ('|' | '(' | ')' | '{' | '}' | '+' | '?', _) if !is_in_class => {
                extended.extend(['\\', char]);
            }
            _ => extended.push(char),
        }
    }
    extended
}

/// The output of a search.
#[derive(Default)]
struct Printed {
    out: String,
    found: bool,
}

impl Printed {
    fn search(&mut self, text: Text<'_>, pattern: &Regex, options: &Options, is_titled: bool) {
        let mut count = 0_usize;
        for (number, line) in (1_usize..).zip(text.text.lines()) {
            if pattern.is_match(line) == options.has('v') {
                continue;
            }
            count += 1;
            if options.has('c') || options.has('l') {
                continue;
            }
            let mut start = String::new();
            if is_titled {
                start.push_str(&format!("{}:", text.path));
            }
            if options.has('n') {
                start.push_str(&format!("{number}:"));
            }
            if options.has('o') && !options.has('v') {
                for found in pattern.find_iter(line).filter(|found| !found.is_empty()) {
                    self.out.push_str(&format!("{start}{}\n", found.as_str()));
                }
            } else {
                self.out.push_str(&format!("{start}{line}\n"));
            }
        }
        self.found |= count > 0;
        if options.has('l') && count > 0 {
            self.out.push_str(&format!("{}\n", text.path));
        } else if options.has('c') && !options.has('l') {
            let title = if is_titled {
                format!("{}:", text.path)
            } else {
                String::new()
            };
            self.out.push_str(&format!("{title}{count}\n"));
        }
    }
}
