//! Reads of connector keys: the names by which services know the users.

use super::ReadError;
use crate::sql::{Columns, int, limit as rows};
use crate::store::Store;
use domain::id::{ConnectorId, Stream};
use domain::path::{ConnectorKey, ConnectorName};
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

/// A visitor of a chat, who has a place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitorRow {
    /// Their connector key.
    pub key: ConnectorKey,
    /// The user that they are.
    pub user: UserId,
    /// Since when they have the place.
    pub bound_at: Timestamp,
    /// The last time at which something happened in a session of theirs; none while they have none.
    pub active_at: Option<Timestamp>,
}

impl Store {
    /// Returns the visitors of a chat, at most `limit`: those that never said anything first, then
    /// those in whose sessions nothing has happened for the longest time. Their users' ids begin
    /// with a prefix. The time grows with their number.
    pub async fn visitors(
        &self,
        connector: &ConnectorName,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<VisitorRow>, ReadError> {
        let connector = connector.to_string();
        let users = format!("{prefix}*");
        self.read(move |sql| {
            // The semicolon is the sign after the colon.
            let text = "SELECT k.key, k.user_id, k.bound_at, (SELECT max(s.updated_at) FROM \
                        sessions s WHERE s.user_id = k.user_id) AS active FROM connector_keys k \
                        WHERE k.key >= ?1 || ':' AND k.key < ?1 || ';' AND k.user_id GLOB ?2 ORDER \
                        BY active IS NOT NULL, coalesce(active, k.bound_at), k.key LIMIT ?3";
            sql.rows(text, params![connector, users, rows(limit)], |row| {
                Ok(VisitorRow {
                    key: row.id(0)?,
                    user: row.id(1)?,
                    bound_at: Timestamp(row.uint(2)?),
                    active_at: row.uint_opt(3)?.map(Timestamp),
                })
            })
        })
        .await
    }

    /// Returns the bytes of what people said over a connector since a time and was not erased. The
    /// time that it takes grows with the number of the connector's events.
    pub async fn bytes_received(
        &self,
        connector: &ConnectorName,
        since: Timestamp,
    ) -> Result<u64, ReadError> {
        let stream = Stream::Connector(ConnectorId::of_name(connector.as_str())).to_string();
        self.read(move |sql| {
            let text = "SELECT coalesce(sum(length(payload)), 0) FROM events WHERE stream = ?1 AND \
                        kind = 'connector.received.v1' AND time >= ?2";
            sql.number(text, params![stream, int(since.0)])
        })
        .await
    }

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
