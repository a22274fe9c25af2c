//! Answers of commands: a document for programs, and the same in lines for people.
//!
//! Lines are written as templates, in which `{/pointer}` stands for a field of the document, and
//! `{?/pointer}` for nothing: a condition that the field holds. A field that is missing counts as
//! empty.

use crate::failure::Failure;
use crate::terminal::one_line;
use serde_json::Value;

/// Stands for what there is not.
const NOTHING: &str = "-";
/// Columns between a name and its value, and between two cells.
const GAP: usize = 2;

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
        let line = filled(&document, template).text;
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
        let filled = templates.iter().map(|it| filled(thing, it).text);
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
        let said = filled.filter(|it| it.says_something);
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

/// A template with the fields of a thing in it.
struct Filled {
    text: String,
    /// True if every field is there.
    is_whole: bool,
    /// True if every field is there, and none is zero or false.
    says_something: bool,
}

fn filled(thing: &Value, template: &str) -> Filled {
    let mut chunks = template.split('{');
    let mut filled = Filled {
        text: chunks.next().unwrap_or_default().to_owned(),
        is_whole: true,
        says_something: true,
    };
    let is_note = |value: &Value| value != 0 && value != false;
    for chunk in chunks {
        let (pointer, rest) = chunk.split_once('}').unwrap_or((chunk, ""));
        let condition = pointer.strip_prefix('?');
        let pointer = condition.unwrap_or(pointer);
        let value = thing.pointer(pointer).unwrap_or(&Value::Null);
        let text = shown(value);
        filled.is_whole &= !text.is_empty();
        filled.says_something &= !text.is_empty() && is_note(value);
        filled.text += match text.as_str() {
            _ if condition.is_some() => "",
            "" => NOTHING,
            text => text,
        };
        filled.text += rest;
    }
    filled
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

#[cfg(test)]
mod tests {
    use super::{Row, details, table};
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
}
