//! Reads of connector keys: the names by which services know the users.

use super::ReadError;
use crate::sql::{Columns, limit as rows};
use crate::store::Store;
use domain::path::ConnectorKey;
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::{Row, params};

/// A connector key and its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectorRow {
    /// The name by which the service knows the user.
    pub key: ConnectorKey,
    /// The user.
    pub user: UserId,
    /// Since when.
    pub bound_at: Timestamp,
}

impl Store {
    /// Returns a connector key and its user; none when it is not bound.
    pub async fn connector_key(
        &self,
        key: &ConnectorKey,
    ) -> Result<Option<ConnectorRow>, ReadError> {
        let key = key.to_string();
        self.point_read(move |sql| {
            sql.row(
                "SELECT key, user_id, bound_at FROM connector_keys WHERE key = ?1",
                [key],
                read,
            )
        })
        .await
    }

    /// The connector keys of a user, in the order of their texts, at most `limit`.
    pub async fn keys_of_user(
        &self,
        user: &UserId,
        limit: usize,
    ) -> Result<Vec<ConnectorRow>, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            let text = "SELECT key, user_id, bound_at FROM connector_keys WHERE user_id = ?1 ORDER \
                        BY key LIMIT ?2";
            sql.rows(text, params![user.as_str(), rows(limit)], read)
        })
        .await
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<ConnectorRow> {
    Ok(ConnectorRow {
        key: row.id(0)?,
        user: row.id(1)?,
        bound_at: Timestamp(row.uint(2)?),
    })
}
