//! The commands that are always there.

use crate::reading::{Options, Text, texts};
use crate::state::{Ended, Line, Stop, push};
use crate::{edge, files, grep, jq, sort};

/// Their names.
pub(crate) const NAMES: [&str; 12] = [
    "cat", "head", "tail", "grep", "wc", "sort", "uniq", "echo", "ls", "jq", "true", "false",
];

/// Carries one out.
pub(crate) fn run(
    line: &Line<'_>,
    name: &str,
    arguments: &[String],
    input: &str,
) -> Result<Ended, Stop> {
    match name {
        "cat" => cat(line, arguments, input),
        "head" | "tail" => edge::run(line, name, arguments, input),
        "grep" => grep::run(line, arguments, input),
        "wc" => wc(line, arguments, input),
        "sort" => sort::run(line, arguments, input),
        "uniq" => uniq(arguments, input),
        "echo" => echo(arguments),
        "jq" => jq::run(line, arguments, input),
        "true" => Ok(Ended::default()),
        "false" => Ok(Ended {
            exit: 1,
            ..Ended::default()
        }),
        _ => ls(line, arguments),
    }
}

fn cat(line: &Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read("cat", arguments, "n", "") {
        Ok(options) => options,
        Err(ended) => return Ok(ended),
    };
    let read = texts(line, "cat", &options.others, input)?;
    let mut out = String::new();
    let mut number = 0_usize;
    for Text { text, .. } in &read.texts {
        if !options.has('n') {
            push(&mut out, &[text])?;
            continue;
        }
        for text in text.lines() {
            number += 1;
            let start = format!("{number:6}\t");
            push(&mut out, &[&start, text, "\n"])?;
        }
    }
    Ok(read.printed(out))
}

fn wc(line: &Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read("wc", arguments, "lwcm", "") {
        Ok(options) => options,
        Err(ended) => return Ok(ended),
    };
    let read = texts(line, "wc", &options.others, input)?;
    let all = options.is_empty();
    let wanted = [
        all || options.has('l'),
        all || options.has('w'),
        options.has('m'),
        all || options.has('c'),
    ];
    let shown = |counts: [usize; 4]| {
        let counts = counts
            .iter()
            .zip(wanted)
            .filter(|(_, is_wanted)| *is_wanted);
        let counts: Vec<String> = counts.map(|(count, _)| count.to_string()).collect();
        counts.join(" ")
    };
    let mut totals = [0_usize; 4];
    let mut out = String::new();
    for Text { path, text } in &read.texts {
        let counts = [
            text.matches('\n').count(),
            text.split_whitespace().count(),
            text.chars().count(),
            text.len(),
        ];
        for (total, count) in totals.iter_mut().zip(counts) {
            *total = total.saturating_add(count);
        }
        push(&mut out, &[&shown(counts)])?;
        if *path != "-" {
            push(&mut out, &[" ", path])?;
        }
        push(&mut out, &["\n"])?;
    }
    if options.others.len() > 1 {
        push(&mut out, &[&shown(totals), " total\n"])?;
    }
    Ok(read.printed(out))
}

fn uniq(arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read("uniq", arguments, "cdu", "") {
        Ok(options) if options.others.is_empty() => options,
        Ok(_) => return Ok(Ended::failed(2, "uniq: it reads its input; use a pipe")),
        Err(ended) => return Ok(ended),
    };
    let mut groups: Vec<(usize, &str)> = Vec::new();
    for text in input.lines() {
        match groups.last_mut() {
            Some((count, last)) if *last == text => *count += 1,
            Some(_) | None => groups.push((1, text)),
        }
    }
    let mut out = String::new();
    for (count, text) in groups {
        let is_shown = match (options.has('d'), options.has('u')) {
            (true, _) => count > 1,
            (false, true) => count == 1,
            (false, false) => true,
        };
        if is_shown && options.has('c') {
            let start = format!("{count:7} ");
            push(&mut out, &[&start])?;
        }
        if is_shown {
            push(&mut out, &[text, "\n"])?;
        }
    }
    Ok(Ended::printed(out))
}

fn echo(arguments: &[String]) -> Result<Ended, Stop> {
    // Anything else that begins with `-` is a word, as in other shells.
    let is_option = |word: &&String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|letter| "neE".contains(letter))
    };
    let count = arguments.iter().take_while(is_option).count();
    let (options, words) = arguments.split_at(count);
    if let Err(ended) = Options::read("echo", options, "n", "") {
        return Ok(ended);
    }
    let mut out = String::new();
    for (number, word) in words.iter().enumerate() {
        let between = if number == 0 { "" } else { " " };
        push(&mut out, &[between, word])?;
    }
    if options.is_empty() {
        out.push('\n');
    }
    Ok(Ended::printed(out))
}

fn ls(line: &Line<'_>, arguments: &[String]) -> Result<Ended, Stop> {
    let options = match Options::read("ls", arguments, "1alR", "") {
        Ok(options) => options,
        Err(ended) => return Ok(ended),
    };
    let here = [".".to_owned()];
    let paths = match options.others.as_slice() {
        [] => here.as_slice(),
        paths => paths,
    };
    let mut listed = Listed {
        is_long: options.has('l'),
        ended: Ended::default(),
    };
    for path in paths {
        let whole = files::whole(path);
        if let Some(text) = line.given.files.get(whole.as_str()) {
            listed.add(path, Some(text.len()))?;
        } else if !files::is_folder(line.given, &whole) {
            let why = files::missing(path);
            let reported = ["ls: ", why.as_str(), "\n"];
            push(&mut listed.ended.err, &reported)?;
            listed.ended.exit = 1;
        } else if options.has('R') {
            for path in files::below(line.given, &whole) {
                let text = line.given.files.get(path);
                listed.add(path, text.map(|text| text.len()))?;
            }
        } else {
            if paths.len() > 1 {
                let title = [path.as_str(), ":\n"];
                push(&mut listed.ended.out, &title)?;
            }
            let folder = whole.trim_end_matches('/');
            for name in files::names(line.given, &whole) {
                let text = line.given.files.get(format!("{folder}/{name}").as_str());
                listed.add(&name, text.map(|text| text.len()))?;
            }
        }
    }
    Ok(listed.ended)
}

/// The output of `ls`. No name is hidden, so `-a` shows the same; there is one on each line.
struct Listed {
    is_long: bool,
    ended: Ended,
}

impl Listed {
    /// Adds a name, in the long form with what it is, and with its size if it is a file.
    fn add(&mut self, name: &str, size: Option<usize>) -> Result<(), Stop> {
        let start = match (self.is_long, size) {
            (false, _) => String::new(),
            (true, Some(size)) => format!("-r--r--r-- {size:8} "),
            (true, None) => format!("dr-xr-xr-x {:8} ", "-"),
        };
        push(&mut self.ended.out, &[&start, name, "\n"])
    }
}
