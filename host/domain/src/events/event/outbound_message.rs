//! Payloads of a connector's stream: inbound messages, outbound messages, and the fate of both.

use crate::access::user::UserId;
use crate::agents::path::{ConnectorKey, ConnectorName};
use crate::values::digest::Digest;
use crate::values::id::{
    AgentId, InputId, OperationId, OutboundMessageId, RunId, SessionId, TriggerEventId,
};
use crate::values::time::Timestamp;
use crate::work::connector::{Choice, Incoming, Outbound};
use crate::work::trouble::ServiceTrouble;
use serde::{Deserialize, Serialize};

/// Characters of a lost chunk's id digest. They give the next attempt a different id.
const LOST_CHARS: usize = 16;

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundMessage {
    /// Its id here.
    pub id: TriggerEventId,
    /// The message, as the service sent it.
    pub message: Incoming,
}

/// See [`super::Event::ConnectorReceived`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectorReceived {
    /// The connector.
    pub connector: ConnectorName,
    /// A message, or where the next poll continues.
    #[serde(flatten)]
    pub what: Received,
    /// Time at which it was received.
    pub time: Timestamp,
}

/// One thing that a connector received. Each has an event of its own, so that a message can be
/// erased without the others and without the cursor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Received {
    /// A new message.
    InboundMessage(Box<InboundMessage>),
    /// The cursor at which the next poll continues.
    Cursor(String),
}

/// The outcome of an inbound message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum InboundMessageOutcome {
    /// A session took it.
    Accepted {
        /// The user that the sender is.
        user: UserId,
        /// The input.
        input: InputId,
        /// The session.
        session: SessionId,
        /// Its agent.
        agent: AgentId,
    },
    /// It answered a question.
    Answered {
        /// The user that the sender is.
        user: UserId,
        /// The question.
        operation: OperationId,
    },
    /// It was a directive to the queue, which was applied: it became no input.
    Configured {
        /// The user that the sender is.
        user: UserId,
        /// The session.
        session: SessionId,
    },
    /// The sender is unknown to this host.
    Ignored,
    /// The sender is unknown to this host, and was informed.
    Unknown,
    /// The sender is unknown to this host, and received a pairing code.
    Paired,
    /// It was refused for good.
    Refused {
        /// The reason.
        reason: String,
    },
}

/// See [`super::Event::InboundMessagesSettled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundMessagesSettled {
    /// The connector.
    pub connector: ConnectorName,
    /// The inbound messages.
    pub inbound_messages: Vec<TriggerEventId>,
    /// The outcome of all of them.
    pub outcome: InboundMessageOutcome,
    /// Time of the outcome.
    pub time: Timestamp,
}

/// See [`super::Event::PairingOffered`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingOffered {
    /// The sender, in the service's terms.
    pub key: ConnectorKey,
    /// The sender's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The chat that received the code.
    pub chat: String,
    /// The code.
    pub code: String,
    /// Time until which it is valid.
    pub expires: Timestamp,
    /// Time of the offer.
    pub time: Timestamp,
}

/// See [`super::Event::PairingSettled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingSettled {
    /// The sender, in the service's terms.
    pub key: ConnectorKey,
    /// The user assigned to the sender; none if it was declined or expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Time at which it was settled.
    pub time: Timestamp,
}

/// The cause of a message to people outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OutboundMessageCause {
    /// A turn's reply.
    Turn {
        /// The session.
        session: SessionId,
        /// The run that became the turn.
        run: RunId,
    },
    /// A question to the user.
    Question {
        /// The session.
        session: SessionId,
        /// The run that asks.
        run: RunId,
        /// The question: the id for its answer.
        operation: OperationId,
    },
    /// A message that no turn processed.
    Input {
        /// The session.
        session: SessionId,
        /// The input that was set aside.
        input: InputId,
    },
    /// The host's own text to a sender who is unknown, or whose message was refused.
    Host {
        /// The inbound message that it answers.
        inbound_message: TriggerEventId,
    },
    /// An operator's test.
    Test {
        /// The operator.
        user: UserId,
    },
}

