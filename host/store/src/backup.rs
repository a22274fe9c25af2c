//! Backups of an open store, and stores made from them.
//!
//! A backup is one file: the database as it was at one point in time, complete with the store's id.
//! The file gets its name only when all of it is on the disk. It carries a mark, which
//! distinguishes every store made from it from the original until an
//! [`Event::HostRestored`](domain::event::Event::HostRestored) is committed.

use crate::copy::{Uncopied, copy};
use crate::event_row::Head;
use crate::fault;
use crate::meta;
use crate::open::{
    DataDir, OpenError, assert_sqlite, create_private, quick_check, readable, sync_dir,
};
use crate::read::ReadError;
use crate::readers::connect;
use crate::schema;
use crate::sql::{self, Connection, Source, Sql, to_json};
use crate::store::Maintenance;
use crate::verify::{self, Verification, VerificationFault};
use crate::writer::Request;
use domain::digest::Digest;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use tokio::sync::oneshot;

/// Reason why a backup was not made. Nothing exists under its name then.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file is there already: a backup replaces none.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file could not be written.
    #[error("the backup `{}` cannot be written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The database could not be read.
    #[error("the database cannot be copied")]
    Database {
        /// The cause.
        #[source]
        source: Source,
    },
}

/// Reason why a backup was not restored. The directory holds no store then.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The directory is not empty. A store is restored only into an empty one.
    #[error("`{}` is not empty", dir.display())]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory could not be locked or made.
    #[error("the directory cannot be used")]
    Target {
        /// The cause.
        #[from]
        source: OpenError,
    },
    /// The file is no backup, or was damaged.
    #[error("`{}` is not an intact backup: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        detail: String,
    },
    /// The backup could not be read, or the store not be written.
    #[error("`{}` cannot be copied", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Mark of a store that was made from a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupMark {
    /// Time at which the backup was made.
    pub made_at: Timestamp,
    /// The position of its last event.
    pub position: u64,
}

const MARK: &str = "backup";

/// A store that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The id of the store that was backed up, and of this one.
    pub store_id: String,
    /// Number of events in the restored store.
    pub events: u64,
    /// The hash of the last of them.
    pub head: Digest,
}

impl Maintenance {
    /// Copies the store to a new file, as of the point in time at which the copying ends. Commits
    /// go on between the chunks of the copy, and the write-ahead log does not grow because of it.
    pub async fn backup(&self, to: &Path) -> Result<(), BackupError> {
        let to = to.to_owned();
        let closed = || BackupError::Database {
            source: "the store is closed".into(),
        };
        let writer = self.senders().ok_or_else(closed)?.writer;
        let (reply, answer) = oneshot::channel();
        let path = to.clone();
        // It ends only as fast as the disk allows, so it gets a thread of its own.
        let thread = std::thread::Builder::new()
            .name("store-backup".to_owned())
            .spawn(move || {
                let _ = reply.send(write(writer, &to));
            });
        thread.map_err(|source| BackupError::Io {
            path: path.clone(),
            source,
        })?;
        answer.await.unwrap_or_else(|_| {
            Err(BackupError::Io {
                path,
                source: io::Error::other("the copying thread panicked"),
            })
        })
    }

    /// Returns the backup from which this store was restored, if any. The mark stays until a
    /// decision about the backup's unfinished work is stored.
    pub async fn backup_mark(&self) -> Result<Option<BackupMark>, ReadError> {
        self.read(mark).await
    }
}

