//! `grep`, with patterns whose time is linear in what they read.

use crate::files;
use crate::reading::{Options, Text, texts};
use crate::state::{Ended, Line, Stop, push};
use regex::{Regex, RegexBuilder};

/// Carries `grep` out.
pub(crate) fn run(line: &Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let mut options = match Options::read("grep", arguments, "EFivnclqowrRhHs", "eABC") {
        Ok(options) => options,
        Err(ended) => return Ok(ended),
    };
    let mut patterns: Vec<String> = options.values('e').map(str::to_owned).collect();
    if patterns.is_empty() {
        if options.others.is_empty() {
            return Ok(Ended::failed(2, "grep: it needs a pattern"));
        }
        patterns.push(options.others.remove(0));
    }
    let around = match Around::read(&options) {
        Ok(around) => around,
        Err(why) => return Ok(Ended::failed(2, format!("grep: {why}"))),
    };
    let whole = joined(&patterns, &options);
    let mut pattern = RegexBuilder::new(&whole);
    let pattern = match pattern.case_insensitive(options.has('i')).build() {
        Ok(pattern) => pattern,
        Err(why) => return Ok(Ended::failed(2, format!("grep: {why}"))),
    };
    let paths = if options.has('r') || options.has('R') {
        all_below(line, &options.others)
    } else {
        options.others.clone()
    };
    let mut read = texts(line, "grep", &paths, input)?;
    let mut search = Search {
        pattern: &pattern,
        options: &options,
        around,
        is_titled: (read.texts.len() > 1 || options.has('H')) && !options.has('h'),
        out: String::new(),
        is_found: false,
    };
    for text in &read.texts {
        search.search(*text)?;
    }
    let Search { out, is_found, .. } = search;
    let has_faults = !read.err.is_empty();
    if options.has('s') {
        read.err.clear();
    }
    let mut ended = read.printed(if options.has('q') { String::new() } else { out });
    ended.exit = match (is_found, has_faults) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => 2,
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
    let mut all = Vec::new();
    for path in paths {
        let whole = files::whole(path);
        if !files::is_folder(line.given, &whole) {
            all.push(path.clone());
            continue;
        }
        all.extend(files::below(line.given, &whole).map(str::to_owned));
    }
    all
}

/// Returns one pattern for several.
fn joined(patterns: &[String], options: &Options) -> String {
    let patterns: Vec<String> = patterns
        .iter()
        .map(|pattern| {
            let pattern = if options.has('F') {
                regex::escape(pattern)
            } else {
                written(pattern, options.has('E'))
            };
            if options.has('w') {
                format!(r"\b(?:{pattern})\b")
            } else {
                pattern
            }
        })
        .collect();
    match patterns.as_slice() {
        [pattern] => pattern.clone(),
        patterns => format!("(?:{})", patterns.join(")|(?:")),
    }
}

/// Returns a pattern as this program's patterns are written. In a basic one `\|`, `\(` and the like
/// are operators, and the characters by themselves are not. In a class, a `]` that stands first and
/// each `[` are the characters themselves.
fn written(pattern: &str, is_extended: bool) -> String {
    let mut written = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek().copied()) {
            ('[', _) => class(&mut chars, &mut written),
            ('\\', Some(next @ ('|' | '(' | ')' | '{' | '}' | '+' | '?'))) if !is_extended => {
                chars.next();
                written.push(next);
            }
            ('\\', Some(next)) => {
                chars.next();
                written.extend(['\\', next]);
            }
            ('|' | '(' | ')' | '{' | '}' | '+' | '?', _) if !is_extended => {
                written.extend(['\\', char]);
            }
            _ => written.push(char),
        }
    }
    written
}

