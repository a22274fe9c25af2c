//! Guards on a user: how much of the host they take, which chats they have, and how many
//! notes and definitions.

use super::question::{Answers, Question, Questions, ask};
use super::{Condition, Footprint, Resource, unless};
use crate::query::Value;
use crate::read::routing::{chat_query, read_chat};
use crate::sql;
use domain::id::{AgentId, TurnId};
use domain::persona::PersonaId;
use domain::time::Timestamp;
use domain::user::UserId;

/// Condition on a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserGuard {
    /// The user has brought less than so many bytes that are still there
    /// ([`crate::Store::stored_bytes`]), before this commit.
    StoredBelow {
        /// The user.
        user: UserId,
        /// The limit in bytes.
        bytes: u64,
    },
    /// The user has opened less than so many sessions within some time, before this commit.
    SessionsOpenedBelow {
        /// The user.
        user: UserId,
        /// Start of the period.
        after: Timestamp,
        /// Up to this time. Sessions opened before the clock jumped back would count for ever
        /// otherwise.
        until: Timestamp,
        /// The limit on sessions.
        max: u64,
    },
    /// An agent has at most so many notes in the sessions of the user, before this commit.
    NotesAtMost {
        /// The user.
        user: UserId,
        /// The agent.
        agent: AgentId,
        /// Maximum number of notes.
        max: u64,
    },
    /// The user has at most so many definitions of their own before this commit.
    DefinitionsAtMost {
        /// The user.
        user: UserId,
        /// Maximum number of definitions.
        max: u64,
    },
    /// The user has no open chat to which messages for this addressee would go.
    NoChat {
        /// The user.
        user: UserId,
        /// The addressee of the messages.
        with: ChatWith,
    },
}

/// Addressee of messages: they go to the user's open chat with it, or begin one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatWith {
    /// An agent: the latest chat ([`crate::Store::latest_chat`]).
    Agent(AgentId),
    /// A persona: the main session ([`crate::Store::main_session`]).
    Persona(PersonaId),
    /// A turn: the chat that is at it ([`crate::Store::chat_at`]).
    Turn(TurnId),
}

impl Condition for UserGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::StoredBelow { user, .. } => [Some(Question::StoredBytes(user)), None],
            Self::SessionsOpenedBelow {
                user, after, until, ..
            } => ask(
                "SELECT count(*) FROM sessions WHERE user_id = ?1 AND opened_at > ?2 AND opened_at \
                 <= ?3 AND started_by = 'user:' || ?1",
                [
                    Value::text(user.as_str()),
                    Value::number(after.0),
                    Value::number(until.0),
                ],
            ),
            Self::NotesAtMost { user, agent, .. } => ask(
                "SELECT count(*) FROM recall WHERE agent = ?1 AND user_id = ?2 AND note_id IS NOT \
                 NULL",
                [Value::id(agent), Value::text(user.as_str())],
            ),
            Self::DefinitionsAtMost { user, .. } => ask(
                "SELECT count(*) FROM made_definitions WHERE user_id = ?1",
                [Value::text(user.as_str())],
            ),
            Self::NoChat { user, with } => [Some(Question::Other(chat_query(user, with))), None],
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        Ok(match self {
            Self::StoredBelow { bytes, .. } => {
                let stored = rows.number()?;
                unless(stored < *bytes, || format!("they have {stored} bytes"))
            }
            Self::SessionsOpenedBelow { max, .. } => {
                let opened = rows.number()?;
                unless(opened < *max, || format!("they have opened {opened}"))
            }
            Self::NotesAtMost { max, .. } => {
                let notes = rows.number()?;
                unless(notes <= *max, || format!("there are {notes}"))
            }
            Self::DefinitionsAtMost { max, .. } => {
                let made = rows.number()?;
                unless(made <= *max, || format!("they have {made}"))
            }
            Self::NoChat { .. } => {
                read_chat(rows)?.map(|(_, session)| format!("the chat {session} is there"))
            }
        })
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::StoredBelow { user, .. }
            | Self::SessionsOpenedBelow { user, .. }
            | Self::DefinitionsAtMost { user, .. } => {
                vec![Resource::User(user.clone())]
            }
            Self::NotesAtMost { user, agent, .. } => {
                vec![Resource::User(user.clone()), Resource::Agent(*agent)]
            }
            Self::NoChat { user, with } => {
                let chats = Resource::User(user.clone());
                match with {
                    ChatWith::Agent(_) => vec![chats],
                    ChatWith::Persona(_) => vec![chats, Resource::AgentsOf(user.clone())],
                    ChatWith::Turn(turn) => vec![chats, Resource::TurnsAfter(*turn)],
                }
            }
        }
    }
}
