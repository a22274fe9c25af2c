//! Pairing codes that unknown senders got.

use super::ReadError;
use crate::sql::{args, named, row, select};
use crate::store::Store;
use domain::path::{ConnectorKey, ConnectorName};
use domain::time::Timestamp;

row! {
    /// A pairing that was offered and is not settled. It may have expired.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PairingRow from "pairings" {
        /// The sender, as the service knows them.
        pub key: ConnectorKey,
        /// The sender's name for people.
        pub name: Option<String>,
        /// The chat in which the code was shown.
        pub chat: String,
        /// The code.
        pub code: String,
        /// Time of the offer.
        pub offered: Timestamp = "offered_at",
        /// Time until which it counts.
        pub expires: Timestamp,
    }
}

impl Store {
    /// Returns the valid pairing with a code; none if no pairing has it.
    pub async fn pairing(
        &self,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<PairingRow>, ReadError> {
        let code = code.to_owned();
        self.point_read(move |sql| {
            sql.one(
                select!(
                    PairingRow,
                    "WHERE code = ?1 AND expires > ?2 ORDER BY key LIMIT 1"
                ),
                args![code, now],
            )
        })
        .await
    }

    /// Returns the pairing that was offered to a sender, also when it has expired.
    pub async fn pairing_of(&self, key: &ConnectorKey) -> Result<Option<PairingRow>, ReadError> {
        let key = key.to_string();
        self.point_read(move |sql| sql.one(select!(PairingRow, "WHERE key = ?1"), [key]))
            .await
    }

    /// Returns the pairings that count now, of one connector or of all, those that expire first,
    /// at most `limit`.
    pub async fn pairings(
        &self,
        connector: Option<&ConnectorName>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<PairingRow>, ReadError> {
        let connector = connector.map(ToString::to_string);
        self.read(move |sql| match connector {
            Some(connector) => sql.all(
                select!(
                    PairingRow,
                    "WHERE connector = :connector AND expires > :now ORDER BY expires LIMIT :limit"
                ),
                named![now, limit, connector],
            ),
            None => sql.all(
                select!(PairingRow, "WHERE expires > ?1 ORDER BY expires LIMIT ?2"),
                args![now, limit],
            ),
        })
        .await
    }

    /// Returns pairings that have expired and are not settled, at most `limit`.
    pub async fn expired_pairings(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<PairingRow>, ReadError> {
        self.read(move |sql| {
            sql.all(
                select!(PairingRow, "WHERE expires <= ?1 ORDER BY expires LIMIT ?2"),
                args![now, limit],
            )
        })
        .await
    }

    /// Returns the number of pairings of a connector that count now.
    pub async fn pairing_count(
        &self,
        connector: &ConnectorName,
        now: Timestamp,
    ) -> Result<u64, ReadError> {
        let connector = connector.to_string();
        self.point_read(move |sql| {
            sql.number(
                "SELECT count(*) FROM pairings WHERE connector = ?1 AND expires > ?2",
                args![connector, now],
            )
        })
        .await
    }
}
