//! Answers of commands: a document for programs, and the same in lines for people.
//!
//! Lines are written as templates. In them `{/pointer}` stands for a field of the document,
//! `{/pointer:form}` for a form of it (see [`formed`]), and `{?/pointer}` for nothing: a condition
//! that the field holds, and `{!/pointer}` that it does not. A part between `[[` and `]]` is left
//! out where a field in it is absent, empty, zero or false. A field that is missing counts as
//! empty, and so does a list without entries.

use crate::failure::Failure;
use crate::terminal::one_line;
use serde::Serialize;
use serde_json::Value;

/// Stands for what there is not.
const NOTHING: &str = "-";
/// A notice of a list that goes on, on the place of its next page.
pub(crate) const OLDER: &str = "there are older ones: --after {} shows them";
/// Columns between a name and its value, and between two cells.
const GAP: usize = 2;
/// Seconds of a minute, an hour and a day.
const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// The answer of a command.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The result for programs: one document, or one for each thing.
    pub(crate) documents: Vec<Value>,
    /// The same for people.
    pub(crate) lines: Vec<String>,
    /// Notices about it.
    pub(crate) notices: Vec<String>,
    /// The reason why the command fails although it has a result.
    pub(crate) failure: Option<Failure>,
    /// A file, which is the result as it is.
    pub(crate) file: Option<Vec<u8>>,
}

impl Answer {
    /// Makes an answer that reads as these lines.
    pub(crate) fn new<T: Into<String>>(
        document: Value,
        lines: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            documents: vec![document],
            lines: lines.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Makes an answer that reads as these lines of it.
    pub(crate) fn describing(document: Value, lines: impl FnOnce(&Value) -> Vec<String>) -> Self {
        let lines = lines(&document);
        Self::new(document, lines)
    }

    /// Makes an answer that is a file.
    pub(crate) fn file(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            file: Some(bytes.into()),
            ..Self::default()
        }
    }

    /// Makes an answer that reads as one line.
    pub(crate) fn line(document: Value, line: impl Into<String>) -> Self {
        Self::new(document, [line])
    }

    /// Makes the answer about one thing, as its row in a list.
    pub(crate) fn row(document: Value, row: impl FnOnce(&Value) -> Row) -> Self {
        let line = row(&document).line();
        Self::line(document, line)
    }

    /// Makes an answer that reads as a filled template.
    pub(crate) fn filled(document: Value, template: &str) -> Self {
        let line = fill(&document, template);
        Self::line(document, line)
    }

    /// Makes the answer about a list: a row for each thing in it, or a notice that there is none.
    pub(crate) fn list(
        document: Value,
        pointer: &str,
        row: impl Fn(&Value) -> Row,
        nothing: &str,
    ) -> Self {
        let things = list(&document, pointer);
        let lines = table(things.iter().map(row));
        let is_empty = things.is_empty();
        let answer = Self::new(document, lines);
        answer.notice(is_empty.then_some(nothing))
    }

    /// Makes the answer about one thing.
    pub(crate) fn details(document: Value, details: &[(&str, &str)]) -> Self {
        let lines = self::details(&document, details);
        Self::new(document, lines)
    }

    /// Adds notices.
    pub(crate) fn notice<T: Into<String>>(mut self, notices: impl IntoIterator<Item = T>) -> Self {
        self.notices.extend(notices.into_iter().map(Into::into));
        self
    }

    /// Has the command fail after its result is shown.
    pub(crate) fn failing(self, failure: impl Into<Option<Failure>>) -> Self {
        Self {
            failure: failure.into(),
            ..self
        }
    }
}

/// A line about one thing of many.
#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Parts that every thing has; in a table they stand below each other.
    cells: Vec<Cell>,
    /// Parts that only some have.
    notes: Vec<String>,
}

/// A part of a row.
#[derive(Debug)]
struct Cell {
    text: String,
    is_number: bool,
}

