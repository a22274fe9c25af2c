//! Arguments and texts as commands read them.

use crate::files;
use crate::state::{Ended, Line, Stop, push};
use agent_host_shapes::shown::visible;

/// The options of a command, and its other arguments.
#[derive(Default)]
pub(crate) struct Options {
    letters: Vec<char>,
    /// Options that have a value, with it.
    valued: Vec<(char, String)>,
    pub(crate) others: Vec<String>,
}

impl Options {
    /// Divides arguments into options of one letter and others. After `--` all are others.
    ///
    /// # Errors
    /// The first option that is neither among `known` nor, with a value, among `valued`.
    pub(crate) fn read(
        name: &str,
        arguments: &[String],
        known: &str,
        valued: &str,
    ) -> Result<Self, Ended> {
        let mut options = Self::default();
        let mut all = arguments.iter();
        while let Some(argument) = all.next() {
            match argument.strip_prefix('-') {
                Some("-") => {
                    options.others.extend(all.by_ref().cloned());
                }
                Some(letters) if !letters.is_empty() => {
                    for (at, letter) in letters.char_indices() {
                        if valued.contains(letter) {
                            let attached = letters.get(at + letter.len_utf8()..);
                            let attached = attached.filter(|value| !value.is_empty());
                            let Some(value) = attached.or_else(|| all.next().map(String::as_str))
                            else {
                                let why = format!("{name}: -{letter} has no value");
                                return Err(Ended::failed(2, why));
                            };
                            options.valued.push((letter, value.to_owned()));
                            break;
                        }
                        if !known.contains(letter) {
                            return Err(unknown(name, argument, &format!("{known}{valued}")));
                        }
                        options.letters.push(letter);
                    }
                }
                Some(_) | None => options.others.push(argument.clone()),
            }
        }
        Ok(options)
    }

    /// Returns whether none is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.valued.is_empty()
    }

    pub(crate) fn has(&self, letter: char) -> bool {
        self.letters.contains(&letter)
    }

    /// Returns the values of an option, in order.
    pub(crate) fn values(&self, letter: char) -> impl Iterator<Item = &str> {
        let valued = self.valued.iter().filter(move |(it, _)| *it == letter);
        valued.map(|(_, value)| value.as_str())
    }

    /// Returns the last value of an option.
    pub(crate) fn value(&self, letter: char) -> Option<&str> {
        self.values(letter).last()
    }
}

fn unknown(name: &str, argument: &str, known: &str) -> Ended {
    let known: Vec<String> = known.chars().map(|letter| format!("-{letter}")).collect();
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(" ")
    };
    let argument = visible(argument, 80);
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
    line: &Line<'a>,
    name: &str,
    paths: &'t [String],
    input: &'t str,
) -> Result<Read<'t>, Stop> {
    let mut read = Read {
        texts: Vec::new(),
        err: String::new(),
    };
    let mut paths = paths.iter().map(String::as_str).peekable();
    let without = paths.peek().is_none().then_some("-");
    for path in without.into_iter().chain(paths) {
        let text = match path {
            "-" => Ok(input),
            path => files::read(line.given, path),
        };
        match text {
            Ok(text) => read.texts.push(Text { path, text }),
            Err(why) => push(&mut read.err, &[name, ": ", &why, "\n"])?,
        }
    }
    Ok(read)
}
