//! Connector keys: the id under which a connector knows a user, and the destination of replies. A
//! service's name for a person is never part of a path.

use super::{AgentPath, ConnectorName, NotASegment};
use crate::values::shown::escaped;
use crate::values::text::serde_as_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Bytes of a service's id for a person, a group or a chat.
pub const EXTERNAL_ID_BYTES_MAX: usize = 256;

/// A link between a user and an account of a connector's service: `telegram:123456`. It serializes
/// as its text. The part after the first `:` is the service's own and may contain colons.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectorKey {
    connector: ConnectorName,
    external_id: String,
}

/// The reason why a text is no connector key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectorKeyError {
    /// The text has no `:`.
    #[error("`{0}` has no `:` in it; a connector key looks like `telegram:123456`")]
    NoColon(String),
    /// The part before the first `:` is no valid connector name.
    #[error(transparent)]
    Connector(#[from] NotASegment),
    /// Nothing follows the first `:`.
    #[error("`{0}:` has nothing after the `:`; there stands what the service calls the user")]
    NoId(ConnectorName),
    /// The part after the first `:` is too long.
    #[error("the id after `{connector}:` has {bytes} bytes; {EXTERNAL_ID_BYTES_MAX} is the most")]
    TooLong {
        /// The connector.
        connector: ConnectorName,
        /// Its length.
        bytes: usize,
    },
    /// It contains a control character.
    #[error("the id after `{0}:` has a control character in it; leave it out")]
    Control(ConnectorName),
    /// It begins or ends with a space.
    #[error("the id after `{0}:` begins or ends with a space; leave that out")]
    Space(ConnectorName),
}

impl ConnectorKey {
    /// The key of the user with this id at the connector's service.
    ///
    /// # Errors
    /// The id is empty, longer than [`EXTERNAL_ID_BYTES_MAX`], contains control characters, or has
    /// spaces around it.
    pub fn new(connector: ConnectorName, external_id: &str) -> Result<Self, ConnectorKeyError> {
        if external_id.is_empty() {
            return Err(ConnectorKeyError::NoId(connector));
        }
        if external_id.len() > EXTERNAL_ID_BYTES_MAX {
            return Err(ConnectorKeyError::TooLong {
                connector,
                bytes: external_id.len(),
            });
        }
        if external_id.chars().any(char::is_control) {
            return Err(ConnectorKeyError::Control(connector));
        }
        if external_id.trim() != external_id {
            return Err(ConnectorKeyError::Space(connector));
        }
        Ok(Self {
            connector,
            external_id: external_id.to_owned(),
        })
    }

    /// The connector.
    #[must_use]
    pub fn connector(&self) -> &ConnectorName {
        &self.connector
    }

    /// Returns the user's id at the service.
    #[must_use]
    pub fn external_id(&self) -> &str {
        &self.external_id
    }
}

impl FromStr for ConnectorKey {
    type Err = ConnectorKeyError;

    fn from_str(text: &str) -> Result<Self, ConnectorKeyError> {
        let (connector, external_id) = text
            .split_once(':')
            .ok_or_else(|| ConnectorKeyError::NoColon(escaped(text)))?;
        Self::new(connector.parse()?, external_id)
    }
}

impl fmt::Display for ConnectorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.connector, self.external_id)
    }
}

serde_as_text!(ConnectorKey::from_str);

/// The destination of an agent's replies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyTarget {
    /// The connector that sends them.
    pub connector: ConnectorName,
    /// The recipient, in the service's terms.
    pub target_id: String,
}

/// The reason why an agent's replies have no destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoReplyTarget {
    /// The agent's path contains no connector.
    #[error(
        "the agent at `{0}` talks through no connector; only one at `/<user>/<connector>` does"
    )]
    NoConnector(AgentPath),
    /// The user has no key for the connector.
    #[error("no connector key of the user is of `{0}`; add one that looks like `{0}:<id>`")]
    NoKey(ConnectorName),
    /// The user has several keys for it.
    #[error(
        "{keys} connector keys of the user are of `{connector}`, and which of them is meant \
             nobody says; keep one"
    )]
    Several {
        /// The connector.
        connector: ConnectorName,
        /// Number of those keys.
        keys: usize,
    },
}

impl ReplyTarget {
    /// Returns the destination of the replies of the agent at the path, by its user's keys. A
    /// repeated key counts once.
    ///
    /// # Errors
    /// The path is not a connector's, or the connector does not have exactly one key of the user.
    pub fn resolve(path: &AgentPath, keys: &[ConnectorKey]) -> Result<Self, NoReplyTarget> {
        let connector = path
            .connector_name()
            .ok_or_else(|| NoReplyTarget::NoConnector(path.clone()))?;
        let mut fitting: Vec<&ConnectorKey> = keys
            .iter()
            .filter(|key| key.connector == *connector)
            .collect();
        fitting.sort();
        fitting.dedup();
        match fitting.as_slice() {
            [key] => Ok(Self {
                connector: connector.clone(),
                target_id: key.external_id.clone(),
            }),
            [] => Err(NoReplyTarget::NoKey(connector.clone())),
            several => Err(NoReplyTarget::Several {
                connector: connector.clone(),
                keys: several.len(),
            }),
        }
    }
}
