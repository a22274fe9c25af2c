//! Notes of the edge in addition to the events: its progress in work that it can repeat.

use crate::commit::CommitError;
use crate::meta;
use crate::read::ReadError;
use crate::store::Store;

/// Prefix of the names of these notes in the store's metadata.
const OF_EDGE: &str = "edge/";

impl Store {
    /// Returns a note of the edge.
    pub async fn edge_note(&self, name: &'static str) -> Result<Option<String>, ReadError> {
        let name = format!("{OF_EDGE}{name}");
        self.point_read(move |sql| sql.one("SELECT value FROM meta WHERE name = ?1", [name]))
            .await
    }

    /// Stores a note of the edge and replaces an earlier one of this name. It takes a turn of the
    /// writer, so use it rarely. A rebuild does not change it.
    pub async fn set_edge_note(
        &self,
        name: &'static str,
        value: String,
    ) -> Result<(), CommitError> {
        let name = format!("{OF_EDGE}{name}");
        self.in_writer(move |sql| meta::note(sql, &name, &value))
            .await
    }
}
