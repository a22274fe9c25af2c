//! SQLite behind the store's own words for a database ([`crate::sql`]): connections and their
//! settings, statements, errors by class, the write-ahead log, and copies.
//!
//! Only this file names the library. Another engine would get a file next to this one.

mod statement;

pub(crate) use statement::{Row, Rows, Statement};

use crate::sql::{Args, Columns, Error, Failure, Result};
use domain::id::AgentId;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{ErrorCode, OpenFlags, ffi};
use std::path::Path;
use std::time::Duration;

/// Before this one a race between a checkpoint and a commit could lose the commit.
const VERSION_MIN: i32 = 3_051_003;
/// Statements that a connection keeps prepared. The texts are constants, and fewer than this.
const STATEMENTS_MAX: usize = 256;
/// Maximum wait for a lock of another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of every connection. Memory-mapped pages are off, because a stray write into them would
/// reach the disk.
const EVERY: &str = "PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF; \
                     PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;";
/// Settings of the connection that writes. A commit returns when it is on the disk. The writer
/// itself moves the log to the database after 4,000 pages (see `writer/log.rs`); the automatic
/// checkpoint stays on until the writer has taken over. It caches 16 MiB of pages, so the changes
/// of one transaction to many sessions stay in memory until it commits. Deleted content is
/// overwritten with zeros, so a later purge leaves no earlier copy.
const WRITER: &str = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1000; PRAGMA \
                      journal_size_limit = 67108864; PRAGMA cache_size = -16384; PRAGMA \
                      secure_delete = ON;";
/// KiB of pages that a read-only connection caches. There are eight of these connections, and a
/// cache fills over hours and never shrinks: with the writer's they use 32 MiB at most. Evicted
/// pages are still in the system's page cache.
const READER: &str = "PRAGMA query_only = ON; PRAGMA cache_size = -2048;";

/// The ids of a list that is bound by this name ([`list`]).
macro_rules! ids {
    ($name:literal) => {
        concat!("(SELECT unhex(value) FROM json_each(:", $name, "))")
    };
}
/// The texts of an array of JSON: a column's, or one that is bound by a name.
macro_rules! texts {
    ($array:literal) => {
        concat!("(SELECT value FROM json_each(", $array, "))")
    };
}
pub(crate) use {ids, texts};

/// Returns ids as one parameter, for [`ids!`].
pub(crate) fn list(ids: &[AgentId]) -> String {
    let ids = ids.iter().map(|id| id.0.simple().to_string());
    serde_json::Value::from_iter(ids).to_string()
}

/// Settings of a database that is thrown away: nothing is synced or rolled back.
const SCRATCH: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = \
                       -32768; PRAGMA mmap_size = 0;";
/// Settings of a connection that has the store's database attached and writes to it. Only the
/// writer moves the log. Deleted content is overwritten, as by the writer.
const ATTACHED: &str = "PRAGMA store.synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA \
                        wal_autocheckpoint = 0;";

/// The statement for a number that changes when another connection has written.
pub(crate) const DATA_VERSION: &str = "PRAGMA data_version";
/// The statement for the names of all tables that have pages.
pub(crate) const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT \
                                 LIKE 'CREATE VIRTUAL %' ORDER BY name";
/// The statement for the first damage of a table, or `ok`.
pub(crate) const DAMAGE_OF: &str = "SELECT quick_check FROM pragma_quick_check(?1)";

/// Returns the version of the library if it is too old to be trusted.
pub(crate) fn outdated() -> Option<&'static str> {
    (rusqlite::version_number() < VERSION_MIN).then(rusqlite::version)
}

/// An open database.
#[derive(Debug)]
pub(crate) struct Connection(rusqlite::Connection);

/// The columns of a table.
pub(crate) struct TableColumns {
    /// The columns that name a row, in the order of the key.
    pub(crate) key: Vec<String>,
    /// All of them.
    pub(crate) columns: Vec<String>,
}

