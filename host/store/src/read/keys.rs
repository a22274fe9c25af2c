//! API keys as they are now.

use super::ReadError;
use crate::sql::{self, Cells, FromRow, Json, args, select};
use crate::store::Store;
use domain::digest::Digest;
use domain::key::{self, Ended, KeyId};
use domain::time::Timestamp;
use domain::user::{Scope, UserId};
use std::collections::BTreeSet;

/// An API key without its secret, which only its user has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// Its id.
    pub id: KeyId,
    /// The key's owner.
    pub user: UserId,
    /// The key's name.
    pub name: String,
    /// Scopes that the key grants.
    pub scopes: BTreeSet<Scope>,
    /// The SHA-256 of its secret.
    pub hash: Digest,
    /// The user who issued it.
    pub issued_by: UserId,
    /// The key that was used to issue it; none when it was issued by other means.
    pub issued_with: Option<KeyId>,
    /// Time of issue.
    pub issued_at: Timestamp,
    /// Time at which it expires.
    pub expires_at: Timestamp,
    /// The user who revoked it, and the time.
    pub revoked: Option<(UserId, Timestamp)>,
    /// Reason for the revocation, if one was given.
    pub reason: Option<String>,
}

impl KeyRow {
    /// Returns how the key ended, if it has.
    #[must_use]
    pub fn ended(&self, now: Timestamp) -> Option<Ended> {
        key::ended(
            self.expires_at,
            self.revoked.as_ref().map(|(_, at)| *at),
            now,
        )
    }
}

impl KeyRow {
    const COLUMNS: &str = "id, user_id, name, scopes, hash, issued_by, issued_with, issued_at, \
                           expires_at, revoked_by, revoked_at, reason";
    const FROM: &str = "api_keys";
}

impl FromRow for KeyRow {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        Ok(Self {
            id: cells.next("id")?,
            user: cells.next("user_id")?,
            name: cells.next("name")?,
            scopes: cells.next::<Json<_>>("scopes")?.0,
            hash: cells.next("hash")?,
            issued_by: cells.next("issued_by")?,
            issued_with: cells.next("issued_with")?,
            issued_at: cells.next("issued_at")?,
            expires_at: cells.next("expires_at")?,
            revoked: cells
                .next::<Option<_>>("revoked_by")?
                .zip(cells.next("revoked_at")?),
            reason: cells.next("reason")?,
        })
    }
}

impl Store {
    /// Returns a key. A committed revocation is visible to the next read.
    pub async fn key(&self, id: &KeyId) -> Result<Option<KeyRow>, ReadError> {
        let id = id.clone();
        self.point_read(move |sql| sql.one(select!(KeyRow, "WHERE id = ?1"), [id]))
            .await
    }

    /// A user's keys, or those of all users, in the order of their ids, after one, at most `limit`.
    /// Also those that have ended.
    pub async fn keys(
        &self,
        user: Option<&UserId>,
        after: Option<&KeyId>,
        limit: usize,
    ) -> Result<Vec<KeyRow>, ReadError> {
        let user = user.cloned();
        let after = after.map(|id| id.as_str().to_owned()).unwrap_or_default();
        self.read(move |sql| match user {
            Some(user) => sql.all(
                select!(
                    KeyRow,
                    "WHERE user_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3"
                ),
                args![user.as_str(), after, limit],
            ),
            None => sql.all(
                select!(KeyRow, "WHERE id > ?1 ORDER BY id LIMIT ?2"),
                args![after, limit],
            ),
        })
        .await
    }

    /// Returns the number of a user's keys that were neither revoked nor have expired.
    pub async fn keys_that_count(&self, user: &UserId, now: Timestamp) -> Result<u64, ReadError> {
        let user = user.clone();
        self.read(move |sql| {
            sql.number(
                "SELECT count(*) FROM api_keys WHERE user_id = ?1 AND revoked_at IS NULL AND \
                 expires_at > ?2",
                args![user, now],
            )
        })
        .await
    }
}
