//! The database's layout as a list of migrations that only ever grows.

use crate::projections::fold;
use crate::sql::{Columns, Sql};
use crate::{EMPTY_STATE, fault};
use domain::digest::Digest;
use domain::event::READER;
use rusqlite::{Connection, OptionalExtension, params};

/// The name under which a database says which is the oldest reader that it permits.
const OLDEST_READER: &str = "oldest_reader";

/// The name under which a database says which baseline it began with.
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
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<usize> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Writes the version that the database has once more: a transaction that changes nothing, and goes
/// to the disk all the same.
pub(crate) fn write_version_again(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(
        None,
        "user_version",
        crate::sql::limit(version(connection)?),
    )
}

/// Does what is missing, each migration in a transaction of its own. A new database gets
/// `store_id`; one that holds events has its projections folded again with the last, for tables
/// that were not there when the events were stored.
pub(crate) fn migrate(connection: &mut Connection, store_id: &str) -> rusqlite::Result<()> {
    migrate_by(MIGRATIONS, connection, store_id)
}

/// Does what [`migrate`] does, by these migrations.
pub(crate) fn migrate_by(
    migrations: &[&str],
    connection: &mut Connection,
    store_id: &str,
) -> rusqlite::Result<()> {
    let done = version(connection)?;
    for (index, migration) in migrations.iter().enumerate().skip(done) {
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration)?;
        if index == 0 {
            transaction.execute(
                "INSERT INTO meta (name, value) VALUES ('store_id', ?1), (?2, ?3)",
                params![store_id, BASELINE, baseline().to_string()],
            )?;
            transaction.execute(
                "INSERT INTO blobs (digest, bytes) VALUES (?1, ?2)",
                params![Digest::of(EMPTY_STATE).0, EMPTY_STATE],
            )?;
        }
        if done > 0 && index + 1 == migrations.len() {
            fold::fold(&Sql::new(&transaction))?;
        }
        transaction.pragma_update(None, "user_version", crate::sql::limit(index + 1))?;
        fault::point("store.migrate");
        transaction.commit()?;
    }
    permit(connection)
}

/// Returns whether a database is new, or began with the layout that new ones begin with.
pub(crate) fn has_baseline(connection: &Connection) -> rusqlite::Result<bool> {
    if version(connection)? == 0 {
        return Ok(true);
    }
    let text = "SELECT 1 FROM meta WHERE name = ?1 AND value = ?2";
    connection
        .prepare(text)?
        .exists(params![BASELINE, baseline().to_string()])
}

/// The oldest reader that a database permits; 0 when it names none.
pub(crate) fn oldest_reader(connection: &Connection) -> rusqlite::Result<u64> {
    if version(connection)? == 0 {
        return Ok(0);
    }
    let text = "SELECT CAST(value AS INTEGER) FROM meta WHERE name = ?1";
    Ok(connection
        .query_row(text, [OLDEST_READER], |row| row.uint(0))
        .optional()?
        .unwrap_or(0))
}

/// From here on no reader is permitted that is older than this program: what is written now may
/// narrow what an older one would read past.
fn permit(connection: &Connection) -> rusqlite::Result<()> {
    if oldest_reader(connection)? < READER {
        let text = "INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)";
        connection.execute(text, params![OLDEST_READER, READER.to_string()])?;
    }
    Ok(())
}

/// The id that the database holds; none in an empty one.
pub(crate) fn store_id(connection: &Connection) -> rusqlite::Result<Option<String>> {
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
