//! Payloads of a session's stream, except those about its inputs.

use crate::access::tool::ClientAction;
use crate::access::user::UserId;
use crate::agents::persona::PersonaId;
use crate::agents::session::CHAT;
use crate::thread::turn::TurnNode;
use crate::values::digest::Digest;
use crate::values::id::{AgentId, ConversationId, InputId, OperationId, RunId, SessionId, TurnId};
use crate::values::time::Timestamp;
use crate::work::memory::TriggerEvent;
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
    /// The user or agent that began it: `user:<id>` or `agent:<definition>`.
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
