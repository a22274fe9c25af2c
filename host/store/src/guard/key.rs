//! Guards on the keys of users: those of the API, and those under which connectors know them.

use super::question::{Answers, Question, Questions, ask};
use super::{Condition, Footprint, Resource, unless};
use crate::query::Value;
use crate::sql::{self, Columns};
use domain::key::KeyId;
use domain::path::{ConnectorKey, ConnectorName};
use domain::user::UserId;

/// Condition on a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyGuard {
    /// The API key was issued and not revoked.
    NotRevoked(KeyId),
    /// Fewer bytes than this, stored under the API key ([`crate::Store::stored_bytes_with`]), exist
    /// before this commit.
    StoredBelow {
        /// The key.
        key: KeyId,
        /// The limit in bytes.
        bytes: u64,
    },
    /// The connector key is bound to this user; with none, to no user.
    ConnectorKeyOf {
        /// The key.
        key: ConnectorKey,
        /// The user.
        user: Option<UserId>,
    },
    /// The user has at most so many connector keys before this commit.
    ConnectorKeysAtMost {
        /// The user.
        user: UserId,
        /// Maximum number of connector keys.
        max: u64,
    },
    /// The connector knows at most so many users by its keys before this commit.
    KeysOfConnectorAtMost {
        /// The connector.
        connector: ConnectorName,
        /// Maximum number of its keys.
        max: u64,
    },
}

impl Condition for KeyGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::NotRevoked(key) => ask(
                "SELECT 1 FROM api_keys WHERE id = ?1 AND revoked_at IS NULL",
                [Value::text(key.as_str())],
            ),
            Self::StoredBelow { key, .. } => [Some(Question::StoredBytesWith(key)), None],
            Self::ConnectorKeyOf { key, .. } => ask(
                "SELECT user_id FROM connector_keys WHERE key = ?1",
                [Value::id(key)],
            ),
            Self::ConnectorKeysAtMost { user, .. } => ask(
                "SELECT count(*) FROM connector_keys WHERE user_id = ?1",
                [Value::text(user.as_str())],
            ),
            // The semicolon is the sign after the colon.
            Self::KeysOfConnectorAtMost { connector, .. } => ask(
                "SELECT count(*) FROM connector_keys WHERE key >= ?1 || ':' AND key < ?1 || ';'",
                [Value::text(connector.as_str())],
            ),
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        Ok(match self {
            Self::NotRevoked(_) => unless(!rows.is_empty(), || "it was revoked".to_owned()),
            Self::StoredBelow { bytes, .. } => {
                let stored = rows.number()?;
                unless(stored < *bytes, || format!("{stored} bytes came with it"))
            }
            Self::ConnectorKeyOf { user, .. } => {
                let found = rows.first().map(|row| row.text(0)).transpose()?;
                unless(found == user.as_ref().map(UserId::as_str), || {
                    found.map_or("it stands for nobody".to_owned(), |user| {
                        format!("it stands for {user}")
                    })
                })
            }
            Self::ConnectorKeysAtMost { max, .. } => {
                let keys = rows.number()?;
                unless(keys <= *max, || format!("they have {keys}"))
            }
            Self::KeysOfConnectorAtMost { max, .. } => {
                let keys = rows.number()?;
                unless(keys <= *max, || format!("it has {keys}"))
            }
        })
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::NotRevoked(key) | Self::StoredBelow { key, .. } => {
                vec![Resource::ApiKey(key.clone())]
            }
            Self::ConnectorKeyOf { key, .. } => vec![Resource::ConnectorKey(key.clone())],
            Self::ConnectorKeysAtMost { user, .. } => vec![Resource::User(user.clone())],
            Self::KeysOfConnectorAtMost { connector, .. } => {
                vec![Resource::KeysOfConnector(connector.clone())]
            }
        }
    }
}
