//! The commands that are always there.

use crate::meter::Stop;
use crate::state::{Ended, Line};
use crate::{files, grep, jq};

/// Their names.
pub(crate) const NAMES: [&str; 10] = [
    "cat", "head", "tail", "grep", "wc", "sort", "uniq", "echo", "ls", "jq",
];
/// Lines that `head` and `tail` show without a number.
const LINES: usize = 10;

/// Carries one out.
pub(crate) fn run(
    line: &mut Line<'_>,
    name: &str,
    arguments: &[String],
    input: &str,
) -> Result<Ended, Stop> {
    match name {
        "cat" => cat(line, arguments, input),
        "head" | "tail" => edge(line, name, arguments, input),
        "grep" => grep::run(line, arguments, input),
        "wc" => wc(line, arguments, input),
        "sort" => sort(line, arguments, input),
        "uniq" => uniq(arguments, input),
        "echo" => Ok(echo(arguments)),
        "jq" => jq::run(line, arguments, input),
        _ => Ok(ls(line, arguments)),
    }
}

/// The letters of the options of a command, and its other arguments.
pub(crate) struct Options {
    pub(crate) letters: Vec<char>,
    pub(crate) others: Vec<String>,
}

impl Options {
    /// Divides arguments into single letters and others. After `--` all are others.
    ///
    /// # Errors
    /// The first option that is not among `known`.
    pub(crate) fn read(name: &str, arguments: &[String], known: &str) -> Result<Self, Ended> {
        let mut options = Self {
            letters: Vec::new(),
            others: Vec::new(),
        };
        let mut all = arguments.iter();
        while let Some(argument) = all.next() {
            match argument.strip_prefix('-') {
                Some("-") => {
                    options.others.extend(all.by_ref().cloned());
                }
                Some(letters) if !letters.is_empty() => {
                    for letter in letters.chars() {
                        if !known.contains(letter) {
                            return Err(unknown(name, argument, known));
                        }
                        options.letters.push(letter);
                    }
                }
                Some(_) | None => options.others.push(argument.clone()),
            }
        }
        Ok(options)
    }

    pub(crate) fn has(&self, letter: char) -> bool {
        self.letters.contains(&letter)
    }
}

fn unknown(name: &str, argument: &str, known: &str) -> Ended {
    let known: Vec<String> = known.chars().map(|letter| format!("-{letter}")).collect();
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(" ")
    };
    let argument = domain::shown::visible(argument, 80);
    Ended::failed(
        2,
        format!("{name}: there is no option {argument} here; options are: {known}"),
    )
}

/// The texts that a command reads.
pub(crate) struct Read<'t> {
    /// The texts, each with its path; `-` is the input.
    pub(crate) texts: Vec<Text<'t>>,
    /// The faults of the files that could not be read.
    pub(crate) err: String,
}

/// One text.
#[derive(Clone, Copy)]
pub(crate) struct Text<'t> {
    pub(crate) path: &'t str,
    pub(crate) text: &'t str,
}

impl Read<'_> {
    /// Returns the end of a command that has read and printed this.
    pub(crate) fn printed(self, out: String) -> Ended {
        Ended {
            out,
            exit: u8::from(!self.err.is_empty()),
            err: self.err,
        }
    }
}

/// Reads the files of a command, or the input without any.
pub(crate) fn texts<'t, 'a: 't>(
    line: &mut Line<'a>,
    name: &str,
    paths: &'t [String],
    input: &'t str,
) -> Result<Read<'t>, Stop> {
    let mut read = Read {
        texts: Vec::new(),
        err: String::new(),
    };
    let of_input = Text {
        path: "-",
        text: input,
    };
    if paths.is_empty() {
        read.texts.push(of_input);
    }
    for path in paths {
        if path == "-" {
            read.texts.push(of_input);
            continue;
        }
        match files::read(line.skills, path) {
            Ok(text) => {
                line.meter.work(text.len())?;
                read.texts.push(Text { path, text });
            }
            Err(why) => read.err.push_str(&format!("{name}: {why}\n")),
        }
    }
    Ok(read)
}

