//! Messages from people outside, and the progress of connectors in reading them.

use super::ReadError;
use super::outbound_messages::SCANNED_MAX;
use crate::event_row::StoredEvent;
use crate::sql::{self, Cells, FromRow, Json, args, named, row, select, text};
use crate::sqlite::texts;
use crate::store::Store;
use domain::connector::{Incoming, ReplyRoute};
use domain::event::{ConnectorReceived, Event, InboundMessage, InboundMessageOutcome, Received};
use domain::id::{ConnectorId, TriggerEventId};
use domain::path::ConnectorName;
use domain::time::Timestamp;
use domain::trouble::ServiceTrouble;
use serde_json::json;
use std::collections::BTreeSet;

/// The progress of a connector. A connector without any event has no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntakeRow {
    /// The connector.
    pub name: ConnectorName,
    /// The cursor at which the next poll continues.
    pub cursor: Option<String>,
    /// Time at which a message on record arrived last.
    pub last_received: Option<Timestamp>,
    /// The trouble that an operator was last notified of, and the time.
    pub trouble: Option<(ServiceTrouble, Timestamp)>,
    /// Version of its stream.
    pub version: u64,
}

/// The words of a message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaidBefore {
    /// The host sent it there.
    Sent(SentBefore),
    /// The host received it from there.
    Arrived(Incoming),
}

/// A message that was sent into a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentBefore {
    /// The text of the whole message of which it is a chunk.
    pub text: String,
    /// True if it is known to depend on content from outside.
    pub untrusted: bool,
}

/// An inbound message with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundMessageRow {
    /// Its id here.
    pub id: TriggerEventId,
    /// The connector.
    pub connector: ConnectorName,
    /// The message, as the service gave it.
    pub message: Incoming,
    /// Time of inbound message.
    pub received: Timestamp,
    /// Its outcome; none while that is not known.
    pub outcome: Option<InboundMessageOutcome>,
    /// Position of the event that has it.
    pub position: u64,
}

row! {
    /// A chat with inbound messages whose outcome is not known.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct OpenChat from "inbound_messages a" {
        /// The connector.
        pub connector: ConnectorName = "a.connector",
        /// The chat, in the service's terms.
        pub chat: String = "a.chat",
        /// Time at which the oldest of them arrived.
        pub first: Timestamp = "a.received",
        /// Their number.
        pub count: u64 =
            "(SELECT count(*) FROM inbound_messages o WHERE o.connector = a.connector AND o.chat = a.chat \
             AND o.outcome IS NULL)",
    }
}

row! {
    /// An inbound message as it is stored. Its content is in the event that has it.
    struct StoredInboundMessage
        from "inbound_messages a CROSS JOIN events e ON e.position = a.position"
    {
        received: StoredEvent as row,
        position: u64 = "a.position",
        outcome: Option<InboundMessageOutcome> as json_opt = "a.outcome",
    }
}

impl Store {
    /// Returns the progress of a connector; none if it has no event yet.
    pub async fn connector(&self, name: &ConnectorName) -> Result<Option<IntakeRow>, ReadError> {
        let name = name.to_string();
        self.point_read(move |sql| {
            let id = ConnectorId::of_name(&name);
            sql.one(select!(IntakeRow, "WHERE c.id = ?1"), [id])
        })
        .await
    }

    /// Returns the inbound messages of a connector whose outcome is not known, in their order, at
    /// most `limit`.
    pub async fn open_inbound_messages(
        &self,
        connector: &ConnectorName,
        limit: usize,
    ) -> Result<Vec<InboundMessageRow>, ReadError> {
        let connector = connector.to_string();
        self.read(move |sql| {
            sql.all_there(
                select!(
                    StoredInboundMessage,
                    "WHERE a.connector = ?1 AND a.outcome IS NULL ORDER BY a.received, a.position \
                     LIMIT ?2"
                ),
                args![connector, limit],
                StoredInboundMessage::read,
            )
        })
        .await
    }

    /// Returns such messages of one chat, in their order, at most `limit`.
    pub async fn open_inbound_messages_in(
        &self,
        chat: &ReplyRoute,
        limit: usize,
    ) -> Result<Vec<InboundMessageRow>, ReadError> {
        let ReplyRoute { connector, chat } = chat.clone();
        self.read(move |sql| {
            sql.all_there(
                select!(
                    StoredInboundMessage,
                    "WHERE a.connector = :connector AND a.chat = :chat AND a.outcome IS NULL ORDER \
                     BY a.received, a.position LIMIT :limit"
                ),
                named![connector, chat, limit],
                StoredInboundMessage::read,
            )
        })
        .await
    }

