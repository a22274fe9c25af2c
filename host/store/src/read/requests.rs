//! Requests that are remembered under their keys.

use super::ReadError;
use crate::sql::{named, row, select};
use crate::store::Store;
use domain::digest::Digest;
use domain::time::Timestamp;

row! {
    /// Request that landed under a key.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RememberedRequest from "idempotency" {
        /// The digest of the request.
        pub request: Digest,
        /// The reply to a repetition of the same request.
        pub reply: Vec<u8>,
    }
}

impl Store {
    /// Returns the request that landed under a key within the last seven days, or longer
    /// ([`Store::keep_keys_longer`]). Only a commit establishes that no request has the key: see
    /// [`crate::Key`].
    pub async fn remembered_request(
        &self,
        source: &str,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<RememberedRequest>, ReadError> {
        let source = source.to_owned();
        let key = key.to_owned();
        let oldest = self.keys_since(now);
        self.point_read(move |sql| {
            let text = select!(
                RememberedRequest,
                "WHERE source = :source AND key = :key AND time >= :time"
            );
            sql.one(text, named![source, key, time = oldest])
        })
        .await
    }
}
