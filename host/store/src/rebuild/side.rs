//! The database beside the store's own into which events are folded again. Nothing in it has to
//! survive anything.

use super::fold::fold_after;
use crate::copy::look_for_room;
use crate::full_text;
use crate::open::{BUSY_TIMEOUT, create_private};
use crate::schema;
use crate::sql::Sql;
use rusqlite::Connection;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Its name, in the folder of the store's database.
const NAME: &str = "rebuild.db";

/// Nothing is synced or rolled back; half a database is thrown away.
const CARELESS: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; \
                        PRAGMA cache_size = -32768; PRAGMA \
     mmap_size = 0;";

/// Returns the path of the side database.
pub(super) fn beside(database: &Path) -> PathBuf {
    database.with_file_name(NAME)
}

/// Removes the remnants of an unfinished rebuild, given the path of the store's database or its
/// own.
pub(crate) fn remove(database: &Path) {
    let path = beside(database);
    for name in [path.clone(), path.with_extension("db-journal")] {
        if let Err(error) = fs::remove_file(&name)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "what a rebuild left behind could not be removed"
            );
        }
    }
}

/// See the module.
pub(super) struct Side {
    connection: Connection,
    /// The position of the last event that was folded into it.
    pub(super) position: u64,
}

impl Side {
    /// An empty one.
    pub(super) fn make(path: &Path) -> io::Result<Self> {
        remove(path);
        look_for_room(path.parent().unwrap_or(path))?;
        create_private(path)?;
        let made = || {
            let mut connection = Connection::open(path)?;
            connection.execute_batch(CARELESS)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            schema::migrate(&mut connection, "")?;
            Ok(connection)
        };
        let connection = made().map_err(|error: rusqlite::Error| io::Error::other(error))?;
        Ok(Self {
            connection,
            position: 0,
        })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Folds what comes after the last event that was folded, up to the last that is seen.
    pub(super) fn fold(
        &mut self,
        events: &Sql<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> rusqlite::Result<()> {
        self.connection.execute_batch("BEGIN")?;
        self.position = fold_after(self.position, events, &Sql::new(&self.connection), progress)?;
        self.connection.execute_batch("COMMIT")
    }

    /// Indexes the words of as many rows as the store has indexed.
    pub(super) fn index(&self, store: &Sql<'_>) -> rusqlite::Result<()> {
        let last = full_text::cursor(store)?;
        self.connection.execute_batch("BEGIN")?;
        full_text::index_through(&Sql::new(&self.connection), last)?;
        self.connection.execute_batch("COMMIT")
    }
}