impl Row {
    /// Makes a row of the cells and the notes of a thing, by their templates.
    pub(crate) fn of(thing: &Value, cells: &[&str], notes: &[&str]) -> Self {
        Self::default().cells(thing, cells).notes(thing, notes)
    }

    /// Adds cells by their templates.
    pub(crate) fn cells(self, thing: &Value, templates: &[&str]) -> Self {
        let filled = templates.iter().map(|it| fill(thing, it));
        filled.fold(self, Self::cell)
    }

    /// Adds a cell.
    pub(crate) fn cell(mut self, text: impl AsRef<str>) -> Self {
        self.cells.push(Cell {
            text: one_line(text.as_ref()),
            is_number: false,
        });
        self
    }

    /// Adds a cell that ends where the ones above and below it end.
    pub(crate) fn number(mut self, text: impl Into<String>) -> Self {
        self.cells.push(Cell {
            text: text.into(),
            is_number: true,
        });
        self
    }

    /// Adds notes by their templates. One is left out where a field of it is absent, empty, zero or
    /// false.
    pub(crate) fn notes(self, thing: &Value, templates: &[&str]) -> Self {
        let filled = templates.iter().map(|template| filled(thing, template));
        let said = filled.filter(Filled::is_note);
        self.note(said.map(|it| it.text).collect::<Vec<_>>())
    }

    /// Adds notes.
    pub(crate) fn note(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes.into_iter().map(|it| one_line(&it)));
        self
    }

    /// Returns the row as a line of its own.
    pub(crate) fn line(self) -> String {
        table([self]).concat()
    }
}

