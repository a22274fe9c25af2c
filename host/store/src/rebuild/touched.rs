//! Rows of the projections that a connection changes, noted by its own triggers.

use super::compare::{KEY_COLUMNS_MAX, Table};
use crate::sql::{self, Columns, Connection, ToValue, Value};

/// Place where the notes are kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Notes {
    /// In a table that only this connection sees, and that is dropped with it.
    Own,
    /// In a table of the database.
    Kept,
}

/// Notes every row that this connection changes from here on, without its previous values.
pub(super) fn watch(connection: &Connection, notes: Notes) -> sql::Result<()> {
    unwatch(connection)?;
    let create = match notes {
        Notes::Own => "CREATE TEMP TABLE",
        Notes::Kept => "CREATE TABLE",
    };
    connection.execute_batch(&format!(
        "{create} touched (projection TEXT NOT NULL, first NOT NULL, second NOT NULL, third NOT \
         NULL, fourth NOT NULL, PRIMARY KEY (projection, first, second, third, fourth)) WITHOUT \
         ROWID"
    ))?;
    for table in Table::all(connection)? {
        let name = table.name;
        let note = |row: &str| {
            // Not `OR IGNORE`: the conflict rule of the trigger run statement overrides it.
            format!(
                "INSERT INTO touched VALUES ('{name}', {}) ON CONFLICT DO NOTHING;",
                table.padded_key(row)
            )
        };
        let new = note("NEW.");
        let old = note("OLD.");
        connection.execute_batch(&format!(
            "CREATE TEMP TRIGGER touched_insert_{name} AFTER INSERT ON main.{name} BEGIN {new} \
             END; CREATE TEMP TRIGGER touched_update_{name} AFTER UPDATE ON main.{name} BEGIN \
             {old} {new} END; CREATE TEMP TRIGGER touched_delete_{name} AFTER DELETE ON \
             main.{name} BEGIN {old} END;"
        ))?;
    }
    Ok(())
}

/// Stops noting rows, and deletes the notes of this connection.
pub(super) fn unwatch(connection: &Connection) -> sql::Result<()> {
    for table in Table::all(connection)? {
        for what in ["insert", "update", "delete"] {
            connection.execute_batch(&format!(
                "DROP TRIGGER IF EXISTS temp.touched_{what}_{}",
                table.name
            ))?;
        }
    }
    connection.execute_batch("DROP TABLE IF EXISTS temp.touched")
}

pub(super) fn note(
    connection: &Connection,
    projection: &str,
    key: Vec<Value<'static>>,
) -> sql::Result<()> {
    let padding = std::iter::repeat_n(Value::Integer(0), KEY_COLUMNS_MAX.saturating_sub(key.len()));
    let values = std::iter::once(Value::Text(projection.into()))
        .chain(key)
        .chain(padding);
    let values: Vec<Value<'_>> = values.collect();
    let values: Vec<&dyn ToValue> = values.iter().map(|value| value as &dyn ToValue).collect();
    connection.execute(
        "INSERT INTO touched VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        values.as_slice(),
    )?;
    Ok(())
}

/// Copies one connection's notes to another that notes too.
pub(super) fn hand_over(from: &Connection, to: &Connection) -> sql::Result<()> {
    let mut noted =
        from.prepare("SELECT projection, first, second, third, fourth FROM temp.touched")?;
    let mut rows = noted.query([])?;
    while let Some(row) = rows.next()? {
        note(
            to,
            &row.get::<String>(0)?,
            vec![row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?],
        )?;
    }
    Ok(())
}
