//! Messages that arrived from people outside, and how far connectors have come.

use super::ReadError;
use super::deliveries::LOOKED_THROUGH_MAX;
use crate::event_row::decode_at;
use crate::sql::{Columns, Sql, int, limit as rows, unreadable};
use crate::store::Store;
use domain::connector::{Incoming, ReplyRoute};
use domain::event::{ArrivalOutcome, ConnectorReceived, Event};
use domain::id::OccasionId;
use domain::path::ConnectorName;
use domain::time::Timestamp;
use domain::trouble::ServiceTrouble;
use rusqlite::{Row, params};

/// The progress of a connector. One that nothing happened to has no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntakeRow {
    /// The connector.
    pub name: ConnectorName,
    /// The cursor at which the next poll goes on.
    pub cursor: Option<String>,
    /// Time at which a message on record arrived last.
    pub last_received: Option<Timestamp>,
    /// The trouble that an operator was told of last, and the time.
    pub trouble: Option<(ServiceTrouble, Timestamp)>,
    /// Version of its stream.
    pub version: u64,
}

/// The words of a message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaidBefore {
    /// It was sent there.
    Sent(SentBefore),
    /// It arrived from there.
    Arrived(Incoming),
}

/// A message that was sent into a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentBefore {
    /// The text of the whole of which it is a piece.
    pub text: String,
    /// True if it rests on content from outside, as far as anybody knows.
    pub untrusted: bool,
}

/// A message that arrived, with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalRow {
    /// Its id here.
    pub id: OccasionId,
    /// The connector.
    pub connector: ConnectorName,
    /// The message, as the service gave it.
    pub message: Incoming,
    /// Time of arrival.
    pub received: Timestamp,
    /// Its outcome; none while that is not known.
    pub outcome: Option<ArrivalOutcome>,
    /// Position of the event that has it.
    pub position: u64,
}

/// A chat with messages that arrived and of which it is not known what became of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenChat {
    /// The connector.
    pub connector: ConnectorName,
    /// The chat, in the service's terms.
    pub chat: String,
    /// Time at which the oldest of them arrived.
    pub first: Timestamp,
    /// Their number.
    pub count: u64,
}

/// An arrival without its content.
struct Place {
    id: OccasionId,
    position: u64,
    outcome: Option<ArrivalOutcome>,
}

impl Store {
    /// Returns how far a connector has come; none when nothing happened to it yet.
    pub async fn connector(&self, name: &ConnectorName) -> Result<Option<IntakeRow>, ReadError> {
        let name = name.to_string();
        self.point_read(move |sql| {
            sql.row(
                "SELECT c.name, c.cursor, (SELECT max(a.received) FROM arrivals a WHERE \
                 a.connector = c.name), c.trouble, c.troubled_at, coalesce((SELECT e.version FROM \
                 events e WHERE e.stream = 'connector/' || c.id ORDER BY e.version DESC LIMIT 1), \
                 0) FROM connectors c WHERE c.id = ?1",
                [domain::id::ConnectorId::of_name(&name).to_string()],
                read_intake,
            )
        })
        .await
    }

    /// Returns messages that arrived through a connector and of which it is not known what became
    /// of them, in their order, at most `limit`.
    pub async fn open_arrivals(
        &self,
        connector: &ConnectorName,
        limit: usize,
    ) -> Result<Vec<ArrivalRow>, ReadError> {
        let connector = connector.to_string();
        self.read(move |sql| {
            let places = sql.rows(
                "SELECT id, position, outcome FROM arrivals WHERE connector = ?1 AND outcome IS \
                 NULL ORDER BY received, position, place LIMIT ?2",
                params![connector, rows(limit)],
                read_place,
            )?;
            with_content(sql, places)
        })
        .await
    }

    /// Returns such messages of one chat, in their order, at most `limit`.
    pub async fn open_arrivals_in(
        &self,
        chat: &ReplyRoute,
        limit: usize,
    ) -> Result<Vec<ArrivalRow>, ReadError> {
        let ReplyRoute { connector, chat } = chat.clone();
        self.read(move |sql| {
            let places = sql.rows(
                "SELECT id, position, outcome FROM arrivals WHERE connector = ?1 AND chat = ?2 AND \
                 outcome IS NULL ORDER BY received, position, place LIMIT ?3",
                params![connector.as_str(), chat, rows(limit)],
                read_place,
            )?;
            with_content(sql, places)
        })
        .await
    }