    /// Returns the number of such messages of a connector.
    pub async fn open_inbound_messages_count(
        &self,
        connector: &ConnectorName,
    ) -> Result<u64, ReadError> {
        let connector = connector.to_string();
        self.point_read(move |sql| {
            sql.number(
                "SELECT count(*) FROM inbound_messages WHERE connector = ?1 AND outcome IS NULL",
                [connector],
            )
        })
        .await
    }

    /// Returns chats with such messages of which the oldest arrived at a time or before, the oldest
    /// first, at most `limit`. Chats of the connectors in `without` are skipped.
    pub async fn open_chats(
        &self,
        received_before: Timestamp,
        limit: usize,
        without: &BTreeSet<ConnectorName>,
    ) -> Result<Vec<OpenChat>, ReadError> {
        let without = json!(without).to_string();
        self.read(move |sql| {
            sql.all(
                select!(
                    OpenChat,
                    "WHERE a.is_first = 1 AND a.received <= :received_before AND a.connector NOT \
                     IN ",
                    texts!(":without"),
                    " ORDER BY a.received LIMIT :limit"
                ),
                named![received_before, limit, without],
            )
        })
        .await
    }

    /// Returns the earliest time after another at which the oldest such message of a chat arrived.
    pub async fn next_open_chat_after(
        &self,
        time: Timestamp,
    ) -> Result<Option<Timestamp>, ReadError> {
        self.point_read(move |sql| {
            sql.one::<Timestamp>(
                "SELECT received FROM inbound_messages WHERE is_first = 1 AND received > ?1 ORDER BY \
                 received LIMIT 1",
                [time],
            )
        })
        .await
    }

    /// Returns an inbound message; none if it does not exist or was erased.
    pub async fn inbound_message(
        &self,
        id: TriggerEventId,
    ) -> Result<Option<InboundMessageRow>, ReadError> {
        self.point_read(move |sql| {
            sql.one_there(
                select!(StoredInboundMessage, "WHERE a.id = ?1"),
                [id],
                StoredInboundMessage::read,
            )
        })
        .await
    }

    /// Returns those of the service's ids under which a message has arrived since a time.
    pub async fn arrived_before(
        &self,
        connector: &ConnectorName,
        messages: &[String],
        since: Timestamp,
    ) -> Result<Vec<String>, ReadError> {
        let connector = connector.to_string();
        let messages = messages.to_vec();
        self.point_read(move |sql| {
            let mut arrived = Vec::new();
            for message in messages {
                let text = "SELECT 1 FROM inbound_messages WHERE connector = :connector AND message = \
                            :message AND received >= :received";
                if sql.exists(text, named![connector, message, received = since])? {
                    arrived.push(message);
                }
            }
            Ok(arrived)
        })
        .await
    }

    /// Returns whether an agent takes part in a chat: a session sent something there, or took an
    /// inbound message from there since a time. The cost grows with the number of inbound messages
    /// since then.
    pub async fn takes_part(&self, chat: &ReplyRoute, since: Timestamp) -> Result<bool, ReadError> {
        let connector = chat.connector.to_string();
        let chat = chat.chat.clone();
        self.point_read(move |sql| {
            let said = "SELECT 1 FROM outbound_messages WHERE connector = ?1 AND chat = ?2 AND session IS \
                        NOT NULL";
            if sql.exists(said, args![connector, chat])? {
                return Ok(true);
            }
            let took = "SELECT 1 FROM inbound_messages WHERE connector = :connector AND received >= \
                        :received AND chat = :chat AND (session IS NOT NULL OR outcome IS NULL)";
            sql.exists(took, named![connector, chat, received = since])
        })
        .await
    }

