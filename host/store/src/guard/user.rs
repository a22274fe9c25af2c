//! Guards on a user: how much of the host they take, which chats they have, and how many
//! notes and definitions.

use super::question::{Answers, Question, Questions, ask};
use super::{Condition, Footprint, Resource, unless};
use crate::query::Value;
use crate::read::accounts::{drawn_query, read_drawn};
use crate::read::search::{chat_query, read_chat};
use crate::sql::{self, Columns};
use domain::account::Accounts;
use domain::budget::Amount;
use domain::id::{AgentId, RunId, TurnId};
use domain::key::KeyId;
use domain::path::{ConnectorKey, ConnectorName};
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

/// Condition on the accounts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountGuard {
    /// All accounts of a run can cover the amounts that this commit draws on them, in addition to
    /// all amounts already drawn.
    Covers {
        /// The run.
        run: RunId,
        /// Its accounts.
        accounts: Accounts,
        /// Amount that the run has drawn itself, with the outcomes that this commit records.
        drawn: Amount,
        /// Amount that this commit draws.
        more: Amount,
    },
    /// The message that began everything has led to at most so many runs before this commit.
    RunsAtMost {
        /// The accounts of the work that it began, the message's first.
        accounts: Accounts,
        /// Maximum number of runs.
        max: u64,
    },
}

impl Condition for AccountGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::Covers { accounts, .. } | Self::RunsAtMost { accounts, .. } => {
                [drawn_query(accounts).map(Question::Other), None]
            }
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        Ok(match self {
            Self::Covers {
                run,
                accounts,
                drawn,
                more,
            } => {
                let others = read_drawn(rows, accounts, Some(*run))?.others;
                accounts.shortage(&others, *drawn, *more)
            }
            Self::RunsAtMost { accounts, max } => {
                let begun = read_drawn(rows, accounts, None)?.runs;
                unless(begun <= *max, || format!("{begun} have begun"))
            }
        })
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::Covers { run, accounts, .. } => {
                let addresses = accounts.addresses().into_iter().map(Resource::Account);
                addresses.chain([Resource::Run(*run)]).collect()
            }
            Self::RunsAtMost { accounts, .. } => {
                let first = accounts.addresses().into_iter().next();
                first.map(Resource::Account).into_iter().collect()
            }
        }
    }
}

/// Condition on a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyGuard {
    /// The API key was issued and not revoked.
    NotRevoked(KeyId),
    /// Fewer bytes than this, stored under the API key ([`crate::Store::stored_bytes_with`]), exist
    /// before this commit.
    StoredBelow {
        /// The key.
        key: KeyId,
        /// The limit in bytes.
        bytes: u64,
    },
    /// The connector key is bound to this user; with none, to no user.
    ConnectorKeyOf {
        /// The key.
        key: ConnectorKey,
        /// The user.
        user: Option<UserId>,
    },
    /// The user has at most so many connector keys before this commit.
    ConnectorKeysAtMost {
        /// The user.
        user: UserId,
        /// Maximum number of connector keys.
        max: u64,
    },
    /// The connector knows at most so many users by its keys before this commit.
    KeysOfConnectorAtMost {
        /// The connector.
        connector: ConnectorName,
        /// Maximum number of its keys.
        max: u64,
    },
}

impl Condition for KeyGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::NotRevoked(key) => ask(
                "SELECT 1 FROM api_keys WHERE id = ?1 AND revoked_at IS NULL",
                [Value::text(key.as_str())],
            ),
            Self::StoredBelow { key, .. } => [Some(Question::StoredBytesWith(key)), None],
            Self::ConnectorKeyOf { key, .. } => ask(
                "SELECT user_id FROM connector_keys WHERE key = ?1",
                [Value::id(key)],
            ),
            Self::ConnectorKeysAtMost { user, .. } => ask(
                "SELECT count(*) FROM connector_keys WHERE user_id = ?1",
                [Value::text(user.as_str())],
            ),
            // The semicolon is the sign after the colon.
            Self::KeysOfConnectorAtMost { connector, .. } => ask(
                "SELECT count(*) FROM connector_keys WHERE key >= ?1 || ':' AND key < ?1 || ';'",
                [Value::text(connector.as_str())],
            ),
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        Ok(match self {
            Self::NotRevoked(_) => unless(!rows.is_empty(), || "it was revoked".to_owned()),
            Self::StoredBelow { bytes, .. } => {
                let stored = rows.number()?;
                unless(stored < *bytes, || format!("{stored} bytes came with it"))
            }
            Self::ConnectorKeyOf { user, .. } => {
                let found = rows.first().map(|row| row.text(0)).transpose()?;
                unless(found == user.as_ref().map(UserId::as_str), || {
                    found.map_or("it stands for nobody".to_owned(), |user| {
                        format!("it stands for {user}")
                    })
                })
            }
            Self::ConnectorKeysAtMost { max, .. } => {
                let keys = rows.number()?;
                unless(keys <= *max, || format!("they have {keys}"))
            }
            Self::KeysOfConnectorAtMost { max, .. } => {
                let keys = rows.number()?;
                unless(keys <= *max, || format!("it has {keys}"))
            }
        })
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::NotRevoked(key) | Self::StoredBelow { key, .. } => {
                vec![Resource::ApiKey(key.clone())]
            }
            Self::ConnectorKeyOf { key, .. } => vec![Resource::ConnectorKey(key.clone())],
            Self::ConnectorKeysAtMost { user, .. } => vec![Resource::User(user.clone())],
            Self::KeysOfConnectorAtMost { connector, .. } => {
                vec![Resource::KeysOfConnector(connector.clone())]
            }
        }
    }
}
