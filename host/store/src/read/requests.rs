//! Requests that are remembered under their keys.

use super::ReadError;
use crate::sql::{Columns, int};
use crate::store::Store;
use domain::digest::Digest;
use domain::limits::IDEMPOTENCY_MS;
use domain::time::Timestamp;
use rusqlite::params;

/// What landed under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedRequest {
    /// The digest of the request.
    pub request: Digest,
    /// What to answer when the same request comes again.
    pub reply: Vec<u8>,
}

impl Store {
    /// What landed under a key within the last seven days. Only a commit says for certain that nothing has: see [`crate::Key`].
    pub async fn remembered_request(&self, source: &str, key: &str, now: Timestamp) -> Result<Option<RememberedRequest>, ReadError> {
        let (source, key, oldest) = (source.to_owned(), key.to_owned(), int(now.0.saturating_sub(IDEMPOTENCY_MS)));
        self.glance(move |sql| {
            let text = "SELECT request, reply FROM idempotency WHERE source = ?1 AND key = ?2 AND time >= ?3";
            sql.row(text, params![source, key, oldest], |row| Ok(RememberedRequest { request: row.digest(0)?, reply: row.get(1)? }))
        })
        .await
    }
}