    /// Returns the content of a message of a chat, by the service's id. The latest sent message
    /// with this id is preferred, among the latest [`SCANNED_MAX`]; otherwise the inbound one.
    pub async fn said_before(
        &self,
        chat: &ReplyRoute,
        id: &str,
    ) -> Result<Option<SaidBefore>, ReadError> {
        let connector = chat.connector.to_string();
        let chat = chat.chat.clone();
        let id = id.to_owned();
        self.read(move |sql| {
            // The content of a turn that is unfinished or deleted may depend on anything.
            let sent = text!(
                "SELECT ",
                StoredEvent::COLUMNS,
                ", d.run IS NOT NULL AND coalesce(t.untrusted, 1) FROM outbound_messages d CROSS JOIN \
                 events e ON e.position = d.position LEFT JOIN runs r ON r.id = d.run LEFT JOIN \
                 turns t ON t.id = r.turn WHERE d.position IN (SELECT position FROM outbound_messages \
                 WHERE connector = :connector AND chat = :chat ORDER BY position DESC LIMIT \
                 :limit) AND :id IN ",
                texts!("d.service_ids"),
                " ORDER BY d.position DESC LIMIT 1"
            );
            let asked = named![connector, chat, id, limit = SCANNED_MAX];
            let sent: Option<(StoredEvent, bool)> = sql.one(sent, asked)?;
            if let Some((StoredEvent(Some(Event::OutboundMessageQueued(queued))), untrusted)) = sent {
                let text = queued.text;
                return Ok(Some(SaidBefore::Sent(SentBefore { text, untrusted })));
            }
            let arrived = select!(
                StoredInboundMessage,
                "WHERE a.connector = :connector AND a.message = :message AND a.chat = :chat ORDER \
                 BY a.received DESC LIMIT 1"
            );
            let asked = named![connector, chat, message = id];
            let found = sql.one_there(arrived, asked, StoredInboundMessage::read)?;
            Ok(found.map(|row| SaidBefore::Arrived(row.message)))
        })
        .await
    }

    /// Returns the chat into which a message was sent, by the service's id: a chat itself, or one
    /// below it. It searches the latest [`SCANNED_MAX`] messages of the connector.
    pub async fn sent_below(
        &self,
        chat: &ReplyRoute,
        id: &str,
    ) -> Result<Option<String>, ReadError> {
        let connector = chat.connector.to_string();
        let chat = chat.chat.clone();
        let id = id.to_owned();
        self.read(move |sql| {
            // The sign after the slash is a zero.
            let text = text!(
                "SELECT d.chat FROM outbound_messages d WHERE d.position IN (SELECT position FROM \
                 outbound_messages WHERE connector = :connector ORDER BY position DESC LIMIT :limit) AND \
                 (d.chat = :chat OR (d.chat > :chat || '/' AND d.chat < :chat || '0')) AND :id IN ",
                texts!("d.service_ids"),
                " ORDER BY d.position DESC LIMIT 1"
            );
            let asked = named![connector, chat, id, limit = SCANNED_MAX];
            sql.one(text, asked)
        })
        .await
    }

    /// Returns the number of connector keys of a connector. The cost grows with that number.
    pub async fn connector_keys_of(&self, connector: &ConnectorName) -> Result<u64, ReadError> {
        let first = format!("{connector}:");
        // The sign after the colon.
        let end = format!("{connector};");
        self.read(move |sql| {
            sql.number(
                "SELECT count(*) FROM connector_keys WHERE key >= ?1 AND key < ?2",
                [first, end],
            )
        })
        .await
    }
}

impl IntakeRow {
    const COLUMNS: &str = "c.name, c.cursor, (SELECT max(a.received) FROM inbound_messages a WHERE \
                           a.connector = c.name) AS last_received, c.trouble, c.troubled_at, \
                           coalesce((SELECT e.version FROM events e WHERE e.stream = (SELECT \
                           st.number FROM streams st WHERE st.stream_kind = 'connector' AND st.stream_id = c.id) \
                           ORDER BY e.version DESC LIMIT 1), 0) AS version";
    const FROM: &str = "connectors c";
}

impl FromRow for IntakeRow {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        Ok(Self {
            name: cells.next("name")?,
            cursor: cells.next("cursor")?,
            last_received: cells.next("last_received")?,
            trouble: cells
                .next::<Option<Json<_>>>("trouble")?
                .map(|trouble| trouble.0)
                .zip(cells.next("troubled_at")?),
            version: cells.next("version")?,
        })
    }
}

impl StoredInboundMessage {
    /// Returns the inbound message; none if it is about to be erased.
    fn read(self) -> sql::Result<Option<InboundMessageRow>> {
        let received = self.received.only(
            |event| match event {
                Event::ConnectorReceived(ConnectorReceived {
                    connector,
                    what: Received::InboundMessage(inbound_message),
                    time,
                }) => Some((connector, *inbound_message, time)),
                _ => None,
            },
            "an inbound message points to another event",
        )?;
        Ok(received.map(|(connector, inbound_message, received)| {
            let InboundMessage { id, message } = inbound_message;
            InboundMessageRow {
                id,
                connector,
                message,
                received,
                outcome: self.outcome,
                position: self.position,
            }
        }))
    }
}
