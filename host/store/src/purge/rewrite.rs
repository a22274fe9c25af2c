//! The store's files after an erasure. Deleted content in the database is overwritten at once; its
//! earlier state stays in the write-ahead log until that is emptied. SQLite may leave copies in the
//! unused part of a page when it rearranges the page. Only rewriting the whole file removes them.
//! Commits would wait for that, so an operator does it while no host is running.

use super::Store;
use crate::commit::CommitError;
use crate::copy;
use crate::fault;
use crate::meta::{self, is_noted};
use crate::sql::{self, Connection, Sql, with_causes};
use crate::sqlite::{BUSY_TIMEOUT, Checkpoint};
use std::path::Path;
use std::time::Duration;

/// Name of the mark in the store's metadata that the log has to be emptied.
const DUE: &str = "rewrite";
/// Maximum number of tries to empty the log: a read may still be using the earlier state.
const TRIES_MAX: u32 = 50;
/// Time that commits wait for reads at each try, in milliseconds, and the pause between two tries.
const WAIT_MS: u64 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// Result of a rewrite: whether any erased data is left in the store's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewritten {
    /// Nothing that was deleted is left.
    Yes,
    /// Something may be left: the log could not be emptied.
    NotYet {
        /// The reason, with its causes.
        reason: String,
    },
}

pub(super) fn due(sql: &Sql<'_>) -> sql::Result<()> {
    meta::note(sql, DUE, "due")
}

impl Store {
    /// Empties the log if data was erased since it was last emptied. Commits wait for a moment at a
    /// time.
    pub async fn rewrite_erased(&self) -> Result<Rewritten, CommitError> {
        let not_yet = |reason: &str| {
            Ok(Rewritten::NotYet {
                reason: reason.to_owned(),
            })
        };
        // A copy that is read meanwhile may have been made before.
        let Ok(_alone) = self.copying().try_lock() else {
            return not_yet("the store is being verified in a copy of before; try again");
        };
        let mut tries = 0;
        loop {
            let database = self.database().to_owned();
            let emptied = self.in_writer(move |sql| {
                if !is_noted(sql, DUE)? {
                    return Ok(Ok(()));
                }
                copy::remove(&database);
                Ok(empty_log(sql, &database))
            });
            match emptied.await? {
                Ok(()) => break,
                Err(reason) if tries == TRIES_MAX => return Ok(Rewritten::NotYet { reason }),
                Err(_) => tries += 1,
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(Rewritten::Yes)
    }

    /// Rewrites the database's file and empties its log. Commits wait until that is done, about a
    /// second for some hundred megabytes. It needs as much free space as the database has. After a
    /// failure the file is unchanged.
    pub async fn vacuum(&self) -> Result<Rewritten, CommitError> {
        let database = self.database().to_owned();
        let rewritten = self
            .in_writer(move |sql| Ok(rewrite(sql, &database)))
            .await?;
        Ok(rewritten.map_or_else(|reason| Rewritten::NotYet { reason }, |()| Rewritten::Yes))
    }
}

fn rewrite(sql: &Sql<'_>, database: &Path) -> Result<(), String> {
    let described = |error: sql::Error| with_causes(&error);
    // On a connection of its own: the writer's keeps temporary data in memory, and these may be as
    // large as the database.
    let connection = Connection::open(database).map_err(described)?;
    connection
        .set_busy_timeout(BUSY_TIMEOUT)
        .map_err(described)?;
    connection.vacuum().map_err(described)?;
    drop(connection);
    empty_log(sql, database)
}

/// Moves the log to the database and makes it a file without content.
fn empty_log(sql: &Sql<'_>, database: &Path) -> Result<(), String> {
    let described = |error: sql::Error| with_causes(&error);
    let connection = sql.connection();
    connection
        .set_busy_timeout(Duration::from_millis(WAIT_MS))
        .map_err(described)?;
    let emptied = connection.checkpoint(Checkpoint::Truncate);
    connection
        .set_busy_timeout(BUSY_TIMEOUT)
        .map_err(described)?;
    emptied.map_err(described)?;
    let log = database.with_file_name(format!("{}-wal", crate::open::DATABASE));
    if std::fs::metadata(&log).map_or(0, |log| log.len()) > 0 {
        return Err("somebody is reading what was before".to_owned());
    }
    fault::point("store.purge.rewritten");
    meta::remove(sql, DUE).map_err(described)
}