/// Passes a class, whose `[` was passed, to the `]` that ends it.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, written: &mut String) {
    written.push('[');
    if chars.next_if_eq(&'^').is_some() {
        written.push('^');
    }
    if chars.next_if_eq(&']').is_some() {
        written.push_str(r"\]");
    }
    while let Some(char) = chars.next() {
        match (char, chars.peek().copied()) {
            (']', _) => {
                written.push(']');
                return;
            }
            // A named class such as `[:alpha:]`.
            ('[', Some(':')) => {
                written.push('[');
                for char in chars.by_ref() {
                    written.push(char);
                    if char == ']' {
                        break;
                    }
                }
            }
            // Other programs have these for sets.
            ('[' | '&' | '~', _) => written.extend(['\\', char]),
            ('\\', Some(next)) => {
                chars.next();
                written.extend(['\\', next]);
            }
            _ => written.push(char),
        }
    }
}

/// The number of lines that are shown around one that is found.
#[derive(Clone, Copy)]
struct Around {
    before: usize,
    after: usize,
}

impl Around {
    fn read(options: &Options) -> Result<Self, String> {
        let number = |letter: char| match options.value(letter).or(options.value('C')) {
            Some(number) => match number.parse::<usize>() {
                Ok(number) => Ok(number),
                Err(_) => Err(format!("-{letter} takes a number of lines")),
            },
            None => Ok(0),
        };
        Ok(Self {
            before: number('B')?,
            after: number('A')?,
        })
    }
}

/// A search in texts.
struct Search<'s> {
    pattern: &'s Regex,
    options: &'s Options,
    around: Around,
    is_titled: bool,
    out: String,
    is_found: bool,
}

impl Search<'_> {
    fn search(&mut self, text: Text<'_>) -> Result<(), Stop> {
        let is_reported = !(self.options.has('c') || self.options.has('l'));
        let is_divided = self.around.before > 0 || self.around.after > 0;
        let mut count = 0_usize;
        // Lines after the last that was found that still are shown, and the first not shown yet.
        let mut after = 0_usize;
        let mut shown_until = 0_usize;
        let lines: Vec<&str> = text.text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if self.pattern.is_match(line) == self.options.has('v') {
                if is_reported && after > 0 {
                    after -= 1;
                    self.show(text, (at, '-'), line)?;
                    shown_until = at + 1;
                }
                continue;
            }
            count += 1;
            if !is_reported {
                continue;
            }
            let from = at.saturating_sub(self.around.before).max(shown_until);
            if is_divided && from > shown_until && shown_until > 0 {
                push(&mut self.out, &["--\n"])?;
            }
            for (number, line) in (from..).zip(lines.get(from..at).unwrap_or_default()) {
                self.show(text, (number, '-'), line)?;
            }
            self.show(text, (at, ':'), line)?;
            shown_until = at + 1;
            after = self.around.after;
        }
        self.end(text, count)
    }

    /// Adds a line with its title and number; of one that was found, with `-o`, each match.
    fn show(&mut self, text: Text<'_>, place: (usize, char), line: &str) -> Result<(), Stop> {
        let (at, mark) = place;
        let mark = mark.to_string();
        let number = (at + 1).to_string();
        let (path, path_mark) = if self.is_titled {
            (text.path, mark.as_str())
        } else {
            ("", "")
        };
        let (number, number_mark) = if self.options.has('n') {
            (number.as_str(), mark.as_str())
        } else {
            ("", "")
        };
        if !self.options.has('o') {
            let chunks = [path, path_mark, number, number_mark, line, "\n"];
            return push(&mut self.out, &chunks);
        }
        if mark == "-" || self.options.has('v') {
            return Ok(());
        }
        for found in self.pattern.find_iter(line).filter(|it| !it.is_empty()) {
            let chunks = [path, path_mark, number, number_mark, found.as_str(), "\n"];
            push(&mut self.out, &chunks)?;
        }
        Ok(())
    }

    /// Adds what is shown at the end of a text.
    fn end(&mut self, text: Text<'_>, count: usize) -> Result<(), Stop> {
        self.is_found |= count > 0;
        if self.options.has('l') {
            if count > 0 {
                push(&mut self.out, &[text.path, "\n"])?;
            }
        } else if self.options.has('c') {
            let count = count.to_string();
            let title = if self.is_titled { text.path } else { "" };
            let mark = if self.is_titled { ":" } else { "" };
            push(&mut self.out, &[title, mark, count.as_str(), "\n"])?;
        }
        Ok(())
    }
}
