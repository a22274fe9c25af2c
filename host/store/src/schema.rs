//! The database's layout as a list of migrations that only ever grows.

use crate::meta;
use crate::projections::fold;
use crate::sql::{self, Columns, Connection, Sql, args};
use crate::{EMPTY_STATE, fault};
use domain::digest::Digest;
use domain::event::READER;

/// The name under which a database records the oldest reader that it permits.
const OLDEST_READER: &str = "oldest_reader";

/// The name under which a database records the baseline that it began with.
const BASELINE: &str = "baseline";
/// The layout that each database begins with.
pub(crate) const FIRST: &str = include_str!("schema/0001.sql");

/// Each brings a database from the version that is its index to the next; `user_version` counts
/// those that are done. A released one never changes.
const MIGRATIONS: &[&str] = &[FIRST];

/// The digest of the layout that each database begins with. Until the first release that may be
/// overwritten; a database that began with another one is not read.
pub(crate) fn baseline() -> Digest {
    Digest::of(FIRST.as_bytes())
}

/// The version that this program writes.
pub(crate) fn newest() -> usize {
    MIGRATIONS.len()
}

/// The version that a database has; 0 for an empty one.
pub(crate) fn version(connection: &Connection) -> sql::Result<usize> {
    Ok(usize::try_from(connection.layout()?).unwrap_or(usize::MAX))
}

/// Rewrites the version of the database: a transaction that changes nothing, and is written to the
/// disk all the same.
pub(crate) fn write_version_again(connection: &Connection) -> sql::Result<()> {
    connection.set_layout(version(connection)?)
}

/// Runs the missing migrations, each in a transaction of its own. A new database gets `store_id`.
/// In one with events, the last migration has the projections folded again, for tables that did not
/// exist when the events were stored.
pub(crate) fn migrate(connection: &Connection, store_id: &str) -> sql::Result<()> {
    migrate_by(MIGRATIONS, connection, store_id)
}

/// Does the same as [`migrate`], with these migrations.
pub(crate) fn migrate_by(
    migrations: &[&str],
    connection: &Connection,
    store_id: &str,
) -> sql::Result<()> {
    let done = version(connection)?;
    for (index, migration) in migrations.iter().enumerate().skip(done) {
        connection.transact(|connection| {
            connection.execute_batch(migration)?;
            if index == 0 {
                connection.execute(
                    "INSERT INTO meta (name, value) VALUES ('store_id', ?1), (?2, ?3)",
                    args![store_id, BASELINE, baseline().to_string()],
                )?;
                connection.execute(
                    "INSERT INTO blobs (digest, bytes) VALUES (?1, ?2)",
                    args![Digest::of(EMPTY_STATE), EMPTY_STATE],
                )?;
            }
            if done > 0 && index + 1 == migrations.len() {
                fold::fold(&Sql::new(connection))?;
            }
            connection.set_layout(index + 1)?;
            fault::point("store.migrate");
            Ok(())
        })?;
    }
    permit(connection)
}

/// Returns whether a database is new, or began with the layout that new ones begin with.
pub(crate) fn has_baseline(connection: &Connection) -> sql::Result<bool> {
    if version(connection)? == 0 {
        return Ok(true);
    }
    let text = "SELECT 1 FROM meta WHERE name = ?1 AND value = ?2";
    Sql::new(connection).exists(text, args![BASELINE, baseline().to_string()])
}

/// The oldest reader that a database permits; 0 when it names none.
pub(crate) fn oldest_reader(connection: &Connection) -> sql::Result<u64> {
    if version(connection)? == 0 {
        return Ok(0);
    }
    let text = "SELECT CAST(value AS INTEGER) FROM meta WHERE name = ?1";
    Sql::new(connection).number(text, [OLDEST_READER])
}

/// From here on no reader older than this program is permitted: it would ignore restrictions that
/// are written now.
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
