//! The note of the sessions that a start is about to read for the first time.

use crate::commit::CommitError;
use crate::meta;
use crate::read::ReadError;
use crate::sql::{Columns, to_json};
use crate::store::Store;
use domain::id::SessionId;
use std::collections::BTreeMap;

/// Name of the note.
const LOOKS: &str = "looks";

impl Store {
    /// Returns the noted sessions, each with the number of starts that have noted it.
    pub async fn noted_looks(&self) -> Result<BTreeMap<SessionId, u32>, ReadError> {
        self.read(|sql| {
            let noted = sql.row("SELECT value FROM meta WHERE name = ?1", [LOOKS], |row| {
                row.json(0)
            })?;
            Ok(noted.unwrap_or_default())
        })
        .await
    }

    /// Notes these sessions in place of those noted before. Once this returns, a process that opens
    /// the store after a crash can tell.
    pub async fn note_looks(&self, looks: BTreeMap<SessionId, u32>) -> Result<(), CommitError> {
        self.in_writer(move |sql| match looks.is_empty() {
            true => meta::remove(sql, LOOKS),
            false => meta::note(sql, LOOKS, &to_json(&looks)?),
        })
        .await
    }
}
