//! What happens to a session, apart from its inputs: payloads of its stream.

use crate::digest::Digest;
use crate::id::{AgentId, ConversationId, OperationId, RunId, SessionId, TurnId};
use crate::persona::PersonaId;
use crate::time::Timestamp;
use crate::tool::ClientAction;
use crate::turn::TurnNode;
use crate::user::UserId;
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
    /// The conversation that it is a part of; nil in events from before there were any.
    #[serde(default = "super::agent::no_conversation")]
    pub conversation: ConversationId,
    /// A label for people.
    pub name: Option<String>,
    /// The turn that it continues; none for an empty thread.
    pub head: Option<TurnId>,
    /// The persona that it is led as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<PersonaId>,
    /// The model that its turns use unless a message says otherwise.
    pub model: Option<String>,
    /// Who began it: `user:<id>` or `agent:<definition>`.
    pub started_by: String,
    /// The user whom it is for: who began it, or for whom the agent worked that did.
    #[serde(default = "UserId::local")]
    pub user_id: UserId,
    /// What it was opened with, a blob of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Digest>,
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
    /// Whether anything that its thread shows rests on content from outside; none in events from before that was recorded: then its messages
    /// say it, and the turns before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<bool>,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::UiSaved`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UiSaved {
    /// The session.
    pub session: SessionId,
    /// The question whose widget it is.
    pub tool_call_id: OperationId,
    /// What is filled in so far.
    pub partial_state: Value,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::FileUploaded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileUploaded {
    /// The session.
    pub session: SessionId,
    /// Its bytes, a blob.
    pub digest: Digest,
    /// What its client calls it.
    pub name: String,
    /// What it is, in its client's words.
    pub media_type: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Who handed it over.
    pub user_id: UserId,
    /// When.
    pub time: Timestamp,
}

/// See [`super::Event::ItemRecorded`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemRecorded {
    /// The session.
    pub session: SessionId,
    /// Its name, unique in its session; empty when it was recorded before items had names.
    pub item: String,
    /// Its place among the session's items, counted from 1; 0 when it is not known.
    pub sequence: u32,
    /// What was asked.
    pub prompt: Value,
    /// What was answered; null when nothing was, as in a session of another system that was imported with a question open.
    pub response: Value,
    /// Whether it was asked by another system, and imported with its session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// What was made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Value>,
    /// What the client was asked, if it was through the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_action: Option<ClientAction>,
    /// When it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// When it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// When it went on record.
    pub time: Timestamp,
}

impl ItemRecorded {
    /// The name of an item that a step records, given its place among the step's effects.
    #[must_use]
    pub fn name(run: RunId, step: u32, place: usize) -> String {
        format!("{run}.{step}.{place}")
    }
}
