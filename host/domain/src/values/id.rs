//! All ids, with a separate type for each, so that they cannot be confused.

use crate::values::digest::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;
use uuid::Uuid;

/// Text that is not an id of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct NotAnId {
    /// The text that was given.
    pub text: String,
    /// The expected form of the id.
    pub expected: &'static str,
}

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize, ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = String, format = "uuid")]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0.hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                Uuid::try_parse(text).map(Self).map_err(|_| NotAnId { text: text.to_owned(), expected: "a UUID" })
            }
        }
    )*};
}

macro_rules! digest_ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize, ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = String, pattern = "^[0-9a-fA-F]{64}$")]
        pub struct $name(pub Digest);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0.hex())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0.hex())
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                Digest::from_hex(text).map(Self).ok_or_else(|| NotAnId { text: text.to_owned(), expected: "64 hexadecimal digits" })
            }
        }
    )*};
}

uuid_ids! {
    /// An agent: a UUIDv4 and an event stream, made from a definition.
    AgentId
    /// A session: a label on the head of a tree of turns. A UUIDv4.
    SessionId
    /// A conversation: shared by a session and its forks. A UUIDv4.
    ConversationId
    /// A run: a turn in progress. A UUIDv7, known from its start.
    RunId
    /// One accepted input: a row of the ingress. A UUIDv7.
    InputId
    /// One event. A UUIDv7.
    EventId
    /// A note of an agent's memory: half of a hash of its origin, so that repeating the same step
    /// makes the same note.
    NoteId
    /// A trigger: half of a hash of its name, so that a trigger of the same name continues the same
    /// history.
    TriggerId
    /// A connector: half of a hash of its name.
    ConnectorId
    /// An event of a trigger, or an inbound message of a connector. A UUIDv7.
    TriggerEventId
    /// An account (`work/account.rs`): the id of the run that a message began, or of the input
    /// that handed work over.
    AccountId
}

digest_ids! {
    /// A turn: the hash of its parent and of its content. Exists from the commit on.
    TurnId
    /// An operation: `hash(run, step, key)`, minted by the host, the same for every attempt.
    OperationId
    /// A message to people outside: `hash(connector, chat, cause, number)`, the same for every
    /// attempt.
    OutboundMessageId
}

impl TriggerId {
    /// The id of the trigger with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        Self(half_of(Digest::of_parts(&[b"trigger", name.as_bytes()])))
    }
}

impl ConnectorId {
    /// The id of the connector with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        Self(half_of(Digest::of_parts(&[b"connector", name.as_bytes()])))
    }
}

impl OutboundMessageId {
    /// The id of a message through a connector into a chat. It is derived from its cause (a run, an
    /// operation, an inbound message) and its number among the messages of that cause.
    #[must_use]
    pub fn mint(connector: ConnectorId, chat: &str, cause: &str, number: u32) -> Self {
        Self(Digest::of_parts(&[
            b"outbound_message",
            connector.0.as_bytes(),
            chat.as_bytes(),
            cause.as_bytes(),
            &number.to_be_bytes(),
        ]))
    }

    /// The idempotency key for services that accept one: the same for every attempt.
    #[must_use]
    pub fn idempotency_key(self) -> String {
        self.0.short()
    }
}

impl OperationId {
    /// The id of the operation that a run's step starts under `key`.
    #[must_use]
    pub fn mint(run: RunId, step: u32, key: &str) -> Self {
        Self(Digest::of_parts(&[
            b"operation",
            run.0.as_bytes(),
            &step.to_be_bytes(),
            key.as_bytes(),
        ]))
    }

    /// The id for the answer to a segment's question. The first question has the operation's own
    /// id, and each later one another id, so that a repeated answer never answers the next
    /// question.
    #[must_use]
    pub fn question(self, segment: u32) -> Self {
        if segment <= 1 {
            self
        } else {
            Self(Digest::of_parts(&[
                b"question",
                &self.0.0,
                &segment.to_be_bytes(),
            ]))
        }
    }

    /// The id for the answer to the host's own question whether it may be performed. Such an answer
    /// can never count for a later question of the call.
    #[must_use]
    pub fn approval(self) -> Self {
        Self(Digest::of_parts(&[b"approval", &self.0.0]))
    }

    /// The id of a call by a command line, counted from 0. No guest's key leads to the same id.
    #[must_use]
    pub fn call(self, number: u32) -> Self {
        Self(Digest::of_parts(&[
            b"call",
            &self.0.0,
            &number.to_be_bytes(),
        ]))
    }

