//! What happens to a session as a label on a thread: how it is called, what it points to, that it is gone. Payloads of its stream.

use crate::id::SessionId;
use crate::queue::QueueOverride;
use crate::time::Timestamp;
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
