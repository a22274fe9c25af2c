//! Comparison of the rows of two databases of the same layout.

use super::touched;
use crate::projections::PROJECTIONS;
use crate::sql::{self, Columns, Connection, Row, Value};
use crate::sqlite::TableColumns;
use std::cmp::Ordering;

/// Columns of the longest key.
pub(super) const KEY_COLUMNS_MAX: usize = 4;
/// Tables from which the full-text index is made.
const INDEXED: [&str; 3] = ["sessions", "messages", "recall"];

/// A projection, with the columns that identify a row in it.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The columns of its key, in their order.
    pub(super) key: Vec<String>,
    pub(super) columns: Vec<String>,
}

impl Table {
    pub(super) fn all(connection: &Connection) -> sql::Result<Vec<Self>> {
        PROJECTIONS
            .iter()
            .map(|name| Self::read(connection, name))
            .collect()
    }

    fn read(connection: &Connection, name: &'static str) -> sql::Result<Self> {
        let TableColumns { key, columns } = connection.columns_of(name)?;
        debug_assert!(
            (1..=KEY_COLUMNS_MAX).contains(&key.len()),
            "{name} has a key of {} columns",
            key.len()
        );
        Ok(Self { name, key, columns })
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

    fn key_of(&self, row: &Row<'_>) -> sql::Result<Vec<Value<'static>>> {
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
pub(super) fn differing_rows(left: &Connection, right: &Connection) -> sql::Result<Differing> {
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
fn differing_in(table: &Table, left: &Connection, right: &Connection) -> sql::Result<u64> {
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
            (Some(row), None) => (Ordering::Less, Some(table.key_of(&row)?)),
            (None, Some(row)) => (Ordering::Greater, Some(table.key_of(&row)?)),
            (Some(one), Some(other)) => match key_order(&one, &other, table.key.len())? {
                Ordering::Less => (Ordering::Less, Some(table.key_of(&one)?)),
                Ordering::Greater => (Ordering::Greater, Some(table.key_of(&other)?)),
                Ordering::Equal if one.is_same(&other, columns.len())? => (Ordering::Equal, None),
                Ordering::Equal => (Ordering::Equal, Some(table.key_of(&one)?)),
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
fn key_order(one: &Row<'_>, other: &Row<'_>, columns: usize) -> sql::Result<Ordering> {
    for column in 0..columns {
        let order = match (one.value(column)?, other.value(column)?) {
            (Value::Integer(one), Value::Integer(other)) => one.cmp(&other),
            (Value::Text(one), Value::Text(other)) => one.cmp(&other),
            (Value::Blob(one), Value::Blob(other)) => one.cmp(&other),
            // Keys are never null and never fractions, and each of their columns has one type.
            (one, other) => rank(&one).cmp(&rank(&other)),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

/// The place of a type in SQLite's order.
fn rank(value: &Value<'_>) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) | Value::Integer(_) | Value::Real(_) => 1,
        Value::Text(_) => 2,
        Value::Blob(_) => 3,
    }
}