/// Returns rows as lines, with each cell below the one above.
pub(crate) fn table(rows: impl IntoIterator<Item = Row>) -> Vec<String> {
    let rows: Vec<Row> = rows.into_iter().collect();
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(column));
        cells.map(|it| it.text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let gap = " ".repeat(GAP);
    let line = |row: &Row| {
        let cells = row.cells.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| match cell.is_number {
            true => format!("{:>width$}", cell.text),
            false => format!("{:<width$}", cell.text),
        });
        let parts: Vec<String> = cells.chain(row.notes.iter().cloned()).collect();
        parts.join(&gap).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Returns the details of a thing, a line each, by their names and templates. One is left out where
/// a field of it is absent.
pub(crate) fn details(thing: &Value, details: &[(&str, &str)]) -> Vec<String> {
    let names = details.iter().map(|(name, _)| name.chars().count());
    let width = names.max().unwrap_or(0) + GAP;
    let lines = details.iter().filter_map(|(name, template)| {
        let filled = filled(thing, template);
        filled
            .is_whole
            .then(|| format!("{name:<width$}{}", filled.text))
    });
    lines.collect()
}

/// Returns the lines of a thing, by pointers and templates: one for the thing that the pointer
/// leads to, or for each in a list. One of which nothing is left is left out.
pub(crate) fn lines(thing: &Value, templates: &[(&str, &str)]) -> Vec<String> {
    let lines = templates.iter().flat_map(|(pointer, template)| {
        let things = match thing.pointer(pointer) {
            Some(Value::Array(things)) => things.as_slice(),
            None | Some(Value::Null) => &[],
            Some(one) => std::slice::from_ref(one),
        };
        things.iter().map(move |it| fill(it, template))
    });
    lines.filter(|it| !it.is_empty()).collect()
}

/// A template with the fields of a thing in it.
struct Filled {
    text: String,
    /// True if every field is there that is not optional.
    is_whole: bool,
    /// True if none of them is zero or false either.
    says_something: bool,
}

/// Returns a template with the fields of a thing in it.
pub(crate) fn fill(thing: &Value, template: &str) -> String {
    filled(thing, template).text
}

/// Returns the lines of words behind a head. Those below the first are set in: none of them passes
/// for something else.
pub(crate) fn set_in(head: &str, words: &str, margin: &str) -> Vec<String> {
    let mut words = words.lines();
    let first = format!("{head}{}", words.next().unwrap_or_default());
    let others = words.map(|line| format!("{margin}     | {line}"));
    std::iter::once(first).chain(others).collect()
}

impl Filled {
    fn is_note(&self) -> bool {
        self.says_something && !self.text.is_empty()
    }
}

fn filled(thing: &Value, template: &str) -> Filled {
    let mut parts = template.split("[[");
    let mut whole = with_fields(thing, parts.next().unwrap_or_default());
    for part in parts {
        let (optional, rest) = part.split_once("]]").unwrap_or((part, ""));
        let optional = with_fields(thing, optional);
        if optional.says_something {
            whole.text += &optional.text;
        }
        let rest = with_fields(thing, rest);
        whole.text += &rest.text;
        whole.is_whole &= rest.is_whole;
        whole.says_something &= rest.says_something;
    }
    whole
}

/// Returns a template without optional parts with its fields.
fn with_fields(thing: &Value, template: &str) -> Filled {
    let mut chunks = template.split('{');
    let mut filled = Filled {
        text: chunks.next().unwrap_or_default().to_owned(),
        is_whole: true,
        says_something: true,
    };
    let is_note = |value: &Value| value != 0 && value != false;
    for chunk in chunks {
        let (field, rest) = chunk.split_once('}').unwrap_or((chunk, ""));
        let condition = field.strip_prefix(['?', '!']);
        let (pointer, form) = field.split_once(':').unwrap_or((field, ""));
        let value = thing.pointer(condition.unwrap_or(pointer));
        let value = value.unwrap_or(&Value::Null);
        let is_empty = shown(value).is_empty() || value.as_array().is_some_and(Vec::is_empty);
        let (is_there, is_note) = match field.starts_with('!') {
            true => (is_empty || !is_note(value), is_empty || !is_note(value)),
            false => (!is_empty, !is_empty && is_note(value)),
        };
        filled.is_whole &= is_there;
        filled.says_something &= is_note;
        match is_empty {
            _ if condition.is_some() => {}
            true => filled.text += &padded(NOTHING, form),
            false => filled.text += &formed(value, form),
        }
        filled.text += rest;
    }
    filled
}

/// Returns a value in a form: `size` of bytes, `money` of its millionths, `duration` of seconds,
/// `seconds` of milliseconds rounded up, a number of `thousandths`, `words` without underscores, a
/// `list` with commas, or so many of its first characters, of a digest those behind its kind.
/// Otherwise see [`padded`].
pub(crate) fn formed(value: &Value, form: &str) -> String {
    let number = value.as_u64().unwrap_or_default();
    match form {
        "size" => size(number),
        "money" => format!("{}.{:06}", number / 1_000_000, number % 1_000_000),
        "duration" => duration(number),
        "seconds" => number.div_ceil(1_000).to_string(),
        "thousandths" => format!("{}.{:03}", number / 1_000, number % 1_000),
        "words" => shown(value).replace('_', " "),
        "list" => {
            let entries = value.as_array().into_iter().flatten();
            entries.map(shown).collect::<Vec<_>>().join(", ")
        }
        _ => match form.parse() {
            Ok(most) => {
                let text = shown(value);
                let text = text.trim_start_matches("sha256:");
                text.chars().take(most).collect()
            }
            Err(_) => padded(&shown(value), form),
        },
    }
}

/// Returns a text that fills a column: with `<8` blanks behind it, with `>8` before it; `=8` cuts
/// it, too.
fn padded(text: &str, form: &str) -> String {
    let (side, width) = form.split_at_checked(1).unwrap_or_default();
    let width: usize = width.parse().unwrap_or_default();
    match side {
        ">" => format!("{text:>width$}"),
        "=" => format!("{text:<width$.width$}"),
        _ => format!("{text:<width$}"),
    }
}

/// Returns the word that a value is written as.
pub(crate) fn serialized(value: &impl Serialize) -> String {
    serde_json::to_value(value).map_or_else(|_| String::new(), |word| shown(&word))
}

/// Returns a text.
pub(crate) fn text<'a>(document: &'a Value, pointer: &str) -> &'a str {
    let value = document.pointer(pointer);
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number.
pub(crate) fn number(document: &Value, pointer: &str) -> u64 {
    let value = document.pointer(pointer);
    value.and_then(Value::as_u64).unwrap_or_default()
}

