//! `sort`.

use crate::reading::{Options, texts};
use crate::state::{Ended, Line, Stop, push};
use std::cmp::Ordering;

/// The part of each line by which lines are sorted, and how they are compared.
struct By {
    /// The first field and the last, counted from 0; none for the whole line.
    fields: Option<(usize, Option<usize>)>,
    /// The character between two fields; none for blanks.
    between: Option<char>,
    is_number: bool,
    is_folded: bool,
    is_reversed: bool,
}

/// A line with what it is sorted by.
struct Keyed<'t> {
    line: &'t str,
    number: f64,
    text: String,
}

impl By {
    /// Reads the options. The error is the fault, for people.
    fn read(options: &Options) -> Result<Self, String> {
        let mut by = Self {
            fields: None,
            between: None,
            is_number: options.has('n'),
            is_folded: options.has('f'),
            is_reversed: options.has('r'),
        };
        if let Some(between) = options.value('t') {
            let mut chars = between.chars();
            by.between = chars.next();
            if by.between.is_none() || chars.next().is_some() {
                return Err("-t takes one character".to_owned());
            }
        }
        let is_read = match options.value('k') {
            Some(key) => options.values('k').count() == 1 && by.take(key).is_some(),
            None => true,
        };
        if is_read {
            Ok(by)
        } else {
            Err("-k is read once, as FIELD or FIELD,FIELD, with n, r or f after it".to_owned())
        }
    }

    /// Reads a key such as `2`, `2n` and `2,3r`.
    fn take(&mut self, key: &str) -> Option<()> {
        let numbers = key.trim_end_matches(['n', 'r', 'f']);
        for letter in key.get(numbers.len()..)?.chars() {
            match letter {
                'n' => self.is_number = true,
                'r' => self.is_reversed = true,
                _ => self.is_folded = true,
            }
        }
        let (first, last) = match numbers.split_once(',') {
            Some((first, last)) => (first, Some(last.parse::<usize>().ok()?.checked_sub(1)?)),
            None => (numbers, None),
        };
        self.fields = Some((first.parse::<usize>().ok()?.checked_sub(1)?, last));
        Some(())
    }

    /// Returns the part of a line by which it is sorted. Fields that blanks divide begin with them.
    fn part<'t>(&self, line: &'t str) -> &'t str {
        let Some((first, last)) = self.fields else {
            return line;
        };
        let mut from = line.len();
        let mut at = 0;
        let mut field = 0;
        while at <= line.len() {
            if field == first {
                from = at;
            }
            let rest = line.get(at..).unwrap_or_default();
            let blanks = match self.between {
                Some(_) => 0,
                None => rest.len() - rest.trim_start_matches([' ', '\t']).len(),
            };
            let is_end = |char: char| match self.between {
                Some(between) => char == between,
                None => matches!(char, ' ' | '\t'),
            };
            let after = rest.get(blanks..).unwrap_or_default();
            let Some(end) = after.find(is_end) else {
                break;
            };
            if last == Some(field) {
                return line.get(from..at + blanks + end).unwrap_or_default();
            }
            at += blanks + end + self.between.map_or(0, char::len_utf8);
            field += 1;
        }
        line.get(from..).unwrap_or_default()
    }

    fn keyed<'t>(&self, line: &'t str) -> Keyed<'t> {
        let part = self.part(line);
        Keyed {
            line,
            number: if self.is_number { number_of(part) } else { 0.0 },
            text: if self.is_folded {
                part.to_lowercase()
            } else {
                part.to_owned()
            },
        }
    }

    fn order(&self, a: &Keyed<'_>, b: &Keyed<'_>) -> Ordering {
        let by_number = a.number.total_cmp(&b.number);
        let order = by_number.then_with(|| {
            if self.is_number && self.fields.is_some() {
                Ordering::Equal
            } else {
                a.text.cmp(&b.text)
            }
        });
        let order = order.then_with(|| a.line.cmp(b.line));
        if self.is_reversed {
            order.reverse()
        } else {
            order
        }
    }
}

/// Carries `sort` out.
pub(crate) fn run(line: &Line<'_>, arguments: &[String], input: &str) -> Result<Ended, Stop> {
    let options = match Options::read("sort", arguments, "rnuf", "kt") {
        Ok(options) => options,
        Err(ended) => return Ok(ended),
    };
    let by = match By::read(&options) {
        Ok(by) => by,
        Err(why) => return Ok(Ended::failed(2, format!("sort: {why}"))),
    };
    let read = texts(line, "sort", &options.others, input)?;
    let mut lines = Vec::new();
    for text in &read.texts {
        lines.extend(text.text.lines().map(|line| by.keyed(line)));
    }
    lines.sort_unstable_by(|a, b| by.order(a, b));
    if options.has('u') {
        let is_same = |a: &mut Keyed<'_>, b: &mut Keyed<'_>| {
            if by.fields.is_none() {
                a.line == b.line
            } else {
                a.number.total_cmp(&b.number).is_eq() && (by.is_number || a.text == b.text)
            }
        };
        lines.dedup_by(is_same);
    }
    let mut out = String::new();
    for keyed in &lines {
        push(&mut out, &[keyed.line, "\n"])?;
    }
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
