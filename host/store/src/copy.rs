//! A copy of the database, made chunk by chunk. Backups are such copies. Long inspections read one
//! instead of the store, because they would keep the write-ahead log from starting over.

use crate::read::ReadError;
use crate::readers::connect;
use crate::scratch::{self, Scratch};
use crate::sql::{self, Connection};
use crate::writer::Request;
use std::path::Path;
use std::sync::mpsc::SyncSender;
use tokio::sync::oneshot;

/// The name of the copy that is read, in the folder of the store's database.
const NAME: &str = "copy.db";

/// Removes the copy that is read, if a crash left it.
pub(crate) fn remove(database: &Path) {
    scratch::remove(database, NAME);
}

/// Reason why there is no copy.
#[derive(Debug)]
pub(crate) enum Uncopied {
    /// The store was closed.
    Closed,
    /// The database or the file reported an error.
    Database(sql::Error),
}

/// Makes a store's writer copy its database to an empty file, and waits for the copy. A waiting
/// caller does not keep the store from being closed. The copy is one file, without a log.
pub(crate) fn copy(writer: SyncSender<Request>, to: &Path) -> Result<Connection, Uncopied> {
    let (reply, answer) = oneshot::channel();
    writer
        .send(Request::Copy(to.to_owned(), reply))
        .map_err(|_| Uncopied::Closed)?;
    drop(writer);
    answer
        .blocking_recv()
        .map_err(|_| Uncopied::Closed)?
        .map_err(Uncopied::Database)?;
    let as_one_file = || {
        let copy = Connection::open(to)?;
        copy.make_one_file()?;
        Ok(copy)
    };
    as_one_file().map_err(Uncopied::Database)
}

/// Copies the database of a store, to be read, through a channel to its writer. Takes as much space
/// again, and refuses to begin where there is too little.
pub(crate) fn copy_to_read(
    database: &Path,
    writer: SyncSender<Request>,
) -> Result<(Scratch, Connection), ReadError> {
    let scratch = Scratch::make(database, NAME).map_err(|source| ReadError::Unavailable {
        source: source.into(),
    })?;
    let copied = copy(writer, scratch.path()).map_err(|error| match error {
        Uncopied::Closed => ReadError::Closed,
        Uncopied::Database(error) => ReadError::Unavailable {
            source: error.into(),
        },
    });
    drop(copied?);
    let connection = connect(scratch.path())?;
    Ok((scratch, connection))
}