/// Returns a list.
pub(crate) fn list<'a>(document: &'a Value, pointer: &str) -> &'a [Value] {
    let value = document.pointer(pointer).and_then(Value::as_array);
    value.map(Vec::as_slice).unwrap_or_default()
}

/// Returns a truth value.
pub(crate) fn is_true(document: &Value, pointer: &str) -> bool {
    document.pointer(pointer).and_then(Value::as_bool) == Some(true)
}

/// Returns a value as a line shows it: a text without its quotation marks, nothing for null.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A duration in its two largest units.
fn duration(seconds: u64) -> String {
    let days = seconds / DAY_S;
    let hours = seconds % DAY_S / HOUR_S;
    let minutes = seconds % HOUR_S / MINUTE_S;
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % MINUTE_S),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// A number of bytes in the largest unit of which there is one.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(power, _)| bytes >> power > 0);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(power, name)| {
            // Rounded down, so that what is free is never said to be more.
            let tenths = u128::from(bytes) * 10 / (1 << power);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::{Row, details, duration, lines, size, table};
    use serde_json::json;

    #[test]
    fn cells_stand_below_each_other_and_notes_are_there_for_some() {
        let things = [
            json!({ "id": "a", "state": "running", "count": 2, "old": true, "says": "x\ny" }),
            json!({ "id": "abc", "state": null, "count": 0, "old": false, "says": "" }),
        ];
        let notes = ["failures {/count}", "{?/old}(old)", "{/says}"];
        let row = |it| Row::of(it, &["{/id}", "in {/state}"], &notes);
        assert_eq!(
            table(things.iter().map(row)),
            ["a    in running  failures 2  (old)  x y", "abc  in -"]
        );
    }

    #[test]
    fn a_detail_is_left_out_where_a_field_of_it_is_absent() {
        let thing = json!({ "id": "a", "count": 0, "begun": true });
        let all = [
            ("thing", "{/id}"),
            ("counted", "{/count} of {/none}"),
            ("counts", "{/count}"),
            ("begun", "{/begun}"),
        ];
        let shown = ["thing    a", "counts   0", "begun    true"];
        assert_eq!(details(&thing, &all), shown);
    }

    #[test]
    fn durations_and_sizes_are_told_in_units_of_people() {
        for (seconds, reported) in [
            (0, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (3_600, "1 h 0 min"),
            (90_061, "1 d 1 h"),
        ] {
            assert_eq!(duration(seconds), reported);
        }
        for (bytes, reported) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_610_612_736, "1.5 GiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ] {
            assert_eq!(size(bytes), reported);
        }
    }

    #[test]
    fn a_part_in_brackets_is_there_where_its_fields_are() {
        let thing = json!({
            "id": "sha256:0123456789", "name": "", "count": 0, "cost": 1_000_050, "ms": 1_001,
            "state": "disk_full", "of": ["a", "b"], "says": "[[{/id}]]",
        });
        assert_eq!(
            lines(
                &thing,
                &[
                    (
                        "",
                        "{/id:4}[[ ({/name})]][[ of {/of:list}]][[ {/count} x]], {/state:words}"
                    ),
                    ("", "{/cost:money} and {/ms:seconds} s, {/ms:thousandths} s"),
                    ("", "|{/state:<11}|{/count:>3}|{/none:<3}|"),
                    ("", "[[{/count} is nothing to tell]]"),
                    ("", "{/name} is empty"),
                    ("/of", "is {}"),
                    ("/none", "is {}"),
                    // What a thing says is no template.
                    ("", "{/says}"),
                ]
            ),
            [
                "0123 of a, b, disk full",
                "1.000050 and 2 s, 1.001 s",
                "|disk_full  |  0|-  |",
                "- is empty",
                "is a",
                "is b",
                "[[{/id}]]",
            ]
        );
    }
}