fn cat(line: &mut Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read("cat", arguments, "n") {
        Ok(options) => options,
        Err(ended) => return Ok(ended),
    };
    let read = texts(line, "cat", &options.others, input)?;
    let mut out = String::new();
    let mut number = 0_usize;
    for Text { text, .. } in &read.texts {
        if !options.has('n') {
            line.meter.text(out.len() + text.len())?;
            out.push_str(text);
            continue;
        }
        for text in text.lines() {
            number += 1;
            line.meter.text(out.len() + text.len())?;
            out.push_str(&format!("{number:6}\t{text}\n"));
        }
    }
    Ok(read.printed(out))
}

/// The number that `head` and `tail` are given, and the other arguments.
struct Edge {
    count: usize,
    is_bytes: bool,
    /// True for `tail -n +N`: from a line on.
    is_from: bool,
    paths: Vec<String>,
}

impl Edge {
    /// Reads `-n N`, `-nN`, `-N` and `-c N`.
    fn read(name: &str, arguments: &[String]) -> Result<Self, Ended> {
        let mut edge = Self {
            count: LINES,
            is_bytes: false,
            is_from: false,
            paths: Vec::new(),
        };
        let mut all = arguments.iter();
        while let Some(argument) = all.next() {
            let Some(option) = argument.strip_prefix('-').filter(|it| !it.is_empty()) else {
                edge.paths.push(argument.clone());
                continue;
            };
            edge.is_bytes = option.starts_with('c');
            let attached = option.trim_start_matches(['n', 'c']);
            let number = match attached {
                "" => all.next().map_or("", String::as_str),
                attached => attached,
            };
            edge.is_from = name == "tail" && number.starts_with('+');
            edge.count = number.trim_start_matches('+').parse().map_err(|_| {
                let argument = domain::shown::visible(argument, 80);
                Ended::failed(
                    2,
                    format!("{name}: {argument} is not read; options are: -n NUMBER, -c NUMBER"),
                )
            })?;
        }
        Ok(edge)
    }

    fn of_bytes<'t>(&self, name: &str, text: &'t str) -> &'t str {
        let at = if name == "head" {
            self.count.min(text.len())
        } else if self.is_from {
            self.count.saturating_sub(1).min(text.len())
        } else {
            text.len().saturating_sub(self.count)
        };
        let at = text.floor_char_boundary(at);
        let part = if name == "head" {
            text.get(..at)
        } else {
            text.get(at..)
        };
        part.unwrap_or_default()
    }

    fn of_lines<'t>(&self, name: &str, text: &'t str) -> Vec<&'t str> {
        if name == "head" {
            return text.split_inclusive('\n').take(self.count).collect();
        }
        let skipped = if self.is_from {
            self.count.saturating_sub(1)
        } else {
            let all = text.split_inclusive('\n').count();
            all.saturating_sub(self.count)
        };
        text.split_inclusive('\n').skip(skipped).collect()
    }
}

fn edge(line: &mut Line<'_>, name: &str, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let edge = match Edge::read(name, arguments) {
        Ok(edge) => edge,
        Err(ended) => return Ok(ended),
    };
    let read = texts(line, name, &edge.paths, input)?;
    let has_titles = read.texts.len() > 1;
    let mut out = String::new();
    for Text { path, text } in &read.texts {
        if has_titles {
            out.push_str(&format!("==> {path} <==\n"));
        }
        let part = if edge.is_bytes {
            edge.of_bytes(name, text).to_owned()
        } else {
            edge.of_lines(name, text).concat()
        };
        line.meter.text(out.len() + part.len())?;
        out.push_str(&part);
    }
    Ok(read.printed(out))
}

fn wc(line: &mut Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read("wc", arguments, "lwcm") {
        Ok(options) => options,
        Err(ended) => return Ok(ended),
    };
    let read = texts(line, "wc", &options.others, input)?;
    let all = options.letters.is_empty();
    let mut out = String::new();
    for Text { path, text } in &read.texts {
        let counts = [
            (all || options.has('l'), text.matches('\n').count()),
            (all || options.has('w'), text.split_whitespace().count()),
            (options.has('m'), text.chars().count()),
            (all || options.has('c'), text.len()),
        ];
        let mut shown: Vec<String> = counts
            .into_iter()
            .filter(|(is_wanted, _)| *is_wanted)
            .map(|(_, count)| count.to_string())
            .collect();
        if *path != "-" {
            shown.push((*path).to_owned());
        }
        out.push_str(&shown.join(" "));
        out.push('\n');
    }
    Ok(read.printed(out))
}