fn write(writer: SyncSender<Request>, to: &Path) -> Result<(), BackupError> {
    if to.exists() {
        return Err(BackupError::Exists {
            path: to.to_owned(),
        });
    }
    let unfinished = beside(to, ".unfinished");
    let failed = |source: io::Error| BackupError::Io {
        path: to.to_owned(),
        source,
    };
    // Leftovers of an attempt that crashed must not be mistaken for a part of this one.
    for rest in ["-journal", "-wal", "-shm"] {
        let _ = fs::remove_file(beside(&unfinished, rest));
    }
    create_private(&unfinished).map_err(failed)?;
    let written =
        copied(writer, &unfinished).and_then(|()| publish(&unfinished, to).map_err(failed));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Returns a path with a suffix after its file name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn copied(writer: SyncSender<Request>, to: &Path) -> Result<(), BackupError> {
    let failed = |error: sql::Error| BackupError::Database {
        source: error.into(),
    };
    let target = copy(writer, to).map_err(|error| match error {
        Uncopied::Closed => BackupError::Database {
            source: "the store was closed".into(),
        },
        Uncopied::Database(error) => failed(error),
    })?;
    set_mark(&Sql::new(&target), now()).map_err(failed)
}

/// The mark of a store; none when it was made of no backup, or that was seen to.
fn mark(sql: &Sql<'_>) -> sql::Result<Option<BackupMark>> {
    sql.json("SELECT value FROM meta WHERE name = ?1", [MARK])
}

/// Marks a copy of a store, in place of the mark that the store may have itself.
fn set_mark(sql: &Sql<'_>, made_at: Timestamp) -> sql::Result<()> {
    let position = Head::stored(sql)?.position;
    let mark = BackupMark { made_at, position };
    meta::note(sql, MARK, &to_json(&mark)?)
}

/// Removes the mark, within the transaction that records the decision about unfinished work.
pub(crate) fn unmark(sql: &Sql<'_>) -> sql::Result<()> {
    meta::remove(sql, MARK)
}

#[expect(
    clippy::disallowed_methods,
    reason = "tells people when a backup was made; nothing is decided by it"
)]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Makes a finished file durable and gives it its name.
fn publish(unfinished: &Path, to: &Path) -> io::Result<()> {
    File::open(unfinished)?.sync_all()?;
    fault::point("store.backup");
    fs::rename(unfinished, to)?;
    match to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => sync_dir(parent),
        None => sync_dir(Path::new(".")),
    }
}

/// Makes a store from a backup, in a directory that is empty or not there. The backup is verified
/// before, event by event. Blocks for as long as that takes: about a second for 100,000 events.
pub fn restore(backup: &Path, dir: &Path) -> Result<Restored, RestoreError> {
    let target = DataDir::lock(dir)?;
    if !target.is_empty()? {
        return Err(RestoreError::NotEmpty {
            dir: dir.to_owned(),
        });
    }
    let database = target.database();
    let copied = duplicate(backup, &database).map_err(|source| RestoreError::Io {
        path: backup.to_owned(),
        source,
    });
    let restored =
        copied
            .and_then(|()| inspect(backup, &database))
            .and_then(|(store_id, verification)| {
                mark_if_copied(&database).map_err(|error| OpenError::database(&database, error))?;
                target.mark(&store_id)?;
                Ok(Restored {
                    store_id,
                    events: verification.events,
                    head: verification.head,
                })
            });
    if restored.is_err() {
        let _ = fs::remove_file(&database);
    }
    restored
}

/// Marks a store that was made from a copy that is no backup, with the time of its last event.
fn mark_if_copied(database: &Path) -> sql::Result<()> {
    let connection = Connection::open(database)?;
    let sql = Sql::new(&connection);
    if mark(&sql)?.is_none() {
        let last = sql.number("SELECT time FROM events ORDER BY position DESC LIMIT 1", [])?;
        set_mark(&sql, Timestamp(last))?;
    }
    Ok(())
}

fn duplicate(backup: &Path, database: &Path) -> io::Result<()> {
    let mut from = File::open(backup)?;
    let mut to = create_private(database)?;
    io::copy(&mut from, &mut to)?;
    to.sync_all()
}

/// Returns the id and the verification of a copied backup, if it is intact.
fn inspect(backup: &Path, database: &Path) -> Result<(String, Verification), RestoreError> {
    let damaged = |detail: String| RestoreError::Damaged {
        path: backup.to_owned(),
        detail,
    };
    let unreadable = |error: sql::Error| damaged(error.to_string());
    assert_sqlite()?;
    let connection = connect(database).map_err(unreadable)?;
    quick_check(&connection, backup).map_err(|error| damaged(error.to_string()))?;
    readable(&connection, backup).map_err(|error| damaged(error.to_string()))?;
    let store_id = schema::store_id(&connection)
        .map_err(unreadable)?
        .ok_or_else(|| damaged("it is empty".to_owned()))?;
    let verification = verify::whole(&Sql::new(&connection)).map_err(unreadable)?;
    match &verification.fault {
        Some(VerificationFault { position, problem }) => {
            Err(damaged(format!("event {position}: {problem}")))
        }
        None => Ok((store_id, verification)),
    }
}
