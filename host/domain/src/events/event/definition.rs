//! Payloads of the host's stream about users' definitions.

use crate::access::user::UserId;
use crate::agents::definition::{DefinitionId, OwnDefinition};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// See [`super::Event::DefinitionMade`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionMade {
    /// Its id.
    pub definition: DefinitionId,
    /// The configured definition that it was made from. It is read again at every start: what the
    /// template loses, this definition loses too.
    pub template: DefinitionId,
    /// The user who made it.
    pub user_id: UserId,
    /// Everything that the user specified.
    pub own: OwnDefinition,
    /// Time of its making.
    pub time: Timestamp,
}

/// See [`super::Event::DefinitionRemoved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionRemoved {
    /// Its id.
    pub definition: DefinitionId,
    /// The user who had made the definition.
    pub user_id: UserId,
    /// The user who removed it.
    pub removed_by: UserId,
    /// The position of the event that made it, whose texts are erased with it.
    pub position: u64,
    /// Time of the removal.
    pub time: Timestamp,
}
