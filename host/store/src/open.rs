//! Opening a store: everything that is checked before the first commit, and why it may be refused.
//!
//! A store that cannot be trusted is not opened. In particular a missing or truncated database is
//! never replaced by a new, empty one: a marker file records that a database existed.

mod data_dir;
mod write_ahead_log;

pub(crate) use data_dir::{DATABASE, DataDir, create_private, sync_dir};
pub(crate) use write_ahead_log::disown;

use crate::event_row::{Head, RawEvent};
use crate::fault;
use crate::meta;
use crate::schema;
use crate::sql::{self, Connection, Failure, FromRow, Source, Sql, args};
use crate::sqlite::{self, Checkpoint};
use domain::chain::GENESIS;
use domain::digest::Digest;
use domain::event::READER;
use domain::time::Timestamp;
use std::path::{Path, PathBuf};

/// Size in bytes up to which all pages of a database are checked when it is opened. Beyond that
/// [`crate::Store::damage`] checks them while the store is in use.
pub(crate) const QUICK_CHECK_BYTES_MAX: u64 = 32 << 20;
/// Events at the end of the chain whose hashes are checked when the store is opened.
const TAIL_EVENTS_CHECKED: u64 = 1_000;

/// Options with which a store is opened.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Threads that read, each with a connection of its own.
    pub readers: usize,
    /// Commits that may wait for the writer; more are refused as busy.
    pub queue_max: usize,
    /// Bytes of all commits that may wait for the writer; more are refused as busy.
    pub queue_bytes_max: usize,
    /// Reads that may wait for a reader; more are refused as busy.
    pub reads_max: usize,
    /// Bytes of reserved disk space, released for the recovery from a full disk.
    pub ballast_bytes: u64,
    /// Size of the write-ahead log, in bytes, above which reads that keep it from starting over are
    /// ended. One transaction may exceed it.
    pub log_bytes_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            readers: 4,
            queue_max: 4_096,
            queue_bytes_max: 256 << 20,
            reads_max: 4_096,
            ballast_bytes: 8 << 20,
            log_bytes_max: 256 << 20,
        }
    }
}

/// Reason why a store was not opened. [`OpenError::advice`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("`{}` is in use by another process", dir.display())]
    Locked {
        /// The data directory.
        dir: PathBuf,
    },
    /// A database existed, and is now missing or empty.
    #[error("the database `{}` is missing or empty, but there was one here", path.display())]
    Missing {
        /// The path where it was expected.
        path: PathBuf,
    },
    /// The database is not the one that was here before.
    #[error("the database `{}` belongs to store {found}, but this directory is store {expected}'s", path.display())]
    Foreign {
        /// The database.
        path: PathBuf,
        /// The id in the marker.
        expected: String,
        /// The id in the database.
        found: String,
    },
    /// The database was damaged.
    #[error("the database `{}` is damaged: {detail}", path.display())]
    Corrupt {
        /// The database or its log.
        path: PathBuf,
        /// Description of the damage.
        detail: String,
    },
    /// Its format is from before the first release, when the numbering started over.
    #[error(
        "the database `{}` is in a format from before the first release, which this program does \
         not read", path.display()
    )]
    Before {
        /// The database.
        path: PathBuf,
    },
    /// A newer version of this program wrote it.
    #[error("the database has layout {found}, this program knows {known}")]
    Newer {
        /// Its version.
        found: usize,
        /// The newest known.
        known: usize,
    },
    /// A newer version of this program wrote a restriction of what is permitted. This version would
    /// ignore it.
    #[error(
        "the database is for readers from number {demanded} on, and this program is reader \
             {known}: it would not see all that forbids something"
    )]
    Demanding {
        /// The oldest reader that it permits.
        demanded: u64,
        /// The reader version of this program.
        known: u64,
    },
    /// The SQLite library has a known bug that loses commits.
    #[error("SQLite {version} can lose commits; 3.51.3 or newer is needed")]
    Sqlite {
        /// The version.
        version: String,
    },
    /// A file system operation failed.
    #[error("`{}` cannot be {action}", path.display())]
    Io {
        /// The action that was attempted.
        action: &'static str,
        /// The path of the action.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A database operation failed.
    #[error("the database cannot be opened")]
    Database {
        /// The cause.
        #[source]
        source: Source,
    },
}

