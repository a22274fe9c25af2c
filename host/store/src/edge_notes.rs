//! Notes of the edge beside the events: how far it has come with something that it can do again.

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

    /// Keeps a note of the edge, in place of an earlier one of this name. It takes a turn of the
    /// writer, so it is for now and then. A rebuild leaves it as it is.
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
