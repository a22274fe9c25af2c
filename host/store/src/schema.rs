//! The database's layout as a list of migrations that only ever grows.

use crate::meta;
use crate::projections::fold;
use crate::sql::{self, Columns, Connection, Sql, args};
use crate::{EMPTY_STATE, fault};
use domain::digest::Digest;
use domain::event::READER;

/// The name under which a database says which is the oldest reader that it permits.
const OLDEST_READER: &str = "oldest_reader";

/// Each brings a database from the version that is its index to the next; `user_version` counts
/// those that are done. A released one never changes.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
    include_str!("schema/0007.sql"),
    include_str!("schema/0008.sql"),
    include_str!("schema/0009.sql"),
    include_str!("schema/0010.sql"),
    include_str!("schema/0011.sql"),
    include_str!("schema/0012.sql"),
    include_str!("schema/0013.sql"),
    include_str!("schema/0014.sql"),
    include_str!("schema/0015.sql"),
    include_str!("schema/0016.sql"),
    include_str!("schema/0017.sql"),
    include_str!("schema/0018.sql"),
    include_str!("schema/0019.sql"),
];

/// The version that this program writes.
pub(crate) fn newest() -> usize {
    MIGRATIONS.len()
}

/// The version that a database has; 0 for an empty one.
pub(crate) fn version(connection: &Connection) -> sql::Result<usize> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Writes the version that the database has once more: a transaction that changes nothing, and goes
/// to the disk all the same.
pub(crate) fn write_version_again(connection: &Connection) -> sql::Result<()> {
    set_version(connection, version(connection)?)
}

fn set_version(connection: &Connection, version: usize) -> sql::Result<()> {
    connection.execute_batch(&format!("PRAGMA user_version = {version}"))
}

/// Does what is missing, each migration in a transaction of its own. A new database gets
/// `store_id`; one that holds events has its projections folded again with the last, for tables
/// that were not there when the events were stored.
pub(crate) fn migrate(connection: &Connection, store_id: &str) -> sql::Result<()> {
    let done = version(connection)?;
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        connection.transact(|connection| {
            connection.execute_batch(migration)?;
            if index == 0 {
                connection.execute("INSERT INTO meta VALUES ('store_id', ?1)", [store_id])?;
                connection.execute(
                    "INSERT INTO blobs VALUES (?1, ?2)",
                    args![Digest::of(EMPTY_STATE), EMPTY_STATE],
                )?;
            }
            if done > 0 && index + 1 == newest() {
                fold::fold(&Sql::new(connection))?;
            }
            set_version(connection, index + 1)?;
            fault::point("store.migrate");
            Ok(())
        })?;
    }
    permit(connection)
}

/// The oldest reader that a database permits; 0 when it names none.
pub(crate) fn oldest_reader(connection: &Connection) -> sql::Result<u64> {
    if version(connection)? == 0 {
        return Ok(0);
    }
    let text = "SELECT CAST(value AS INTEGER) FROM meta WHERE name = ?1";
    Sql::new(connection).number(text, [OLDEST_READER])
}

/// From here on no reader is permitted that is older than this program: what is written now may
/// narrow what an older one would read past.
fn permit(connection: &Connection) -> sql::Result<()> {
    if oldest_reader(connection)? < READER {
        meta::note(&Sql::new(connection), OLDEST_READER, &READER.to_string())?;
    }
    Ok(())
}

/// The id that the database holds; none in an empty one.
pub(crate) fn store_id(connection: &Connection) -> sql::Result<Option<String>> {
    if version(connection)? == 0 {
        return Ok(None);
    }
    connection
        .query_row(
            "SELECT value FROM meta WHERE name = 'store_id'",
            [],
            |row| row.get(0),
        )
        .map(Some)
}
