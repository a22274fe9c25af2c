//! Payloads of a session's stream about the session as a label on a thread: its name, the thread it
//! points to, and its deletion.

use crate::access::user::UserId;
use crate::thread::message::Message;
use crate::thread::turn::TurnNode;
use crate::values::id::{AgentId, SessionId};
use crate::values::time::Timestamp;
use crate::work::queue::QueueOverride;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// See [`super::Event::SessionRenamed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRenamed {
    /// The session.
    pub session: SessionId,
    /// The new name; none removes the name.
    pub name: Option<String>,
    /// Time of the renaming.
    pub time: Timestamp,
}

/// See [`super::Event::SessionPinned`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPinned {
    /// The session.
    pub session: SessionId,
    /// True if it is pinned now; it was pinned at `time`.
    pub pinned: bool,
    /// Time of the change.
    pub time: Timestamp,
}

/// See [`super::Event::SessionAttributed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionAttributed {
    /// The session.
    pub session: SessionId,
    /// The keys to merge; `null` removes a key.
    pub attributes: Map<String, Value>,
    /// Time of the change.
    pub time: Timestamp,
}

/// See [`super::Event::SessionCleared`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCleared {
    /// The session.
    pub session: SessionId,
    /// Its revision after it.
    pub revision: u64,
    /// Time of the clearing.
    pub time: Timestamp,
}

/// See [`super::Event::SessionDeleted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDeleted {
    /// The session.
    pub session: SessionId,
    /// The user who deleted it.
    pub deleted_by: UserId,
    /// Time of the deletion.
    pub time: Timestamp,
}

/// See [`super::Event::QueueConfigured`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueConfigured {
    /// The session.
    pub session: SessionId,
    /// The session's own new queue settings. Omitted settings are the operator's.
    pub queue: QueueOverride,
    /// Time of the change.
    pub time: Timestamp,
}

/// See [`super::Event::TurnsImported`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnsImported {
    /// The session of the import. It may be opened later, or never if the import failed.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// The turns, each after its parent; a parent outside the list existed before.
    pub turns: Vec<ImportedTurn>,
    /// The position of the event that this one replaces, because the messages of its turns were
    /// purged. The turns keep their places in the tree, but have no messages and no states any
    /// more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<u64>,
    /// Time of the import.
    pub time: Timestamp,
}

/// A turn from another system, with all its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedTurn {
    /// Its node.
    pub turn: TurnNode,
    /// Time of the commit in that system.
    pub committed: Timestamp,
    /// Its messages in order; none in the place of an erased one.
    pub messages: Vec<Option<Message>>,
}
