//! Payloads about the purge of deleted sessions and agents. They are in the stream of the session
//! or the agent, and contain no messages.

use crate::access::user::UserId;
use crate::agents::definition::DefinitionId;
use crate::agents::path::{AgentPath, PathKind};
use crate::values::id::{AgentId, ConversationId, SessionId, TurnId};
use crate::values::time::Timestamp;
use crate::work::usage::UsageShare;
use serde::{Deserialize, Serialize};

/// See [`super::Event::PurgeBegun`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeBegun {
    /// The agent, or the session's.
    pub agent: AgentId,
    /// The remains of the purged data.
    pub remains: Remains,
    /// The user who began the purge.
    pub begun_by: UserId,
    /// Time at which the purge began.
    pub time: Timestamp,
}

/// The remains of purged data: that it existed, to whom it belonged, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Remains {
    /// The remains of a session.
    Session {
        /// The session.
        session: SessionId,
        /// `chat`, or a structured type.
        session_type: String,
        /// The conversation that it was a part of.
        conversation: ConversationId,
        /// The user or agent that began it.
        started_by: String,
        /// The user whom it was for.
        user_id: UserId,
        /// The turn that it pointed to.
        head: Option<TurnId>,
        /// Time at which it was opened.
        created_at: Timestamp,
    },
    /// The remains of an agent.
    Agent {
        /// The definition from which it was made.
        definition: DefinitionId,
        /// The agent's type.
        agent_type: String,
        /// Its address.
        path: AgentPath,
        /// Kind of that address.
        kind: PathKind,
        /// The agent that spawned it.
        parent: Option<AgentId>,
        /// The topmost agent above it; itself if there is none.
        root: AgentId,
        /// The user to whom it belonged.
        owner_user_id: UserId,
        /// Time of creation.
        created_at: Timestamp,
    },
}

impl Remains {
    /// The session, if this is one.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Session { session, .. } => Some(*session),
            Self::Agent { .. } => None,
        }
    }
}

/// See [`super::Event::Purged`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// The agent, or the session's.
    pub agent: AgentId,
    /// The session, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The user who purged it.
    pub purged_by: UserId,
    /// Amount that was erased.
    pub erased: Erased,
    /// Amount that stays, and why.
    pub kept: KeptByPurge,
    /// Usage of the erased turns, by day and model: the sums are kept, without their users. The
    /// usage of an agent's sessions is in the purge of each session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<UsageShare>,
    /// Time at which the purge was done.
    pub time: Timestamp,
}

/// Amount that a purge erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Erased {
    /// Sessions.
    pub sessions: u64,
    /// Turns of which only their place in the tree is kept.
    pub turns: u64,
    /// Events that keep their place in the chain without payload and salt.
    pub events: u64,
    /// Messages.
    pub messages: u64,
    /// Blobs.
    pub blobs: u64,
    /// Their bytes.
    pub blob_bytes: u64,
    /// Keys in buckets.
    pub bucket_keys: u64,
    /// Remembered requests with an idempotency key.
    pub requests: u64,
}

impl Erased {
    /// The two together.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self {
            sessions: self.sessions + more.sessions,
            turns: self.turns + more.turns,
            events: self.events + more.events,
            messages: self.messages + more.messages,
            blobs: self.blobs + more.blobs,
            blob_bytes: self.blob_bytes + more.blob_bytes,
            bucket_keys: self.bucket_keys + more.bucket_keys,
            requests: self.requests + more.requests,
        }
    }
}

/// Amount that a purge kept, because others refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptByPurge {
    /// Turns that a session which was not deleted made, or shows in its thread. All their messages
    /// are kept.
    pub turns: u64,
    /// Writes to buckets that the session shares: its component's, its agent's, its user's or
    /// another session's.
    pub bucket_writes: u64,
}

impl KeptByPurge {
    /// The two together.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self {
            turns: self.turns + more.turns,
            bucket_writes: self.bucket_writes + more.bucket_writes,
        }
    }
}
