//! A copy of the database, made piece by piece: what backups are, and what is read instead of the
//! store when a look at all of it takes so long that it would keep the write-ahead log from
//! beginning anew.

use crate::open::{DATABASE, create_private};
use crate::read::ReadError;
use crate::readers::connect;
use crate::sql::Sql;
use crate::store::Store;
use crate::writer::Request;
use rusqlite::Connection;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use tokio::sync::oneshot;

/// The name of the copy that is read, in the folder of the store's database.
const NAME: &str = "copy.db";

/// Returns the path of the copy.
pub(crate) fn beside(database: &Path) -> PathBuf {
    database.with_file_name(NAME)
}

/// Removes the remnants of a copy that was not finished.
pub(crate) fn remove(database: &Path) {
    let path = beside(database);
    for path in [
        path.with_extension("db-journal"),
        path.with_extension("db-wal"),
        path.with_extension("db-shm"),
        path,
    ] {
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a copy of the database could not be removed"
            );
        }
    }
}

/// Refuses to begin where it could take the space that commits need: what is made beside the
/// database never becomes larger than it.
pub(crate) fn look_for_room(folder: &Path) -> io::Result<()> {
    let needed = fs::metadata(folder.join(DATABASE)).map_or(0, |database| database.len());
    match rustix::fs::statvfs(folder) {
        Ok(found)
            if found.f_blocks > 0 && found.f_bavail.saturating_mul(found.f_frsize) < needed =>
        {
            Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("less than {needed} bytes are free, which it may take"),
            ))
        }
        // Some file systems do not say.
        _ => Ok(()),
    }
}

/// Has a store's writer copy its database to an empty file, and waits for it. A waiting caller does
/// not keep the store from being closed.
pub(crate) fn copy(writer: SyncSender<Request>, to: PathBuf) -> Result<(), Uncopied> {
    let (reply, answer) = oneshot::channel();
    writer
        .send(Request::Copy(to, reply))
        .map_err(|_| Uncopied::Closed)?;
    drop(writer);
    answer
        .blocking_recv()
        .map_err(|_| Uncopied::Closed)?
        .map_err(Uncopied::Database)
}

/// Reason why there is no copy.
#[derive(Debug)]
pub(crate) enum Uncopied {
    /// The store was closed.
    Closed,
    /// The database or the file did not do something.
    Database(rusqlite::Error),
}

/// Removes the copy, whatever became of the look at it.
pub(crate) struct Copy {
    database: PathBuf,
}

impl Copy {
    /// Copies the database of a store through a channel to its writer. Takes as much space again,
    /// and refuses to begin where there is too little.
    pub(crate) fn make(
        database: &Path,
        writer: SyncSender<Request>,
    ) -> Result<(Self, Connection), ReadError> {
        let path = beside(database);
        remove(database);
        let made = Self {
            database: database.to_owned(),
        };
        let unavailable = |source: io::Error| ReadError::Unavailable {
            source: source.into(),
        };
        look_for_room(path.parent().unwrap_or(&path))
            .and_then(|()| create_private(&path))
            .map_err(unavailable)?;
        copy(writer, path.clone()).map_err(|error| match error {
            Uncopied::Closed => ReadError::Closed,
            Uncopied::Database(error) => ReadError::Unavailable {
                source: error.into(),
            },
        })?;
        let connection = Connection::open(&path)?;
        // As one file, without a log beside it.
        connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        drop(connection);
        Ok((made, connect(&path)?))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        remove(&self.database);
    }
}

impl Store {
    /// Reads at length: in the store itself, or, when that is in the way of the log, in a copy of
    /// it.
    pub(crate) async fn read_at_length<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Sql<'_>) -> rusqlite::Result<T> + Clone + Send + 'static,
    ) -> Result<T, ReadError> {
        match self.read(read.clone()).await {
            Err(ReadError::InTheWay) => self.read_copy(read).await,
            done => done,
        }
    }

    /// Reads in a copy, on a thread of its own.
    pub(crate) async fn read_copy<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Sql<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ReadError> {
        // One at a time: they are as large as the store, and have one name.
        let alone = Arc::clone(self.copying()).lock_owned().await;
        let writer = self.senders().ok_or(ReadError::Closed)?.writer;
        let database = self.database().to_owned();
        let (reply, answer) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("store-copy".to_owned())
            .spawn(move || {
                let _alone = alone;
                let copied = Copy::make(&database, writer);
                let _ = reply.send(copied.and_then(|(copy, connection)| {
                    let found = read(&Sql::new(&connection));
                    drop(connection);
                    drop(copy);
                    Ok(found?)
                }));
            });
        thread.map_err(|source| ReadError::Unavailable {
            source: source.into(),
        })?;
        answer.await.map_err(|_| self.unanswered())?
    }
}
