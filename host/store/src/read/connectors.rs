//! Reads of connector keys: the names by which services know the users.

use super::ReadError;
use crate::sql::{args, named, row, select};
use crate::store::Store;
use crate::streams;
use domain::id::{ConnectorId, Stream};
use domain::path::{ConnectorKey, ConnectorName};
use domain::time::Timestamp;
use domain::user::UserId;

row! {
    /// A connector key and its user.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ConnectorRow from "connector_keys" {
        /// The name by which the service knows the user.
        pub key: ConnectorKey,
        /// The user.
        pub user: UserId = "user_id",
        /// Since when.
        pub bound_at: Timestamp,
    }
}

row! {
    /// A visitor of a chat, who has a place in it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct VisitorRow from "connector_keys k" {
        /// Their connector key.
        pub key: ConnectorKey = "k.key",
        /// The user that they are.
        pub user: UserId = "k.user_id",
        /// Since when they have the place.
        pub bound_at: Timestamp = "k.bound_at",
        /// The time of the latest activity in one of their sessions; none while they have no
        /// session.
        pub active_at: Option<Timestamp> =
            "(SELECT max(s.updated_at) FROM sessions s WHERE s.user_id = k.user_id)",
    }
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
        let prefix = prefix.to_owned();
        self.read(move |sql| {
            // The semicolon is the sign after the colon.
            let text = select!(
                VisitorRow,
                "WHERE k.key >= :key || ':' AND k.key < :key || ';' AND substr(k.user_id, 1, \
                 length(:prefix)) = :prefix ORDER BY active_at IS NOT NULL, coalesce(active_at, \
                 k.bound_at), k.key LIMIT :limit"
            );
            sql.all(text, named![key = connector, prefix, limit])
        })
        .await
    }

    /// Returns the bytes of messages that people sent over a connector since a time, without erased
    /// ones. The cost grows with the number of the connector's events.
    pub async fn bytes_received(
        &self,
        connector: &ConnectorName,
        since: Timestamp,
    ) -> Result<u64, ReadError> {
        let stream = Stream::Connector(ConnectorId::of_name(connector.as_str()));
        self.read(move |sql| {
            let text = "SELECT coalesce(sum(bytes), 0) FROM events WHERE stream = ?1 AND \
                        kind = 'connector.received.v1' AND time >= ?2";
            sql.number(text, args![streams::number(sql, stream)?, since])
        })
        .await
    }

    /// Returns a connector key and its user; none if it is not bound.
    pub async fn connector_key(
        &self,
        key: &ConnectorKey,
    ) -> Result<Option<ConnectorRow>, ReadError> {
        let key = key.to_string();
        self.point_read(move |sql| sql.one(select!(ConnectorRow, "WHERE key = ?1"), [key]))
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
            let text = select!(ConnectorRow, "WHERE user_id = ?1 ORDER BY key LIMIT ?2");
            sql.all(text, args![user, limit])
        })
        .await
    }
}
