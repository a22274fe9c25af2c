//! Messages from people outside, and the progress of connectors in reading them.

use super::ReadError;
use super::outbound_messages::SCANNED_MAX;
use crate::event_row::{StoredEvent, event};
use crate::sql::{self, Cells, FromRow, Json, Sql, args, named, row, select, text, unreadable};
use crate::sqlite::texts;
use crate::store::Store;
use domain::connector::{Incoming, ReplyRoute};
use domain::event::{ConnectorReceived, Event, InboundMessageOutcome};
use domain::id::{ConnectorId, TriggerEventId};
use domain::path::ConnectorName;
use domain::time::Timestamp;
use domain::trouble::ServiceTrouble;

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
    /// An inbound message without its content.
    struct Place from "inbound_messages" {
        id: TriggerEventId,
        position: u64,
        outcome: Option<InboundMessageOutcome> as json_opt,
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
            let places = sql.all(
                select!(
                    Place,
                    "WHERE connector = ?1 AND outcome IS NULL ORDER BY received, position, place \
                     LIMIT ?2"
                ),
                args![connector, limit],
            )?;
            with_content(sql, places)
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
            let places = sql.all(
                select!(
                    Place,
                    "WHERE connector = :connector AND chat = :chat AND outcome IS NULL ORDER BY \
                     received, position, place LIMIT :limit"
                ),
                named![connector, chat, limit],
            )?;
            with_content(sql, places)
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
    /// first, at most `limit`.
    pub async fn open_chats(
        &self,
        received_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<OpenChat>, ReadError> {
        self.read(move |sql| {
            sql.all(
                select!(
                    OpenChat,
                    "WHERE a.is_first = 1 AND a.received <= ?1 ORDER BY a.received LIMIT ?2"
                ),
                args![received_before, limit],
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
        self.read(move |sql| {
            let places = sql.all(select!(Place, "WHERE id = ?1"), [id])?;
            Ok(with_content(sql, places)?.pop())
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
                Place,
                "WHERE connector = :connector AND message = :message AND chat = :chat ORDER BY \
                 received DESC LIMIT 1"
            );
            let places = sql.all(arrived, named![connector, chat, message = id])?;
            let found = with_content(sql, places)?;
            let message = found.into_iter().next().map(|row| row.message);
            Ok(message.map(SaidBefore::Arrived))
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

/// Reads the content of inbound messages. Messages of the same event are adjacent, so each event is
/// read once. Messages that are about to be erased are left out.
fn with_content(sql: &Sql<'_>, places: Vec<Place>) -> sql::Result<Vec<InboundMessageRow>> {
    let mut event: Option<(u64, Option<ConnectorReceived>)> = None;
    let mut all = Vec::with_capacity(places.len());
    for place in places {
        if event.as_ref().is_none_or(|(at, _)| *at != place.position) {
            event = Some((place.position, received_at(sql, place.position)?));
        }
        let Some((_, Some(received))) = &event else {
            continue;
        };
        let Some(inbound_message) = received
            .inbound_messages
            .iter()
            .find(|it| it.id == place.id)
        else {
            continue;
        };
        all.push(InboundMessageRow {
            id: place.id,
            connector: received.connector.clone(),
            message: inbound_message.message.clone(),
            received: received.time,
            outcome: place.outcome,
            position: place.position,
        });
    }
    Ok(all)
}

/// Reads the event with which messages arrived; none when it was erased.
pub(crate) fn received_at(sql: &Sql<'_>, position: u64) -> sql::Result<Option<ConnectorReceived>> {
    let text = "SELECT kind, payload FROM events WHERE position = ?1";
    match event(sql, text, [position])? {
        Some(Event::ConnectorReceived(received)) => Ok(Some(received)),
        None => Ok(None),
        Some(_) => Err(unreadable(
            "kind",
            "an inbound message points to another event",
        )),
    }
}