/// The extent of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checkpoint {
    /// Moves what no read is in the way of.
    Passive,
    /// Waits until the next commit can start the log over.
    Restart,
    /// Waits likewise, and cuts the log's file off.
    Truncate,
}

/// The part of a commit that is on the disk when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// All of it.
    Full,
    /// As much as keeps the database whole.
    Normal,
    /// Nothing for certain.
    Off,
}

impl Connection {
    /// Opens a file, which is made when it is missing. An empty path is a private database that
    /// goes with the connection.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self> {
        rusqlite::Connection::open(path)
            .map(Self::new)
            .map_err(Error::from)
    }

    /// Opens a file that cannot be written through this connection.
    pub(crate) fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        rusqlite::Connection::open_with_flags(path, flags)
            .map(Self::new)
            .map_err(Error::from)
    }

    fn new(connection: rusqlite::Connection) -> Self {
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        Self(connection)
    }

    /// Sets it up as the connection that writes.
    pub(crate) fn set_up_writer(&self) -> Result<()> {
        self.set_up()?;
        let mode: String = self.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(Error::failed(
                Failure::CannotOpen,
                format!("the file system allows no write-ahead log, only `{mode}`"),
            ));
        }
        self.execute_batch(WRITER)
    }

    /// Sets it up as a connection that only reads.
    pub(crate) fn set_up_reader(&self) -> Result<()> {
        self.set_up()?;
        self.execute_batch(READER)
    }

    fn set_up(&self) -> Result<()> {
        self.set_busy_timeout(BUSY_TIMEOUT)?;
        let connection = &self.0;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // A statement keeps its plan. Otherwise new values are a reason to prepare it again, which
        // takes longer than most of them run.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        self.execute_batch(EVERY)
    }

    /// Sets how long a statement waits for a lock of another connection.
    pub(crate) fn set_busy_timeout(&self, patience: Duration) -> Result<()> {
        Ok(self.0.busy_timeout(patience)?)
    }

    /// Sets which data are on the disk when a commit returns.
    pub(crate) fn sync(&self, how: Durability) -> Result<()> {
        self.execute_batch(match how {
            Durability::Full => "PRAGMA synchronous = FULL",
            Durability::Normal => "PRAGMA synchronous = NORMAL",
            Durability::Off => "PRAGMA synchronous = OFF",
        })
    }

    /// Sets it up for a database that is thrown away.
    pub(crate) fn set_up_scratch(&self) -> Result<()> {
        self.execute_batch(SCRATCH)
    }

    /// Lets a connection write that only read.
    pub(crate) fn allow_writes(&self) -> Result<()> {
        self.execute_batch("PRAGMA query_only = OFF")
    }

    /// Attaches the store's database as `store`, to be written to.
    pub(crate) fn attach(&self, database: &Path) -> Result<()> {
        self.execute("ATTACH ?1 AS store", [&*database.to_string_lossy()])?;
        self.execute_batch(ATTACHED)
    }

    /// Makes the database one file, without a log.
    pub(crate) fn make_one_file(&self) -> Result<()> {
        self.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
    }

    /// Rewrites the database's file.
    pub(crate) fn vacuum(&self) -> Result<()> {
        self.sync(Durability::Full)?;
        self.execute_batch("PRAGMA wal_autocheckpoint = 0; VACUUM")
    }

    pub(crate) fn page_bytes(&self) -> Result<u32> {
        self.query_row("PRAGMA page_size", [], |row| row.get(0))
    }

    /// Returns the number of the layout that the database has.
    pub(crate) fn layout(&self) -> Result<i64> {
        self.query_row("PRAGMA user_version", [], |row| row.get(0))
    }

    pub(crate) fn set_layout(&self, number: usize) -> Result<()> {
        self.execute_batch(&format!("PRAGMA user_version = {number}"))
    }

    /// Returns whether another database has the same tables and indexes.
    pub(crate) fn has_layout_of(&self, other: &Self) -> Result<bool> {
        self.same_rows(
            other,
            "SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2",
        )
    }

    /// Looks at every page, and returns the first damage.
    pub(crate) fn damage(&self) -> Result<Option<String>> {
        self.found("PRAGMA quick_check(1)")
    }

    /// Does the same, and compares each index with its table.
    pub(crate) fn damage_with_indexes(&self) -> Result<Option<String>> {
        self.found("PRAGMA integrity_check(1)")
    }

    fn found(&self, check: &str) -> Result<Option<String>> {
        let found: String = self.query_row(check, [], |row| row.get(0))?;
        Ok((found != "ok").then_some(found))
    }

    /// Prepares a statement, or takes it from those that were.
    pub(crate) fn prepare(&self, text: &str) -> Result<Statement<'_>> {
        Ok(Statement(self.0.prepare_cached(text)?))
    }

    /// Runs statements without parameters, one after the other.
    pub(crate) fn execute_batch(&self, texts: &str) -> Result<()> {
        Ok(self.0.execute_batch(texts)?)
    }

    /// Runs a statement that returns no rows, and returns the number of rows that it changed.
    pub(crate) fn execute(&self, text: &str, args: impl Args) -> Result<usize> {
        self.prepare(text)?.execute(args)
    }

    /// Reads the first row; an error without one.
    pub(crate) fn query_row<T>(
        &self,
        text: &str,
        args: impl Args,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut statement = self.prepare(text)?;
        let mut rows = statement.query(args)?;
        rows.next()?
            .map_or_else(|| Err(Error::misused("there is no row")), |row| read(&row))
    }

    /// Does something in a transaction, which is rolled back if that fails.
    pub(crate) fn transact<T>(&self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        self.execute_batch("BEGIN IMMEDIATE")?;
        let done = work(self).and_then(|done| self.execute_batch("COMMIT").map(|()| done));
        // Some failures have ended the transaction already.
        if done.is_err() && self.in_transaction() {
            self.execute_batch("ROLLBACK")?;
        }
        done
    }

    /// Returns the steps of a statement's plan; none for a statement without one.
    #[cfg(test)]
    pub(crate) fn plan(&self, text: &str) -> Vec<String> {
        let mut steps = Vec::new();
        if let Ok(mut plan) = self.0.prepare(&format!("EXPLAIN QUERY PLAN {text}")) {
            let mut rows = plan.raw_query();
            while let Ok(Some(row)) = rows.next() {
                steps.push(row.get(3).unwrap());
            }
        }
        steps
    }

    #[cfg(test)]
    pub(crate) fn open_in_memory() -> Result<Self> {
        Self::open(":memory:")
    }

    pub(crate) fn in_transaction(&self) -> bool {
        !self.0.is_autocommit()
    }

    /// Returns the number of rows that it has changed since it was opened.
    pub(crate) fn total_changes(&self) -> u64 {
        self.0.total_changes()
    }

    /// Returns the columns of a table that are written.
    pub(crate) fn columns_of(&self, table: &str) -> Result<TableColumns> {
        let mut statement =
            self.prepare("SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid")?;
        let mut rows = statement.query([table])?;
        let mut key: Vec<(u64, String)> = Vec::new();
        let mut columns = Vec::new();
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let place: u64 = row.get(1)?;
            if place > 0 {
                key.push((place, name.clone()));
            }
            columns.push(name);
        }
        key.sort_unstable();
        Ok(TableColumns {
            key: key.into_iter().map(|(_, name)| name).collect(),
            columns,
        })
    }

    /// Returns whether a statement gives the same rows here and in another database.
    pub(crate) fn same_rows(&self, other: &Self, text: &str) -> Result<bool> {
        let mut ours = self.prepare(text)?;
        let mut theirs = other.prepare(text)?;
        let columns = ours.column_count();
        let mut ours = ours.query([])?;
        let mut theirs = theirs.query([])?;
        loop {
            match (ours.next()?, theirs.next()?) {
                (None, None) => return Ok(true),
                (Some(one), Some(other)) if one.is_same(&other, columns)? => {}
                _ => return Ok(false),
            }
        }
    }

    /// Moves the write-ahead log to the database. Returns the frames of the log, and of them those
    /// that were moved.
    pub(crate) fn checkpoint(&self, how: Checkpoint) -> Result<(i32, i32)> {
        use rusqlite::wal::CheckpointMode as Mode;
        let mode = match how {
            Checkpoint::Passive => Mode::PASSIVE,
            Checkpoint::Restart => Mode::RESTART,
            Checkpoint::Truncate => Mode::TRUNCATE,
        };
        Ok(self.0.wal_checkpoint_v2(None::<&str>, mode)?)
    }

    /// Reports the frames of the write-ahead log after each commit. The log is no longer moved to
    /// the database by itself.
    pub(crate) fn on_commit(
        &mut self,
        mut report: impl FnMut(usize) + Send + 'static,
    ) -> Result<()> {
        let hook = move |_: &mut rusqlite::hooks::Wal, frames: std::ffi::c_int| {
            report(usize::try_from(frames).unwrap_or(0));
            Ok(())
        };
        Ok(self.0.wal_hook(Some(hook))?)
    }

    /// Ends a statement if `is_to_end` is true at one of its checks, each after a number of steps.
    pub(crate) fn end_when(
        &mut self,
        steps: i32,
        is_to_end: impl FnMut() -> bool + Send + 'static,
    ) -> Result<()> {
        Ok(self.0.progress_handler(steps, Some(is_to_end))?)
    }

    /// Begins a copy of the database to another.
    pub(crate) fn copy_to<'a>(&'a self, to: &'a mut Self) -> Result<Copy<'a>> {
        Ok(Copy(Backup::new(&self.0, &mut to.0)?))
    }
}