impl OpenError {
    /// Returns advice to the operator.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Locked { .. } => {
                "stop the other process, or give this one a data directory of its own"
            }
            Self::Missing { .. } => {
                "put the database back or restore a backup into an empty directory; to begin anew, \
                 name a new directory"
            }
            Self::Foreign { .. } => {
                "put the right database back; a copy of a store belongs in a directory restored \
                 from a backup"
            }
            Self::Corrupt { .. } => {
                "keep the files as they are, restore the newest backup into an empty directory and \
                 use that"
            }
            Self::Before { .. } => {
                "export its sessions with the program that wrote it (`agent-host session export \
                 SESSION > FILE`), and import them into a new data directory (`agent-host session \
                 import FILE --agent AGENT`)"
            }
            Self::Newer { .. } | Self::Demanding { .. } => {
                "use the version of this program that wrote it, or a newer one"
            }
            Self::Sqlite { .. } => "build with the bundled SQLite",
            Self::Io { .. } => {
                "look at the permissions of the data directory and at the space on its disk"
            }
            Self::Database { .. } => "look at the cause; the database was not changed",
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Converts a failure of SQLite. Errors that SQLite reports when it opens or reads a damaged
    /// database are kept apart from all others.
    pub(crate) fn database(path: &Path, error: sql::Error) -> Self {
        match error.failure() {
            Some(Failure::Corrupt | Failure::NotADatabase) => Self::Corrupt {
                path: path.to_owned(),
                detail: error.to_string(),
            },
            _ => Self::Database {
                source: error.into(),
            },
        }
    }
}

/// A database that was opened and found in order.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The connection that writes.
    pub(crate) connection: Connection,
    /// The last event.
    pub(crate) head: Head,
    /// The latest time of the events at the end.
    pub(crate) latest: Timestamp,
    /// True if the store was not closed and is too large to check all of its pages before use.
    pub(crate) needs_integrity_check: bool,
    /// True if the process that last worked on the store ended on request.
    pub(crate) was_ended: bool,
}

/// A database file that exists and passed the checks, but is not open yet.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The store's id as the directory's marker has it; none for a new store.
    marker: Option<String>,
    /// The file's size.
    bytes: u64,
}

/// Looks for the database of a data directory, or makes an empty file in an empty directory.
pub(crate) fn prepare(dir: &DataDir) -> Result<Prepared, OpenError> {
    assert_sqlite()?;
    let marker = dir.marker()?;
    let bytes = dir.prepare_database(marker.is_some())?;
    fault::point("store.open.created");
    Ok(Prepared { marker, bytes })
}

/// Opens the database of a data directory, or makes a new one in its empty file.
pub(crate) fn database(dir: &DataDir, prepared: Prepared) -> Result<Opened, OpenError> {
    let Prepared { marker, bytes } = prepared;
    let path = dir.database();
    let was_closed = write_ahead_log::check(&dir.log())? == 0;
    let failed = |error| OpenError::database(&path, error);
    let connection = Connection::open(&path).map_err(failed)?;
    connection.set_up_writer().map_err(failed)?;
    readable(&connection, &path)?;
    identify(&connection, &path, marker.as_deref())?;
    if bytes <= QUICK_CHECK_BYTES_MAX {
        quick_check(&connection, &path)?;
    }
    schema::migrate(&connection, &uuid::Uuid::new_v4().to_string()).map_err(failed)?;
    let (head, latest) = check_tail(&connection, &path)?;
    if marker.is_none() {
        fault::point("store.open.migrated");
        // The marker records that a database exists: from then on all of it must be in the
        // database's own file.
        connection
            .checkpoint(Checkpoint::Truncate)
            .map_err(failed)?;
        let id = schema::store_id(&connection)
            .map_err(failed)?
            .unwrap_or_default();
        dir.mark(&id)?;
        fault::point("store.open.marked");
    }
    let was_ended = meta::is_noted(&Sql::new(&connection), meta::ENDED).map_err(failed)?;
    Ok(Opened {
        connection,
        head,
        latest,
        needs_integrity_check: !was_closed && bytes > QUICK_CHECK_BYTES_MAX,
        was_ended,
    })
}