    /// Returns the number of such messages of a connector.
    pub async fn open_arrivals_count(&self, connector: &ConnectorName) -> Result<u64, ReadError> {
        let connector = connector.to_string();
        self.point_read(move |sql| {
            sql.number(
                "SELECT count(*) FROM arrivals WHERE connector = ?1 AND outcome IS NULL",
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
            sql.rows(
                "SELECT a.connector, a.chat, a.received, (SELECT count(*) FROM arrivals o WHERE \
                 o.connector = a.connector AND o.chat = a.chat AND o.outcome IS NULL) FROM \
                 arrivals a WHERE a.is_first = 1 AND a.received <= ?1 ORDER BY a.received LIMIT ?2",
                params![int(received_before.0), rows(limit)],
                |row| {
                    Ok(OpenChat {
                        connector: row.id(0)?,
                        chat: row.get(1)?,
                        first: Timestamp(row.uint(2)?),
                        count: row.uint(3)?,
                    })
                },
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
            sql.row(
                "SELECT received FROM arrivals WHERE is_first = 1 AND received > ?1 ORDER BY \
                 received LIMIT 1",
                [int(time.0)],
                |row| Ok(Timestamp(row.uint(0)?)),
            )
        })
        .await
    }

    /// Returns a message that arrived; none when there is none, or it was erased.
    pub async fn arrival(&self, id: OccasionId) -> Result<Option<ArrivalRow>, ReadError> {
        self.read(move |sql| {
            let places = sql.rows(
                "SELECT id, position, outcome FROM arrivals WHERE id = ?1",
                [id.to_string()],
                read_place,
            )?;
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
                let text = "SELECT 1 FROM arrivals WHERE connector = ?1 AND message = ?2 AND \
                            received >= ?3";
                if sql.exists(text, params![connector, message, int(since.0)])? {
                    arrived.push(message);
                }
            }
            Ok(arrived)
        })
        .await
    }

    /// Returns whether an agent takes part in a chat: something was said there for a session, or a
    /// session took what arrived there since a time. The time grows with what arrived since then.
    pub async fn takes_part(&self, chat: &ReplyRoute, since: Timestamp) -> Result<bool, ReadError> {
        let connector = chat.connector.to_string();
        let chat = chat.chat.clone();
        self.point_read(move |sql| {
            let said = "SELECT 1 FROM deliveries WHERE connector = ?1 AND chat = ?2 AND session IS \
                        NOT NULL";
            if sql.exists(said, params![connector, chat])? {
                return Ok(true);
            }
            let took = "SELECT 1 FROM arrivals WHERE connector = ?1 AND received >= ?3 AND chat = \
                        ?2 AND (session IS NOT NULL OR outcome IS NULL)";
            sql.exists(took, params![connector, chat, int(since.0)])
        })
        .await
    }

    /// Returns what a message of a chat said, by the service's id of it: the latest that was sent
    /// under it, among the latest [`LOOKED_THROUGH_MAX`], or else that arrived.
    pub async fn said_before(
        &self,
        chat: &ReplyRoute,
        id: &str,
    ) -> Result<Option<SaidBefore>, ReadError> {
        let connector = chat.connector.to_string();
        let chat = chat.chat.clone();
        let id = id.to_owned();
        self.read(move |sql| {
            // What a turn says that is not over, or is gone, may rest on anything.
            let sent = "SELECT e.kind, e.payload, d.run IS NOT NULL AND coalesce(t.untrusted, 1) \
                        FROM deliveries d CROSS JOIN events e ON e.position = d.position LEFT JOIN \
                        runs r ON r.id = d.run LEFT JOIN turns t ON t.id = r.turn WHERE d.position \
                        IN (SELECT position FROM deliveries WHERE connector = ?1 AND chat = ?2 \
                        ORDER BY position DESC LIMIT ?4) AND EXISTS (SELECT 1 FROM \
                        json_each(d.service_ids) WHERE value = ?3) ORDER BY d.position DESC LIMIT 1";
            let asked = params![connector, chat, id, rows(LOOKED_THROUGH_MAX)];
            let sent = sql.row(sent, asked, |row| Ok((decode_at(row, 0)?, row.get(2)?)))?;
            if let Some((Some(Event::DeliveryQueued(queued)), untrusted)) = sent {
                let text = queued.text;
                return Ok(Some(SaidBefore::Sent(SentBefore { text, untrusted })));
            }
            let arrived = "SELECT id, position, outcome FROM arrivals WHERE connector = ?1 AND \
                           message = ?3 AND chat = ?2 ORDER BY received DESC LIMIT 1";
            let places = sql.rows(arrived, params![connector, chat, id], read_place)?;
            let found = with_content(sql, places)?;
            let message = found.into_iter().next().map(|row| row.message);
            Ok(message.map(SaidBefore::Arrived))
        })
        .await
    }

    /// Returns the chat into which a message was sent, by the service's id of it: a chat itself, or
    /// one below it. It looks among the latest [`LOOKED_THROUGH_MAX`] of the connector.
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
            let text = "SELECT d.chat FROM deliveries d WHERE d.position IN (SELECT position FROM \
                        deliveries WHERE connector = ?1 ORDER BY position DESC LIMIT ?4) AND \
                        (d.chat = ?2 OR (d.chat > ?2 || '/' AND d.chat < ?2 || '0')) AND EXISTS \
                        (SELECT 1 FROM json_each(d.service_ids) WHERE value = ?3) ORDER BY \
                        d.position DESC LIMIT 1";
            let asked = params![connector, chat, id, rows(LOOKED_THROUGH_MAX)];
            sql.row(text, asked, |row| row.get(0))
        })
        .await
    }

    /// Returns the number of connector keys of a connector. The time grows with it.
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

