//! Payloads of a session's stream, except those about its inputs.

use crate::access::tool::ClientAction;
use crate::access::user::UserId;
use crate::agents::definition::DefinitionId;
use crate::agents::path::{AgentPath, PathKind};
use crate::agents::persona::PersonaId;
use crate::agents::session::CHAT;
use crate::thread::message::Message;
use crate::thread::turn::TurnNode;
use crate::values::digest::Digest;
use crate::values::id::{AgentId, ConversationId, InputId, OperationId, RunId, SessionId, TurnId};
use crate::values::time::Timestamp;
use crate::work::memory::TriggerEvent;
use crate::work::queue::QueueOverride;
use crate::work::usage::UsageShare;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// See [`super::Event::SessionOpened`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// `chat`, or a structured type.
    pub session_type: String,
    /// The conversation that it is a part of.
    pub conversation: ConversationId,
    /// A label for people.
    pub name: Option<String>,
    /// The turn that it continues; none for an empty thread.
    pub head: Option<TurnId>,
    /// The persona of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<PersonaId>,
    /// The default model of its turns, if a message names no other.
    pub model: Option<String>,
    /// The user or agent that began it: `user:<id>`, `agent:<path>` or `trigger:<name>`.
    pub started_by: String,
    /// The user for whom it is: the user who began it, or the user of the agent that did.
    pub user_id: UserId,
    /// The configuration with which it was opened, a blob of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Digest>,
    /// Time at which it was opened.
    pub time: Timestamp,
}

impl SessionOpened {
    /// Returns the opening of an empty chat that a user begins.
    #[must_use]
    pub fn chat(
        agent: AgentId,
        session: SessionId,
        conversation: ConversationId,
        user_id: UserId,
        time: Timestamp,
    ) -> Self {
        Self {
            session,
            agent,
            session_type: CHAT.to_owned(),
            conversation,
            name: None,
            head: None,
            persona: None,
            model: None,
            started_by: format!("user:{user_id}"),
            user_id,
            config: None,
            time,
        }
    }
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
    /// True if any of its thread rests on content from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// The inputs that the turn answers, in the order in which its run claimed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputId>,
    /// True if the turn is the host's own: a compaction of the thread, which answers no input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compacts: bool,
    /// Time of the commit.
    pub time: Timestamp,
}

/// See [`super::Event::MemoryDue`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryDue {
    /// The session.
    pub session: SessionId,
    /// Time from which the session is read, unless another turn ends before; none when it is not to
    /// be read any more.
    pub due: Option<Timestamp>,
    /// Time of the decision.
    pub time: Timestamp,
}

/// See [`super::Event::MemoryRead`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRead {
    /// The session.
    pub session: SessionId,
    /// The memory agent that received the messages.
    pub agent: AgentId,
    /// The session of that agent in which it reads them. All readings of a session use the same
    /// one.
    pub reader: SessionId,
    /// The last turn that was read, at least in part.
    pub through: TurnId,
    /// The last message that was read, which is part of that turn.
    pub through_message: u64,
    /// The input that carries the words.
    pub input: InputId,
    /// The trigger event.
    pub because: TriggerEvent,
    /// Time of the reading.
    pub time: Timestamp,
}

/// See [`super::Event::UiSaved`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UiSaved {
    /// The session.
    pub session: SessionId,
    /// The question of the widget.
    pub tool_call_id: OperationId,
    /// The values entered so far.
    pub partial_state: Value,
    /// Time at which they were saved.
    pub time: Timestamp,
}

/// See [`super::Event::FileUploaded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileUploaded {
    /// The session.
    pub session: SessionId,
    /// Its bytes, a blob.
    pub digest: Digest,
    /// Name that the client gave it.
    pub name: String,
    /// Media type given by the client.
    pub media_type: String,
    /// Size in bytes.
    pub bytes: u64,
    /// The user who uploaded it.
    pub user_id: UserId,
    /// Time of the upload.
    pub time: Timestamp,
}

/// See [`super::Event::ItemRecorded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemRecorded {
    /// The session.
    pub session: SessionId,
    /// Its name, unique in its session.
    pub item: String,
    /// The position of an imported item among the session's items, counted from 1. None for other
    /// items, which follow all items recorded before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// The question.
    pub prompt: Value,
    /// The answer. Null if there is none, as in an imported session whose question was open.
    pub response: Value,
    /// True if the question was asked in another system and imported with its session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// The evaluation of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Value>,
    /// The question to the client, if it was a client action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_action: Option<ClientAction>,
    /// Time of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// Time of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// Time of the record.
    pub time: Timestamp,
}

impl ItemRecorded {
    /// The name of an item that a step records, given its place among the step's effects.
    #[must_use]
    pub fn name(run: RunId, step: u32, place: usize) -> String {
        format!("{run}.{step}.{place}")
    }
}

// Payloads of a session's stream about the session as a label on a thread: its name, the thread it
// points to, and its deletion.

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

// Payloads about the purge of deleted sessions and agents. They are in the stream of the session
// or the agent, and contain no messages.

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
