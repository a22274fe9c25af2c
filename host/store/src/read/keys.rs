//! API keys as they are now.

use super::ReadError;
use crate::sql::{Columns, int, limit as rows};
use crate::store::Store;
use domain::digest::Digest;
use domain::key::{self, Ended, KeyId};
use domain::time::Timestamp;
use domain::user::{Scope, UserId};
use rusqlite::{Row, params};
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

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, name, scopes, hash, issued_by, issued_with, issued_at, \
             expires_at, revoked_by, revoked_at, reason FROM api_keys ",
            $rest
        )
    };
}

impl Store {
    /// Returns a key. A committed revocation is visible to the next read.
    pub async fn key(&self, id: &KeyId) -> Result<Option<KeyRow>, ReadError> {
        let id = id.clone();
        self.point_read(move |sql| sql.row(select!("WHERE id = ?1"), [id.as_str()], read))
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
            Some(user) => sql.rows(
                select!("WHERE user_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3"),
                params![user.as_str(), after, rows(limit)],
                read,
            ),
            None => sql.rows(
                select!("WHERE id > ?1 ORDER BY id LIMIT ?2"),
                params![after, rows(limit)],
                read,
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
                params![user.as_str(), int(now.0)],
            )
        })
        .await
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    let revoked_by: Option<UserId> = row.id_opt(9)?;
    Ok(KeyRow {
        id: row.id(0)?,
        user: row.id(1)?,
        name: row.get(2)?,
        scopes: row.json(3)?,
        hash: row.digest(4)?,
        issued_by: row.id(5)?,
        issued_with: row.id_opt(6)?,
        issued_at: Timestamp(row.uint(7)?),
        expires_at: Timestamp(row.uint(8)?),
        revoked: revoked_by.zip(row.uint_opt(10)?.map(Timestamp)),
        reason: row.get(11)?,
    })
}