fn read_intake(row: &Row<'_>) -> rusqlite::Result<IntakeRow> {
    let troubled_at = row.uint_opt(4)?.map(Timestamp);
    Ok(IntakeRow {
        name: row.id(0)?,
        cursor: row.get(1)?,
        last_received: row.uint_opt(2)?.map(Timestamp),
        trouble: row.json_opt(3)?.zip(troubled_at),
        version: row.uint(5)?,
    })
}

fn read_place(row: &Row<'_>) -> rusqlite::Result<Place> {
    Ok(Place {
        id: row.id(0)?,
        position: row.uint(1)?,
        outcome: row.json_opt(2)?,
    })
}

/// Reads what arrivals say. Those that came in one event follow each other, so that it is read
/// once. Those that are about to be erased are left out.
fn with_content(sql: &Sql<'_>, places: Vec<Place>) -> rusqlite::Result<Vec<ArrivalRow>> {
    let mut event: Option<(u64, Option<ConnectorReceived>)> = None;
    let mut all = Vec::with_capacity(places.len());
    for place in places {
        if event.as_ref().is_none_or(|(at, _)| *at != place.position) {
            event = Some((place.position, received_at(sql, place.position)?));
        }
        let Some((_, Some(received))) = &event else {
            continue;
        };
        let Some(arrival) = received.arrivals.iter().find(|it| it.id == place.id) else {
            continue;
        };
        all.push(ArrivalRow {
            id: place.id,
            connector: received.connector.clone(),
            message: arrival.message.clone(),
            received: received.time,
            outcome: place.outcome,
            position: place.position,
        });
    }
    Ok(all)
}

/// Reads the event with which messages arrived; none when it was erased.
pub(crate) fn received_at(
    sql: &Sql<'_>,
    position: u64,
) -> rusqlite::Result<Option<ConnectorReceived>> {
    let text = "SELECT kind, payload FROM events WHERE position = ?1";
    let event = sql.row(text, [int(position)], |row| decode_at(row, 0))?;
    match event.flatten() {
        Some(Event::ConnectorReceived(received)) => Ok(Some(received)),
        None => Ok(None),
        Some(_) => Err(unreadable(1, "an arrival points to another event")),
    }
}
