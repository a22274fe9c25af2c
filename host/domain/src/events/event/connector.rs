//! Payloads of the host's stream about services' keys for users.

use crate::access::user::UserId;
use crate::agents::path::ConnectorKey;
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// See [`super::Event::ConnectorKeyBound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorKeyBound {
    /// The service's key for the user.
    pub key: ConnectorKey,
    /// The user.
    pub user_id: UserId,
    /// The user who bound it.
    pub bound_by: UserId,
    /// Time of the binding.
    pub time: Timestamp,
}

/// See [`super::Event::ConnectorKeyUnbound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorKeyUnbound {
    /// The service's key for the user.
    pub key: ConnectorKey,
    /// The user for whom it stood.
    pub user_id: UserId,
    /// The user who removed the binding.
    pub unbound_by: UserId,
    /// Time of the removal.
    pub time: Timestamp,
}
