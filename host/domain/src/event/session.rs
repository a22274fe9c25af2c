//! What happens to a session, apart from its inputs: payloads of its stream.

use crate::id::{AgentId, SessionId, TurnId};
use crate::time::Timestamp;
use crate::turn::TurnNode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// See [`super::Event::SessionOpened`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// `chat`, or a structured type.
    pub session_type: String,
    /// A label for people.
    pub name: Option<String>,
    /// The turn that it continues; none for an empty thread.
    pub head: Option<TurnId>,
    /// The model that its turns use unless a message says otherwise.
    pub model: Option<String>,
    /// Who began it.
    pub started_by: String,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::TurnCommitted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnCommitted {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnNode,
    /// The session's revision after it.
    pub revision: u64,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::ItemRecorded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemRecorded {
    /// The session.
    pub session: SessionId,
    /// What was asked.
    pub prompt: Value,
    /// What was answered.
    pub response: Value,
    /// What was made of it.
    pub evaluation: Option<Value>,
    /// When.
    pub time: Timestamp,
}
