//! Mark of a clean shutdown: tells a start that the process before it ended on request, and not in
//! the middle of its work.

use crate::commit::CommitError;
use crate::store::Store;
use rusqlite::{Connection, OptionalExtension};

/// True if the note is there.
pub(crate) fn is_noted(connection: &Connection) -> rusqlite::Result<bool> {
    let text = "SELECT 1 FROM meta WHERE name = 'ended'";
    Ok(connection
        .query_row(text, [], |_| Ok(()))
        .optional()?
        .is_some())
}

impl Store {
    /// Returns whether the process that last worked on the store ended on request
    /// ([`Self::end_work`]). True of a new store as well.
    #[must_use]
    pub fn was_ended(&self) -> bool {
        self.opened_ended()
    }

    /// Removes the mark of a clean shutdown. Once this returns, a process that opens the store
    /// after a crash can tell.
    ///
    /// # Errors
    /// The removal could not be made durable.
    pub async fn begin_work(&self) -> Result<(), CommitError> {
        self.in_writer(|sql| {
            sql.execute("DELETE FROM meta WHERE name = 'ended'", [])
                .map(drop)
        })
        .await
    }

    /// Records that work has ended, or is about to end, on request.
    ///
    /// # Errors
    /// The record could not be made durable.
    pub async fn end_work(&self) -> Result<(), CommitError> {
        self.in_writer(|sql| {
            sql.execute(
                "INSERT OR REPLACE INTO meta (name, value) VALUES ('ended', 'as told')",
                [],
            )
            .map(drop)
        })
        .await
    }
}