/// See [`super::Event::OutboundMessageQueued`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundMessageQueued {
    /// The connector.
    pub connector: ConnectorName,
    /// The message.
    pub outbound_message: OutboundMessageId,
    /// The chat, in the service's terms.
    pub chat: String,
    /// The text, in Markdown. For a question, it is the question.
    pub text: String,
    /// The choices of a question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The text of a question for services without buttons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_buttons: Option<String>,
    /// The cause.
    pub cause: OutboundMessageCause,
    /// Time at which it was queued.
    pub time: Timestamp,
}

impl OutboundMessageQueued {
    /// Returns the message, whole.
    #[must_use]
    pub fn outbound(&self) -> Outbound {
        Outbound {
            text: self.text.clone(),
            choices: self.choices.clone(),
            without_buttons: self.without_buttons.clone(),
        }
    }
}

impl OutboundMessageId {
    /// The idempotency key of one part of a message, counted from 0: the same for every attempt.
    #[must_use]
    pub fn chunk_key(self, chunk: u32) -> String {
        format!("{}-{chunk}", self.idempotency_key())
    }

    /// The idempotency key of a chunk that is sent once more, because the service lost the one that
    /// it accepted under an id.
    #[must_use]
    pub fn chunk_key_after(self, chunk: u32, lost: &str) -> String {
        let lost = Digest::of(lost.as_bytes()).hex();
        let lost = lost.get(..LOST_CHARS).unwrap_or(&lost);
        format!("{}-{lost}", self.chunk_key(chunk))
    }
}

/// See [`super::Event::OutboundMessageStarted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundMessageStarted {
    /// The connector.
    pub connector: ConnectorName,
    /// The message.
    pub outbound_message: OutboundMessageId,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Number of the chunk that is about to be sent, from 0, if the text was split.
    pub chunk: u32,
    /// The service's id of the message that the chunk is added to by an edit; none if it is a
    /// separate message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<String>,
    /// Time immediately before it is sent.
    pub time: Timestamp,
}

/// The outcome of an attempt to deliver a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OutboundMessageOutcome {
    /// The service accepted it, with one service id for each chunk.
    Delivered {
        /// The ids.
        service_ids: Vec<String>,
    },
    /// A chunk of it was accepted; further chunks follow.
    Chunk {
        /// The service's id of the message.
        service_id: String,
    },
    /// It was not accepted, and is tried again.
    Failed {
        /// The reason.
        reason: String,
        /// Time of the next attempt.
        retry_at: Timestamp,
    },
    /// It is unknown whether it was accepted. It is not sent again.
    Unknown {
        /// The reason.
        reason: String,
    },
    /// A chunk that the service accepted was not delivered after all. The other chunks are sent as
    /// before. The message is given up when all chunks are done.
    Undelivered {
        /// Number of the chunk, from 0.
        chunk: u32,
        /// The reason.
        reason: String,
    },
    /// It is given up.
    Dead {
        /// The reason.
        reason: String,
    },
}

/// See [`super::Event::OutboundMessageSettled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundMessageSettled {
    /// The connector.
    pub connector: ConnectorName,
    /// The message.
    pub outbound_message: OutboundMessageId,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: OutboundMessageOutcome,
    /// The service's id of the message that another attempt edits, as this one did; none if another
    /// attempt is a separate message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<String>,
    /// Time of the outcome.
    pub time: Timestamp,
}

/// See [`super::Event::OutboundMessageRequeued`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundMessageRequeued {
    /// The connector.
    pub connector: ConnectorName,
    /// The message.
    pub outbound_message: OutboundMessageId,
    /// The user who requeued it.
    pub by: UserId,
    /// The service's id of the message that the next attempt edits, as the last one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<String>,
    /// Time of the attempt.
    pub time: Timestamp,
}

/// See [`super::Event::ConnectorTroubled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorTroubled {
    /// The connector.
    pub connector: ConnectorName,
    /// The trouble.
    pub trouble: ServiceTrouble,
    /// Time at which it was noticed.
    pub time: Timestamp,
}
