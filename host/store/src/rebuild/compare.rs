//! Comparison of the rows of two databases of the same layout.

use super::touched;
use crate::projections::PROJECTIONS;
use crate::verify::beside::{same_row, same_rows};
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode, Row};
use std::cmp::Ordering;

/// Columns of the longest key.
pub(super) const KEY_COLUMNS_MAX: usize = 4;
/// Tables from which the full-text index is made.
const INDEXED: [&str; 3] = ["sessions", "messages", "recall"];

/// A projection, with what names a row in it.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The columns of its key, in their order.
    pub(super) key: Vec<String>,
    pub(super) columns: Vec<String>,
}

impl Table {
    pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Self>> {
        PROJECTIONS
            .iter()
            .map(|name| Self::read(connection, name))
            .collect()
    }

    fn read(connection: &Connection, name: &'static str) -> rusqlite::Result<Self> {
        let mut statement =
            connection.prepare("SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid")?;
        let columns: Vec<(String, u8)> = statement
            .query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let mut key: Vec<(u8, String)> = columns
            .iter()
            .filter(|(_, at)| *at > 0)
            .map(|(name, at)| (*at, name.clone()))
            .collect();
        key.sort_unstable();
        debug_assert!(
            (1..=KEY_COLUMNS_MAX).contains(&key.len()),
            "{name} has a key of {} columns",
            key.len()
        );
        Ok(Self {
            name,
            key: key.into_iter().map(|(_, name)| name).collect(),
            columns: columns.into_iter().map(|(name, _)| name).collect(),
        })
    }

    /// The key of a row, `NEW.` or `OLD.` for one, in as many values as the longest key has.
    pub(super) fn padded_key(&self, row: &str) -> String {
        let padding = std::iter::repeat_n(
            "0".to_owned(),
            KEY_COLUMNS_MAX.saturating_sub(self.key.len()),
        );
        self.key
            .iter()
            .map(|column| format!("{row}{column}"))
            .chain(padding)
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn key_of(&self, row: &Row<'_>) -> rusqlite::Result<Vec<Value>> {
        (0..self.key.len()).map(|at| row.get(at)).collect()
    }
}

/// Differences between two databases.
pub(super) struct Differing {
    pub(super) rows: u64,
    /// True if the full-text index cannot be right either.
    pub(super) words: bool,
}

/// Compares all projections; the keys of rows that differ are noted on the right.
pub(super) fn differing_rows(left: &Connection, right: &Connection) -> rusqlite::Result<Differing> {
    let mut all = Differing {
        rows: 0,
        words: false,
    };
    right.execute_batch("BEGIN")?;
    for table in Table::all(right)? {
        let rows = differing_in(&table, left, right)?;
        all.rows += rows;
        all.words |= rows > 0 && INDEXED.contains(&table.name);
    }
    right.execute_batch("COMMIT")?;
    Ok(all)
}

/// The same for one table: both sides are walked in the order of the key.
fn differing_in(table: &Table, left: &Connection, right: &Connection) -> rusqlite::Result<u64> {
    let others = table
        .columns
        .iter()
        .filter(|column| !table.key.contains(column));
    let columns: Vec<&str> = table.key.iter().chain(others).map(String::as_str).collect();
    let text = format!(
        "SELECT {} FROM {} ORDER BY {}",
        columns.join(", "),
        table.name,
        table.key.join(", ")
    );
    let mut ours = left.prepare(&text)?;
    let mut theirs = right.prepare(&text)?;
    let mut ours = ours.query([])?;
    let mut theirs = theirs.query([])?;
    ours.advance()?;
    theirs.advance()?;
    let mut differing = 0;
    loop {
        let (order, key) = match (ours.get(), theirs.get()) {
            (None, None) => return Ok(differing),
            (Some(row), None) => (Ordering::Less, Some(table.key_of(row)?)),
            (None, Some(row)) => (Ordering::Greater, Some(table.key_of(row)?)),
            (Some(one), Some(other)) => match key_order(one, other, table.key.len())? {
                Ordering::Less => (Ordering::Less, Some(table.key_of(one)?)),
                Ordering::Greater => (Ordering::Greater, Some(table.key_of(other)?)),
                Ordering::Equal if same_row(one, other, columns.len())? => (Ordering::Equal, None),
                Ordering::Equal => (Ordering::Equal, Some(table.key_of(one)?)),
            },
        };
        if let Some(key) = key {
            touched::note(right, table.name, key)?;
            differing += 1;
        }
        if order.is_le() {
            ours.advance()?;
        }
        if order.is_ge() {
            theirs.advance()?;
        }
    }
}

/// Compares two rows by the columns of their key, in SQLite's order.
fn key_order(one: &Row<'_>, other: &Row<'_>, columns: usize) -> rusqlite::Result<Ordering> {
    for column in 0..columns {
        let order = match (one.get_ref(column)?, other.get_ref(column)?) {
            (ValueRef::Integer(one), ValueRef::Integer(other)) => one.cmp(&other),
            (
                ValueRef::Text(one) | ValueRef::Blob(one),
                ValueRef::Text(other) | ValueRef::Blob(other),
            ) => one.cmp(other),
            // Keys are never null, never fractions, and a column of theirs holds one type.
            (one, other) => rank(one).cmp(&rank(other)),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// The place of a type in SQLite's order.
fn rank(value: ValueRef<'_>) -> u8 {
    match value {
        ValueRef::Null => 0,
        ValueRef::Integer(_) | ValueRef::Real(_) => 1,
        ValueRef::Text(_) => 2,
        ValueRef::Blob(_) => 3,
    }
}

/// Returns whether the full-text indices of two databases have the same content. Their page layout
/// depends on when the words were written and is not compared.
pub(super) fn same_index(left: &Connection, right: &Connection) -> rusqlite::Result<bool> {
    for connection in [left, right] {
        connection.execute_batch(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.recall_words USING fts5vocab(main, \
             recall_index, instance); CREATE VIRTUAL TABLE IF NOT EXISTS temp.note_words USING \
             fts5vocab(main, notes_index, instance)",
        )?;
    }
    for text in [
        "SELECT id, sz FROM recall_index_docsize ORDER BY id",
        // The totals by which hits are ranked.
        "SELECT block FROM recall_index_data WHERE id = 1",
        "SELECT term, doc, col, offset FROM temp.recall_words",
        "SELECT id, sz FROM notes_index_docsize ORDER BY id",
        "SELECT block FROM notes_index_data WHERE id = 1",
        "SELECT term, doc, col, offset FROM temp.note_words",
    ] {
        match same_rows(left, right, text) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            // An index that cannot be read says something else.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
