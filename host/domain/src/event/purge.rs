//! What happens when something that was deleted is purged: payloads of the stream of the session or the agent. They carry no words.

use crate::definition::DefinitionId;
use crate::id::{AgentId, ConversationId, SessionId, TurnId};
use crate::path;
use crate::time::Timestamp;
use crate::user::UserId;
use serde::{Deserialize, Serialize};

/// See [`super::Event::PurgeBegun`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeBegun {
    /// The agent, or the session's.
    pub agent: AgentId,
    /// What is left of it.
    pub remains: Remains,
    /// By whom.
    pub begun_by: UserId,
    /// When.
    pub time: Timestamp,
}

/// What is left of something that was purged: that it was there, whose it was, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Remains {
    /// Of a session.
    Session {
        /// The session.
        session: SessionId,
        /// `chat`, or a structured type.
        session_type: String,
        /// The conversation that it was a part of.
        conversation: ConversationId,
        /// Who began it.
        started_by: String,
        /// The user whom it was for.
        user_id: UserId,
        /// The turn that it pointed to.
        head: Option<TurnId>,
        /// When it was opened.
        created_at: Timestamp,
    },
    /// Of an agent.
    Agent {
        /// The template it was made from.
        definition: DefinitionId,
        /// What sort of agent it was.
        agent_type: String,
        /// Its address.
        path: String,
        /// What sort of address that is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<path::Kind>,
        /// The agent that spawned it.
        parent: Option<AgentId>,
        /// The topmost agent above it; itself when none is.
        root: AgentId,
        /// Who it belonged to.
        owner_user_id: UserId,
        /// When it was made.
        created_at: Timestamp,
    },
}

impl Remains {
    /// The session, if it is of one.
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
    /// By whom.
    pub purged_by: UserId,
    /// How much was erased.
    pub erased: Erased,
    /// How much stays, and why.
    pub kept: Kept,
    /// When.
    pub time: Timestamp,
}

/// How much a purge erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Erased {
    /// Sessions.
    pub sessions: u64,
    /// Turns of which nothing is left but their place in the tree.
    pub turns: u64,
    /// Events that keep their place in the chain, and of which payload and salt are gone.
    pub events: u64,
    /// Messages.
    pub messages: u64,
    /// Blobs.
    pub blobs: u64,
    /// Their bytes.
    pub blob_bytes: u64,
    /// Keys in buckets.
    pub bucket_keys: u64,
    /// Requests that were remembered under a key.
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

/// How much a purge left, because others point to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Turns that are in the thread of a session that was not deleted, or were made in one; with all that was said in them.
    pub turns: u64,
    /// Writes to buckets that are not the session's alone: its component's, its agent's or its user's.
    pub bucket_writes: u64,
}

impl Kept {
    /// The two together.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self { turns: self.turns + more.turns, bucket_writes: self.bucket_writes + more.bucket_writes }
    }
}
