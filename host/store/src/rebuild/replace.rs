//! Replaces the rows that differ, between two commits and in one transaction.
//!
//! It is done on the connection of the side database, which has the store's attached. Other
//! connections detect the foreign write and drop their cached pages and the cached structure of the
//! full-text index. The writer's own connection would not do so after writing to the tables of that
//! index itself.

use super::compare::{KEY_COLUMNS_MAX, Table};
use super::{Rebuilt, Replaced, touched};
use crate::event_row::Head;
use crate::projections::fold::fold_after;
use crate::sql::{self, Columns, Connection, Sql};
use crate::sqlite::BUSY_TIMEOUT;
use crate::{fault, full_text, schema};
use std::io;
use std::path::Path;
use std::time::Instant;

/// Columns of the notes that hold a key.
const KEY: [&str; KEY_COLUMNS_MAX] = ["first", "second", "third", "fourth"];
/// The tables behind the full-text index, and behind that of notes.
const INDEX: [&str; 8] = [
    "recall_index_data",
    "recall_index_idx",
    "recall_index_docsize",
    "recall_index_config",
    "notes_index_data",
    "notes_index_idx",
    "notes_index_docsize",
    "notes_index_config",
];

/// Differences in addition to the noted rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Differs {
    /// True if the full-text index differs.
    pub(super) index: bool,
}

/// Folds the last events into the side database, and makes the store's tables equal to it. Runs in
/// the writer's thread, on whose connection no transaction is open.
pub(super) fn replace(
    writer: &Sql<'_>,
    mut side: Side,
    database: &Path,
    differs: Differs,
) -> sql::Result<Rebuilt> {
    let began = Instant::now();
    side.fold(writer, &mut |_| ())?;
    debug_assert_eq!(
        side.position,
        Head::stored(writer)?.position,
        "all events are folded"
    );
    if differs.index {
        side.index(writer)?;
    }
    let connection = &side.connection;
    connection.execute_batch("BEGIN")?;
    touched::hand_over(writer.connection(), connection)?;
    connection.execute_batch("COMMIT")?;
    connection.attach(database)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let replaced = tables(connection)?;
    if differs.index {
        for table in INDEX {
            connection.execute_batch(&format!(
                "DELETE FROM store.{table}; INSERT INTO store.{table} SELECT * FROM main.{table}"
            ))?;
        }
    }
    fault::point("store.rebuild.replaced");
    connection.execute_batch("COMMIT")?;
    fault::point("store.rebuild.committed");
    Ok(Rebuilt {
        events: side.position,
        replaced,
        index_replaced: differs.index,
        paused: began.elapsed(),
    })
}

fn tables(connection: &Connection) -> sql::Result<Vec<Replaced>> {
    let mut all = Vec::new();
    for table in Table::all(connection)? {
        let replaced = one_table(connection, &table)?;
        if replaced.changed + replaced.missing + replaced.superfluous > 0 {
            all.push(replaced);
        }
    }
    Ok(all)
}

/// Returns the condition that a row was noted.
fn is_noted(table: &Table, row: &str) -> String {
    let columns = table.key.iter().zip(KEY);
    let same = columns.map(|(column, noted)| format!("{row}.{column} = noted.{noted}"));
    same.collect::<Vec<_>>().join(" AND ")
}

/// The condition that two rows have the same in some columns.
fn same(columns: &[String]) -> String {
    let same = columns.iter();
    let same = same.map(|column| format!("ours.{column} IS theirs.{column}"));
    same.collect::<Vec<_>>().join(" AND ")
}

fn one_table(connection: &Connection, table: &Table) -> sql::Result<Replaced> {
    let name = table.name;
    let same_key = same(&table.key);
    let same_row = same(&table.columns);
    let ours = format!(
        "main.touched AS noted CROSS JOIN store.{name} AS ours ON {}",
        is_noted(table, "ours")
    );
    let theirs = format!(
        "main.touched AS noted CROSS JOIN main.{name} AS theirs ON {}",
        is_noted(table, "theirs")
    );
    let not_theirs = format!(
        "noted.projection = '{name}' AND NOT EXISTS (SELECT 1 FROM main.{name} AS theirs \
                 WHERE {same_key})"
    );
    let not_ours = format!(
        "noted.projection = '{name}' AND NOT EXISTS (SELECT 1 FROM store.{name} AS ours \
                 WHERE {same_key})"
    );
    let count = |from: String| {
        connection.query_row(&format!("SELECT count(*) FROM {from}"), [], |row| {
            row.uint(0)
        })
    };

    let superfluous = count(format!("{ours} WHERE {not_theirs}"))?;
    let missing = count(format!("{theirs} WHERE {not_ours}"))?;
    let key = table.key.join(", ");
    let noted = KEY
        .iter()
        .take(table.key.len())
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    let deleted = connection.execute(
        &format!(
            "DELETE FROM store.{name} AS ours WHERE ({key}) IN (SELECT {noted} FROM main.touched \
             WHERE projection = '{name}') AND NOT EXISTS (SELECT 1 FROM main.{name} AS theirs \
             WHERE {same_row})"
        ),
        [],
    )?;
    let columns = table.columns.join(", ");
    let values = table
        .columns
        .iter()
        .map(|column| format!("theirs.{column}"));
    let values = values.collect::<Vec<_>>().join(", ");
    connection.execute(
        &format!(
            "INSERT INTO store.{name} ({columns}) SELECT {values} FROM {theirs} WHERE {not_ours}"
        ),
        [],
    )?;
    Ok(Replaced {
        table: name,
        changed: (deleted as u64).saturating_sub(superfluous),
        missing,
        superfluous,
    })
}

/// Its name, in the folder of the store's database.
pub(super) const NAME: &str = "rebuild.db";

/// See the module.
pub(super) struct Side {
    pub(super) connection: Connection,
    /// The position of the last event that was folded into it.
    pub(super) position: u64,
}

impl Side {
    /// Lays out an empty file.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let laid_out = || {
            let connection = Connection::open(path)?;
            connection.set_up_scratch()?;
            connection.set_busy_timeout(BUSY_TIMEOUT)?;
            schema::migrate(&connection, "")?;
            Ok(connection)
        };
        let connection = laid_out().map_err(|error: sql::Error| io::Error::other(error))?;
        Ok(Self {
            connection,
            position: 0,
        })
    }

    /// Folds the events after the last folded one, up to the last visible one.
    pub(super) fn fold(
        &mut self,
        events: &Sql<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> sql::Result<()> {
        self.connection.execute_batch("BEGIN")?;
        self.position = fold_after(self.position, events, &Sql::new(&self.connection), progress)?;
        self.connection.execute_batch("COMMIT")
    }

    /// Indexes the words of as many rows as the store has indexed.
    pub(super) fn index(&self, store: &Sql<'_>) -> sql::Result<()> {
        let last = full_text::cursor(store)?;
        self.connection.execute_batch("BEGIN")?;
        full_text::index_through(&Sql::new(&self.connection), last)?;
        self.connection.execute_batch("COMMIT")
    }
}