/// A copy under way.
pub(crate) struct Copy<'a>(Backup<'a, 'a>);

/// State of a copy after a step.
pub(crate) enum Copied {
    All,
    Some,
    /// Another process has locked the database.
    Nothing,
}

impl Copy<'_> {
    /// Copies so many pages.
    pub(crate) fn step(&self, pages: i32) -> Result<Copied> {
        Ok(match self.0.step(pages)? {
            StepResult::Done => Copied::All,
            StepResult::Busy | StepResult::Locked => Copied::Nothing,
            // More pages remain, or a result of a later version of the library.
            _ => Copied::Some,
        })
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let Some(code) = error.sqlite_error_code() else {
            return Self::Misused {
                source: error.into(),
            };
        };
        let lacks_shared_memory =
            error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE);
        let failure = match code {
            _ if lacks_shared_memory => Failure::Full,
            ErrorCode::ConstraintViolation => Failure::Constraint,
            ErrorCode::TypeMismatch | ErrorCode::TooBig | ErrorCode::ParameterOutOfRange => {
                Failure::Unfit
            }
            ErrorCode::DatabaseBusy => Failure::Busy,
            ErrorCode::OperationInterrupted => Failure::Interrupted,
            ErrorCode::DatabaseCorrupt => Failure::Corrupt,
            ErrorCode::NotADatabase => Failure::NotADatabase,
            ErrorCode::SystemIoFailure => Failure::Io,
            ErrorCode::CannotOpen => Failure::CannotOpen,
            ErrorCode::DiskFull => Failure::Full,
            _ => Failure::Other,
        };
        Self::Failed {
            failure,
            source: error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Connection;
    use crate::sql::Columns;

    #[test]
    fn the_connections_are_set_up_as_the_guarantees_need_them() {
        let dir = tempfile::tempdir().unwrap();
        let writing = Connection::open(dir.path().join("a.db")).unwrap();
        writing.set_up_writer().unwrap();
        let reading = Connection::open(dir.path().join("a.db")).unwrap();
        reading.set_up_reader().unwrap();
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
                .query_row(&format!("PRAGMA {name}"), [], |row| row.get::<i64>(0))
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