    /// Returns the idempotency key for peers that support one. Each segment of a call has its own.
    #[must_use]
    pub fn idempotency_key(self, segment: u32) -> String {
        format!("{}-{segment}", self.0.short())
    }
}

impl NoteId {
    /// The id of the note that an operation saves.
    #[must_use]
    pub fn of_operation(operation: OperationId) -> Self {
        Self(half_of(Digest::of_parts(&[b"note", &operation.0.0])))
    }

    /// The id of a note that was stored without one, by the position of its event.
    #[must_use]
    pub fn of_position(agent: AgentId, position: u64) -> Self {
        Self(half_of(Digest::of_parts(&[
            b"note at",
            agent.0.as_bytes(),
            &position.to_be_bytes(),
        ])))
    }
}

fn half_of(digest: Digest) -> Uuid {
    Uuid::from_bytes(digest.0.first_chunk::<16>().copied().unwrap_or_default())
}

/// A stream of events: the unit of ordering and of expected versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Facts of an agent: lifecycle, preferences, milestones of structured sessions. No
    /// transcripts.
    Agent(AgentId),
    /// A session: its inputs, its head, its revision.
    Session(SessionId),
    /// A run: news, decisions, operations. The only hot stream, and the fence of its run.
    Run(RunId),
    /// A trigger: its definition, its trigger events, and their outcomes.
    Trigger(TriggerId),
    /// A connector: inbound messages, outbound messages, and the fate of both.
    Connector(ConnectorId),
    /// The host itself: its components and their grants, and its users' keys.
    Host,
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(id) => write!(f, "agent/{id}"),
            Self::Session(id) => write!(f, "session/{id}"),
            Self::Run(id) => write!(f, "run/{id}"),
            Self::Trigger(id) => write!(f, "trigger/{id}"),
            Self::Connector(id) => write!(f, "connector/{id}"),
            Self::Host => f.write_str("host"),
        }
    }
}

impl FromStr for Stream {
    type Err = NotAnId;
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        if text == "host" {
            return Ok(Self::Host);
        }
        let expected = "a stream: `agent/<id>`, `session/<id>`, `run/<id>`, `trigger/<id>`, \
                        `connector/<id>` or `host`";
        let no = || NotAnId {
            text: text.to_owned(),
            expected,
        };
        let (kind, id) = text.split_once('/').ok_or_else(no)?;
        match kind {
            "agent" => Ok(Self::Agent(id.parse().map_err(|_| no())?)),
            "session" => Ok(Self::Session(id.parse().map_err(|_| no())?)),
            "run" => Ok(Self::Run(id.parse().map_err(|_| no())?)),
            "trigger" => Ok(Self::Trigger(id.parse().map_err(|_| no())?)),
            "connector" => Ok(Self::Connector(id.parse().map_err(|_| no())?)),
            _ => Err(no()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_the_same_id_whenever_it_is_minted() {
        let run = RunId(Uuid::from_u128(7));
        assert_eq!(
            OperationId::mint(run, 1, "a"),
            OperationId::mint(run, 1, "a")
        );
        assert_ne!(
            OperationId::mint(run, 1, "a"),
            OperationId::mint(run, 2, "a")
        );
        assert_ne!(
            OperationId::mint(run, 1, "a"),
            OperationId::mint(run, 1, "b")
        );
    }

    #[test]
    fn notes_of_different_operations_and_events_have_different_ids() {
        let run = RunId(Uuid::from_u128(7));
        let of = |key| NoteId::of_operation(OperationId::mint(run, 1, key));
        assert_eq!(of("a"), of("a"));
        assert_ne!(of("a"), of("b"));
        let agent = AgentId(Uuid::from_u128(1));
        let at = |position| NoteId::of_position(agent, position);
        assert_ne!(at(1), at(2));
        assert_eq!(at(1).to_string().parse::<NoteId>().unwrap(), at(1));
    }

    #[test]
    fn a_stream_reads_what_it_writes() {
        for stream in [
            Stream::Agent(AgentId(Uuid::from_u128(1))),
            Stream::Run(RunId(Uuid::from_u128(2))),
            Stream::Trigger(TriggerId::of_name("morning")),
            Stream::Connector(ConnectorId::of_name("telegram")),
        ] {
            assert_eq!(stream.to_string().parse::<Stream>().unwrap(), stream);
        }
        assert!("turn/1".parse::<Stream>().is_err());
    }
}