/// Refuses a SQLite that is too old.
pub(crate) fn assert_sqlite() -> Result<(), OpenError> {
    match sqlite::outdated() {
        Some(version) => Err(OpenError::Sqlite {
            version: version.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Refuses a database that is not of this format, or permits no reader as old as this one.
pub(crate) fn readable(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |error| OpenError::database(path, error);
    if !schema::has_baseline(connection).map_err(failed)? {
        return Err(OpenError::Before {
            path: path.to_owned(),
        });
    }
    let found = schema::version(connection).map_err(failed)?;
    let known = schema::newest();
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    let demanded = schema::oldest_reader(connection).map_err(failed)?;
    if demanded > READER {
        return Err(OpenError::Demanding {
            demanded,
            known: READER,
        });
    }
    Ok(())
}

/// Refuses an empty database, or one that the marker does not identify.
fn identify(connection: &Connection, path: &Path, marker: Option<&str>) -> Result<(), OpenError> {
    let found = schema::store_id(connection).map_err(|error| OpenError::database(path, error))?;
    match (marker, found) {
        (None, _) => Ok(()),
        (Some(expected), Some(found)) if expected == found => Ok(()),
        (Some(expected), Some(found)) => Err(OpenError::Foreign {
            path: path.to_owned(),
            expected: expected.to_owned(),
            found,
        }),
        (Some(_), None) => Err(OpenError::Missing {
            path: path.to_owned(),
        }),
    }
}

/// Looks at every page.
pub(crate) fn quick_check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found = connection.damage();
    match found.map_err(|error| OpenError::database(path, error))? {
        None => Ok(()),
        Some(detail) => Err(OpenError::Corrupt {
            path: path.to_owned(),
            detail,
        }),
    }
}

/// Checks the chain's last events against each other and against the recorded head.
fn check_tail(connection: &Connection, path: &Path) -> Result<(Head, Timestamp), OpenError> {
    let failed = |error| OpenError::database(path, error);
    let corrupt = |detail: String| OpenError::Corrupt {
        path: path.to_owned(),
        detail,
    };
    let sql = Sql::new(connection);
    let recorded = Head::stored(&sql).map_err(failed)?;
    let mut position = recorded.position.saturating_sub(TAIL_EVENTS_CHECKED);
    let missing = || corrupt(format!("event {position} is missing"));
    let mut previous = match position {
        0 => GENESIS,
        _ => sql
            .one("SELECT hash FROM events WHERE position = ?1", [position])
            .ok()
            .flatten()
            .ok_or_else(missing)?,
    };
    let mut latest = Timestamp(0);
    let mut statement = connection.prepare(RawEvent::AFTER).map_err(failed)?;
    let mut rows = statement
        .query(args![position, usize::MAX])
        .map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let event = RawEvent::from_row(&sql, &row).map_err(failed)?;
        position += 1;
        if event.position != position {
            return Err(corrupt(format!("event {position} is missing")));
        }
        let (hash, time) = checked(&event, previous)
            .ok_or_else(|| corrupt(format!("event {position} was changed")))?;
        previous = hash;
        latest = latest.max(time);
    }
    if (position, previous) != (recorded.position, recorded.hash) {
        return Err(corrupt(format!(
            "the last event is {position}, but {} were stored",
            recorded.position
        )));
    }
    Ok((recorded, latest))
}

/// Returns an event's hash and time, if they agree with the previous event and the event itself.
fn checked(event: &RawEvent, previous: Digest) -> Option<(Digest, Timestamp)> {
    let hash = event.follows(previous)?;
    (event.hash == Some(hash)).then_some((hash, event.time()))
}
