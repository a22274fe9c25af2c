//! The file itself: what was deleted in a database may still stand in pages that are free, beside what is in use, and in the log. So the
//! whole file is written anew, and the log is emptied.

use super::Store;
use crate::commit::CommitError;
use crate::fault;
use crate::open::BUSY_TIMEOUT;
use crate::sql::{Sql, with_causes};
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;
use std::path::Path;

/// What says that the file is to be written anew, among what is known of the store.
const DUE: &str = "rewrite";
/// How often it is tried to empty the log: somebody may be reading what was before.
const TRIES_MAX: u32 = 3;

/// Whether nothing of what was erased is left in the store's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewritten {
    /// Nothing is.
    Yes,
    /// Something may be: the file could not be written anew, or the log not be emptied.
    NotYet {
        /// Why, with the causes.
        reason: String,
    },
}

/// Something was erased.
pub(super) fn due(sql: &Sql<'_>) -> rusqlite::Result<()> {
    sql.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, 'due')", [DUE]).map(drop)
}

impl Store {
    /// Writes the database's file anew if something was erased since it was last done, and empties its log. Commits wait for as long as
    /// that takes; it needs as much space again as the database has.
    ///
    /// # Errors
    /// The store was closed, or too much waits for it.
    pub async fn rewrite_erased(&self) -> Result<Rewritten, CommitError> {
        let database = self.database().to_owned();
        self.in_writer(move |sql| {
            if !sql.exists("SELECT 1 FROM meta WHERE name = ?1", [DUE])? {
                return Ok(Rewritten::Yes);
            }
            Ok(rewrite(sql, &database).map_or_else(|reason| Rewritten::NotYet { reason }, |()| Rewritten::Yes))
        })
        .await
    }
}

fn rewrite(sql: &Sql<'_>, database: &Path) -> Result<(), String> {
    let told = |error: rusqlite::Error| with_causes(&error);
    // By a connection of its own: what the writer's keeps for itself is in memory, and this may be as large as the disk.
    let connection = Connection::open(database).map_err(told)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(told)?;
    connection.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = FULL; VACUUM").map_err(told)?;
    drop(connection);
    fault::point("store.purge.rewritten");
    empty_log(sql, database)?;
    sql.execute("DELETE FROM meta WHERE name = ?1", [DUE]).map(drop).map_err(told)
}

fn empty_log(sql: &Sql<'_>, database: &Path) -> Result<(), String> {
    let mut reason = String::new();
    let log = database.with_file_name(format!("{}-wal", crate::open::DATABASE));
    for _ in 0..TRIES_MAX {
        match sql.connection().wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE) {
            Ok(_) if std::fs::metadata(&log).map_or(0, |log| log.len()) == 0 => return Ok(()),
            Ok(_) => "somebody is reading what was before".clone_into(&mut reason),
            Err(error) => reason = with_causes(&error),
        }
    }
    Err(reason)
}
