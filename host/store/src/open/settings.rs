//! Settings of every connection, and the oldest SQLite that can be trusted.

use super::OpenError;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::time::Duration;

/// Before this one a race between a checkpoint and a commit could lose the commit.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// Maximum wait for a lock of another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of every connection. Memory-mapped pages are off, because a stray write into them would
/// reach the disk.
const EVERY: &str = "PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF; \
                     PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;";
/// Settings of the connection that writes. A commit returns when it is on the disk. The writer
/// itself moves the log to the database after 4,000 pages (see `writer/log.rs`); the automatic
/// checkpoint stays on until the writer has taken over. It keeps 16 MiB of pages: what one
/// transaction changes for many sessions stays in memory until it commits. Deleted content is
/// overwritten with zeros, so that what is purged one day has left no earlier copy.
const WRITER: &str = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1000; PRAGMA \
                      journal_size_limit = 67108864; \
     PRAGMA cache_size = -16384; PRAGMA secure_delete = ON;";

/// Refuses a SQLite that is too old.
pub(crate) fn assert_sqlite() -> Result<(), OpenError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(OpenError::Sqlite {
            version: rusqlite::version().to_owned(),
        });
    }
    Ok(())
}

/// Sets up the connection that writes.
pub(crate) fn writer(connection: &Connection) -> rusqlite::Result<()> {
    every(connection)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let message = format!("the file system allows no write-ahead log, only `{mode}`");
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some(message),
        ));
    }
    connection.execute_batch(WRITER)
}

/// KiB of pages that a connection which only reads keeps. There are eight, and a cache fills over
/// hours and never shrinks: with the writer's all of them hold 32 MiB at most. What falls out is in
/// the system's memory.
const READER: &str = "PRAGMA query_only = ON; PRAGMA cache_size = -2048;";

/// Sets up a connection that only reads.
pub(crate) fn reader(connection: &Connection) -> rusqlite::Result<()> {
    every(connection)?;
    connection.execute_batch(READER)
}

fn every(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // A statement keeps its plan. Otherwise new values are a reason to prepare it again, which
    // takes longer than most of them run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(EVERY)
}

#[cfg(test)]
mod tests {
    use super::{reader, writer};
    use rusqlite::Connection;

    #[test]
    fn the_connections_are_set_up_as_the_guarantees_need_them() {
        let dir = tempfile::tempdir().unwrap();
        let writing = Connection::open(dir.path().join("a.db")).unwrap();
        writer(&writing).unwrap();
        let reading = Connection::open(dir.path().join("a.db")).unwrap();
        reader(&reading).unwrap();
        let expected = [
            ("foreign_keys", 1),
            ("mmap_size", 0),
            ("trusted_schema", 0),
            ("temp_store", 2),
            ("busy_timeout", 5_000),
        ];
        let of_writer = [
            ("synchronous", 2),
            ("wal_autocheckpoint", 1_000),
            ("journal_size_limit", 64 << 20),
            ("cell_size_check", 1),
            ("cache_size", -16_384),
            ("secure_delete", 1),
        ];
        let value = |connection: &Connection, name: &str| {
            connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .unwrap_or(0)
        };
        for (name, set) in expected.into_iter().chain(of_writer) {
            assert_eq!(value(&writing, name), set, "{name}");
        }
        for (name, set) in expected
            .into_iter()
            .chain([("query_only", 1), ("cache_size", -2_048)])
        {
            assert_eq!(value(&reading, name), set, "{name}");
        }
    }
}