fn sort(line: &mut Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read("sort", arguments, "rnuf") {
        Ok(options) => options,
        Err(ended) => return Ok(ended),
    };
    let read = texts(line, "sort", &options.others, input)?;
    let mut lines: Vec<&str> = read
        .texts
        .iter()
        .flat_map(|text| text.text.lines())
        .collect();
    // Comparing reads each line some times.
    let size: usize = lines.iter().map(|line| line.len() + 1).sum();
    line.meter.work(size.saturating_mul(8))?;
    if options.has('n') {
        lines.sort_by(|a, b| number_of(a).total_cmp(&number_of(b)).then_with(|| a.cmp(b)));
    } else if options.has('f') {
        lines.sort_by_cached_key(|line| line.to_lowercase());
    } else {
        lines.sort_unstable();
    }
    if options.has('r') {
        lines.reverse();
    }
    if options.has('u') {
        lines.dedup();
    }
    let out = ended_lines(&lines);
    line.meter.text(out.len())?;
    Ok(read.printed(out))
}

/// Returns the number at the beginning of a line; 0 without one.
fn number_of(line: &str) -> f64 {
    let line = line.trim_start();
    let end = line
        .find(|char: char| !(char.is_ascii_digit() || matches!(char, '.' | '-')))
        .unwrap_or(line.len());
    line.get(..end)
        .and_then(|number| number.parse().ok())
        .unwrap_or(0.0)
}

fn uniq(arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read("uniq", arguments, "cdu") {
        Ok(options) if options.others.is_empty() => options,
        Ok(_) => return Ok(Ended::failed(2, "uniq: it reads its input; use a pipe")),
        Err(ended) => return Ok(ended),
    };
    let mut groups: Vec<(usize, &str)> = Vec::new();
    for line in input.lines() {
        match groups.last_mut() {
            Some((count, last)) if *last == line => *count += 1,
            Some(_) | None => groups.push((1, line)),
        }
    }
    let mut out = String::new();
    for (count, line) in groups {
        let is_shown = match (options.has('d'), options.has('u')) {
            (true, _) => count > 1,
            (false, true) => count == 1,
            (false, false) => true,
        };
        if is_shown && options.has('c') {
            out.push_str(&format!("{count:7} {line}\n"));
        } else if is_shown {
            out.push_str(line);
            out.push('\n');
        }
    }
    Ok(Ended::printed(out))
}

fn echo(arguments: &[String]) -> Ended {
    let (is_whole, words) = match arguments.split_first() {
        Some((first, words)) if first == "-n" => (false, words),
        Some(_) | None => (true, arguments),
    };
    let mut out = words.join(" ");
    if is_whole {
        out.push('\n');
    }
    Ended::printed(out)
}

fn ls(line: &Line<'_>, arguments: &[String]) -> Ended {
    let options = match Options::read("ls", arguments, "1alRh") {
        Ok(options) => options,
        Err(ended) => return ended,
    };
    let here = [".".to_owned()];
    let paths = match options.others.as_slice() {
        [] => here.as_slice(),
        paths => paths,
    };
    let mut ended = Ended::default();
    for path in paths {
        let whole = files::whole(path);
        if line.skills.files().contains_key(&whole) {
            ended.out.push_str(&format!("{path}\n"));
        } else if !files::is_folder(line.skills, &whole) {
            ended
                .err
                .push_str(&format!("ls: {path}: No such file or directory\n"));
            ended.exit = 1;
        } else if options.has('R') {
            let below: Vec<&str> = files::below(line.skills, &whole).collect();
            ended.out.push_str(&ended_lines(&below));
        } else {
            if paths.len() > 1 {
                ended.out.push_str(&format!("{path}:\n"));
            }
            let names: Vec<String> = files::names(line.skills, &whole).into_iter().collect();
            ended.out.push_str(&ended_lines(&names));
        }
    }
    ended
}

/// Returns lines with an end each.
pub(crate) fn ended_lines(lines: &[impl AsRef<str>]) -> String {
    lines
        .iter()
        .flat_map(|line| [line.as_ref(), "\n"])
        .collect()
}
