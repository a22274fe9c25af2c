//! What services call the users: payloads of the host's stream.

use crate::path::ConnectorKey;
use crate::time::Timestamp;
use crate::user::UserId;
use serde::{Deserialize, Serialize};

/// See [`super::Event::ConnectorKeyBound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorKeyBound {
    /// What the service calls them.
    pub key: ConnectorKey,
    /// The user.
    pub user_id: UserId,
    /// Who said so.
    pub bound_by: UserId,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::ConnectorKeyUnbound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorKeyUnbound {
    /// What the service calls them.
    pub key: ConnectorKey,
    /// The user for whom it stood.
    pub user_id: UserId,
    /// Who said so.
    pub unbound_by: UserId,
    /// When.
    pub time: Timestamp,
}
