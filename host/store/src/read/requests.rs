//! Requests that are remembered under their keys.

use super::ReadError;
use crate::sql::{Columns, int};
use crate::store::Store;
use domain::digest::Digest;
use domain::time::Timestamp;
use rusqlite::params;

/// Request that landed under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedRequest {
    /// The digest of the request.
    pub request: Digest,
    /// The reply when the same request comes again.
    pub reply: Vec<u8>,
}

impl Store {
    /// Returns the request that landed under a key within the last seven days, or longer
    /// ([`Store::keep_keys_longer`]). Only a commit says for certain that there was none: see
    /// [`crate::Key`].
    pub async fn remembered_request(
        &self,
        source: &str,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<RememberedRequest>, ReadError> {
        let source = source.to_owned();
        let key = key.to_owned();
        let oldest = int(self.keys_since(now).0);
        self.point_read(move |sql| {
            let text = "SELECT request, reply FROM idempotency WHERE source = ?1 AND key = ?2 AND \
                        time >= ?3";
            sql.row(text, params![source, key, oldest], |row| {
                Ok(RememberedRequest {
                    request: row.digest(0)?,
                    reply: row.get(1)?,
                })
            })
        })
        .await
    }
}
