//! What happens to a session as a label on a thread: how it is called, what it points to, that it is gone. Payloads of its stream.

use crate::id::{AgentId, SessionId};
use crate::message::Message;
use crate::queue::QueueOverride;
use crate::time::Timestamp;
use crate::turn::TurnNode;
use crate::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// See [`super::Event::SessionRenamed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRenamed {
    /// The session.
    pub session: SessionId,
    /// What it is called from now on; none takes its name away.
    pub name: Option<String>,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::SessionPinned`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPinned {
    /// The session.
    pub session: SessionId,
    /// Whether it is pinned from now on; it was pinned at `time`.
    pub pinned: bool,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::SessionAttributed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionAttributed {
    /// The session.
    pub session: SessionId,
    /// The keys to merge; `null` takes a key away.
    pub attributes: Map<String, Value>,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::SessionCleared`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCleared {
    /// The session.
    pub session: SessionId,
    /// Its revision after it.
    pub revision: u64,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::SessionDeleted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDeleted {
    /// The session.
    pub session: SessionId,
    /// By whom.
    pub deleted_by: UserId,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::QueueConfigured`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueConfigured {
    /// The session.
    pub session: SessionId,
    /// What it says of its queue from now on; what it leaves out is as the operator has it.
    pub queue: QueueOverride,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::TurnsImported`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnsImported {
    /// The session that they were imported for. It may be opened later, or never when the import broke off.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// The turns, each after its parent; a parent that is not among them was there.
    pub turns: Vec<ImportedTurn>,
    /// The position of the event whose place it takes, because what was said in its turns was purged: the turns keep their places in the
    /// tree, and have neither messages nor states any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<u64>,
    /// When they were imported.
    pub time: Timestamp,
}

/// A turn that was made elsewhere, with all that was said in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedTurn {
    /// Its node.
    pub turn: TurnNode,
    /// When it was committed where it was made.
    pub committed: Timestamp,
    /// Its messages in order; none in the place of one that was erased there.
    pub messages: Vec<Option<Message>>,
}
