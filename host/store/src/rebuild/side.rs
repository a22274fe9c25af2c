//! The side database into which events are folded again. Its content need not survive a crash.

use crate::full_text;
use crate::projections::fold::fold_after;
use crate::schema;
use crate::sql::{self, Connection, Sql};
use crate::sqlite::BUSY_TIMEOUT;
use std::io;
use std::path::Path;

/// Its name, in the folder of the store's database.
pub(super) const NAME: &str = "rebuild.db";

/// See the module.
pub(super) struct Side {
    pub(super) connection: Connection,
    /// The position of the last event that was folded into it.
    pub(super) position: u64,
}

impl Side {
    /// Lays out an empty file.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let laid_out = || {
            let connection = Connection::open(path)?;
            connection.set_up_scratch()?;
            connection.set_busy_timeout(BUSY_TIMEOUT)?;
            schema::migrate(&connection, "")?;
            Ok(connection)
        };
        let connection = laid_out().map_err(|error: sql::Error| io::Error::other(error))?;
        Ok(Self {
            connection,
            position: 0,
        })
    }

    /// Folds the events after the last folded one, up to the last visible one.
    pub(super) fn fold(
        &mut self,
        events: &Sql<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> sql::Result<()> {
        self.connection.execute_batch("BEGIN")?;
        self.position = fold_after(self.position, events, &Sql::new(&self.connection), progress)?;
        self.connection.execute_batch("COMMIT")
    }

    /// Indexes the words of as many rows as the store has indexed.
    pub(super) fn index(&self, store: &Sql<'_>) -> sql::Result<()> {
        let last = full_text::cursor(store)?;
        self.connection.execute_batch("BEGIN")?;
        full_text::index_through(&Sql::new(&self.connection), last)?;
        self.connection.execute_batch("COMMIT")
    }
}
