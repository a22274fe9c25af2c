//! The outbox to people outside, and where the replies of a session go.

use super::ReadError;
use crate::event_row::{StoredEvent, event};
use crate::projections::outbound_messages::{TakenChunk, first_missing};
use crate::sql::{self, Json, args, int, named, row, select, stored_as_word};
use crate::sqlite::texts;
use crate::store::Store;
use domain::connector::{CHAT_OUTBOUND_MESSAGES_MAX, Choice, OUTBOUND_MESSAGES_MAX, ReplyRoute};
use domain::event::{Event, OutboundMessageCause};
use domain::id::{OutboundMessageId, RunId};
use domain::path::ConnectorName;
use domain::time::Timestamp;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::str::FromStr;

/// Maximum number of outbound messages that are searched for an id of their service.
pub(super) const SCANNED_MAX: usize = 10_000;

/// The state of a message to people outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutboundMessageState {
    /// It, or its next chunk, waits to be sent.
    Queued,
    /// Sending has started. After a crash it is not known whether it was sent.
    Started,
    /// An attempt failed, and another will follow.
    Failed,
    /// The service took it.
    Delivered,
    /// It is unknown whether the service accepted it.
    Unknown,
    /// The host gave up sending it.
    Dead,
}

domain::words!(OutboundMessageState {
    Queued = "queued",
    Started = "started",
    Failed = "failed",
    Delivered = "delivered",
    Unknown = "unknown",
    Dead = "dead",
});

impl OutboundMessageState {
    /// Returns whether it still has to be sent.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Started | Self::Failed)
    }
}

stored_as_word!(OutboundMessageState);

impl FromStr for OutboundMessageState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_word(text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is no state of an outbound message; there are {known}")
        })
    }
}

/// A message to people outside, with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundMessageRow {
    /// Its id.
    pub outbound_message: OutboundMessageId,
    /// The connector.
    pub connector: ConnectorName,
    /// The chat, in the service's terms.
    pub chat: String,
    /// Its text, in Markdown; of a question, the question.
    pub text: String,
    /// The choices of a question.
    pub choices: Vec<Choice>,
    /// The text of a question where its choices cannot be buttons.
    pub without_buttons: Option<String>,
    /// Its cause.
    pub cause: OutboundMessageCause,
    /// Its state.
    pub state: OutboundMessageState,
    /// Number of the latest attempt at the present chunk; 0 before the first.
    pub attempts: u32,
    /// Number of the present chunk, from 0: the first chunk that had not been delivered at the last
    /// check.
    pub chunk: u32,
    /// Time of the next attempt at the earliest.
    pub next_try: Timestamp,
    /// The service's ids of the chunks that were taken.
    pub service_ids: Vec<String>,
    /// Numbers of those of them that did not arrive after all.
    pub lost: BTreeSet<u32>,
    /// The reason of its latest failure.
    pub reason: Option<String>,
    /// Time at which it was queued.
    pub queued: Timestamp,
    /// Time of its latest change.
    pub updated: Timestamp,
    /// Position of the event that queued it: the order within its chat.
    pub position: u64,
}

/// A part of a message, identified by the service's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkUnderId {
    /// The service's id.
    pub service_id: String,
    /// The message.
    pub outbound_message: OutboundMessageId,
    /// Number of the chunk, from 0.
    pub chunk: u32,
}

impl OutboundMessageRow {
    /// Returns the number of the first chunk from this one on that has not arrived.
    #[must_use]
    pub fn missing_from(&self, chunk: u32) -> u32 {
        first_missing(self.lost.iter().copied(), self.service_ids.len(), chunk)
    }

    /// Returns the service's id of a chunk that did not arrive; none of any other.
    #[must_use]
    pub fn lost_id(&self, chunk: u32) -> Option<&str> {
        let place = usize::try_from(chunk).ok()?;
        let id = self.service_ids.get(place)?;
        self.lost.contains(&chunk).then_some(id)
    }

    /// Notes that the service took a chunk.
    pub fn take(&mut self, chunk: u32, service_id: String) {
        self.lost.remove(&chunk);
        match usize::try_from(chunk).map(|place| self.service_ids.get_mut(place)) {
            Ok(Some(taken)) => *taken = service_id,
            Ok(None) | Err(_) => self.service_ids.push(service_id),
        }
    }
}

/// A filter for the outbound messages of a connector. A message has to match every field that is
/// set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundMessageFilter {
    /// The connector.
    pub connector: ConnectorName,
    /// In this state.
    pub state: Option<OutboundMessageState>,
}

/// Numbers of a connector's outbound messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutboundMessageCounts {
    /// Number of those that are still to be sent.
    pub open: u64,
    /// Number of messages for which it is unknown whether the service accepted them.
    pub unknown: u64,
    /// Number of those that were given up.
    pub dead: u64,
}

row! {
    /// An outbound message as it is stored. Its content is in the event that queued it.
    pub(super) struct StoredOutboundMessage
        from "outbound_messages d CROSS JOIN events e ON e.position = d.position"
    {
        queued: StoredEvent as row,
        state: OutboundMessageState = "d.state",
        attempts: u32 = "d.attempts",
        chunk: u32 = "d.chunk",
        next_try: Timestamp = "d.next_try",
        service_ids: Vec<TakenChunk> as json = "d.service_ids",
        reason: Option<String> = "d.reason",
        updated_at: Timestamp = "d.updated_at",
        position: u64 = "d.position",
    }
}

impl Store {
    /// Returns an outbound message; none if it does not exist or was erased.
    pub async fn outbound_message(
        &self,
        id: OutboundMessageId,
    ) -> Result<Option<OutboundMessageRow>, ReadError> {
        self.point_read(move |sql| {
            sql.one_there(
                select!(StoredOutboundMessage, "WHERE d.id = ?1"),
                [id],
                StoredOutboundMessage::read,
            )
        })
        .await
    }

    /// Returns the service's id of the message that the next attempt at an outbound message edits,
    /// according to its latest event. None if the next attempt sends a new message.
    pub async fn edited_by(&self, id: OutboundMessageId) -> Result<Option<String>, ReadError> {
        self.point_read(move |sql| {
            let text = "SELECT e.kind, e.payload FROM outbound_messages d CROSS JOIN events e ON \
                        e.position = d.last WHERE d.id = ?1";
            Ok(match event(sql, text, [id])? {
                Some(Event::OutboundMessageStarted(started)) => started.edits,
                Some(Event::OutboundMessageSettled(settled)) => settled.edits,
                Some(Event::OutboundMessageRequeued(requeued)) => requeued.edits,
                // It was queued or erased.
                Some(_) | None => None,
            })
        })
        .await
    }

    /// Returns the outbound messages that are due now, the longest due first, at most `limit`. Of
    /// each chat it returns only the oldest open one, and none while another one is being sent.
    /// Messages of the connectors in `without` are skipped, however many there are.
    pub async fn due_outbound_messages(
        &self,
        now: Timestamp,
        limit: usize,
        without: &BTreeSet<ConnectorName>,
    ) -> Result<Vec<OutboundMessageRow>, ReadError> {
        let without = json!(without).to_string();
        self.read(move |sql| {
            sql.all_there(select!(
                    StoredOutboundMessage,
                    "WHERE d.is_first = 1 AND d.state IN ('queued', 'failed') AND d.next_try <= \
                     :now AND d.connector NOT IN ",
                    texts!(":without"),
                    " AND NOT \
                     EXISTS (SELECT 1 FROM outbound_messages s WHERE s.connector = d.connector AND s.chat \
                     = d.chat AND s.state = 'started') ORDER BY d.next_try LIMIT :limit"
                ),
                named![now, limit, without], StoredOutboundMessage::read)
        })
        .await
    }

    /// Returns the earliest time after `now` at which an outbound message is due.
    pub async fn next_outbound_message_after(
        &self,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, ReadError> {
        self.point_read(move |sql| {
            sql.one::<Timestamp>(
                "SELECT next_try FROM outbound_messages WHERE is_first = 1 AND state IN ('queued', \
                 'failed') AND next_try > ?1 ORDER BY next_try LIMIT 1",
                [now],
            )
        })
        .await
    }

    /// Returns the outbound messages that were started and not settled, at most `limit`: those that
    /// are being sent, and those whose attempt a crash cut off. Messages of the connectors in
    /// `without` are skipped.
    pub async fn started_outbound_messages(
        &self,
        limit: usize,
        without: &BTreeSet<ConnectorName>,
    ) -> Result<Vec<OutboundMessageRow>, ReadError> {
        let without = json!(without).to_string();
        self.read(move |sql| {
            sql.all_there(
                select!(
                    StoredOutboundMessage,
                    "WHERE d.state = 'started' AND d.connector NOT IN ",
                    texts!(":without"),
                    " ORDER BY d.position LIMIT :limit"
                ),
                named![limit, without],
                StoredOutboundMessage::read,
            )
        })
        .await
    }

    /// Returns the outbound messages of runs, in order, at most `limit` for each run.
    pub async fn outbound_messages_of_runs(
        &self,
        runs: &[RunId],
        limit: usize,
    ) -> Result<Vec<OutboundMessageRow>, ReadError> {
        let runs = runs.to_vec();
        self.read(move |sql| {
            let mut all = Vec::new();
            for run in runs {
                let found = sql.all_there(
                    select!(
                        StoredOutboundMessage,
                        "WHERE d.run = ?1 ORDER BY d.position LIMIT ?2"
                    ),
                    args![run, limit],
                    StoredOutboundMessage::read,
                )?;
                all.extend(found);
            }
            Ok(all)
        })
        .await
    }

    /// Returns outbound messages into a chat in their order, after a position, at most `limit`.
    pub async fn outbound_messages_of_chat(
        &self,
        chat: &ReplyRoute,
        after: u64,
        limit: usize,
    ) -> Result<Vec<OutboundMessageRow>, ReadError> {
        let ReplyRoute { connector, chat } = chat.clone();
        self.read(move |sql| {
            sql.all_there(
                select!(
                    StoredOutboundMessage,
                    "WHERE d.connector = :connector AND d.chat = :chat AND d.position > :after \
                     ORDER BY d.position LIMIT :limit"
                ),
                named![connector, chat, after, limit],
                StoredOutboundMessage::read,
            )
        })
        .await
    }

    /// Returns outbound messages of a connector, the latest first, at most `limit`: those before
    /// the position `before`; of all without one.
    pub async fn outbound_messages(
        &self,
        filter: OutboundMessageFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<OutboundMessageRow>, ReadError> {
        let OutboundMessageFilter { connector, state } = filter;
        let connector = connector.to_string();
        let before = before.map_or(i64::MAX, int);
        self.read(move |sql| {
            let text = match state {
                Some(_) => select!(
                    StoredOutboundMessage,
                    "WHERE d.connector = :connector AND d.state = :state AND d.position < :before \
                     ORDER BY d.position DESC LIMIT :limit"
                ),
                None => select!(
                    StoredOutboundMessage,
                    "WHERE d.connector = :connector AND :state IS NULL AND d.position < :before \
                     ORDER BY d.position DESC LIMIT :limit"
                ),
            };
            let params = named![connector, state, before, limit];
            sql.all_there(text, params, StoredOutboundMessage::read)
        })
        .await
    }

    /// Returns the message chunks with these ids of a service, the latest first. One scan through
    /// the latest [`SCANNED_MAX`] of a connector finds all of them.
    pub async fn chunks_under(
        &self,
        connector: &ConnectorName,
        service_ids: &[&str],
    ) -> Result<Vec<ChunkUnderId>, ReadError> {
        let connector = connector.to_string();
        let wanted: BTreeSet<String> = service_ids.iter().map(|id| (*id).to_owned()).collect();
        self.read(move |sql| {
            let text = "SELECT id, service_ids FROM outbound_messages WHERE connector = ?1 ORDER BY \
                        position DESC LIMIT ?2";
            let latest: Vec<(OutboundMessageId, Json<Vec<TakenChunk>>)> =
                sql.all(text, args![connector, SCANNED_MAX])?;
            let chunks = latest.into_iter().flat_map(|(outbound_message, Json(taken))| {
                let numbered = (0..).zip(taken);
                numbered.map(move |(chunk, taken)| ChunkUnderId {
                    service_id: taken.id().to_owned(),
                    outbound_message,
                    chunk,
                })
            });
            Ok(chunks
                .filter(|chunk| wanted.contains(&chunk.service_id))
                .collect())
        })
        .await
    }

    /// Returns whether a message is being sent through a connector.
    pub async fn is_sending(&self, connector: &ConnectorName) -> Result<bool, ReadError> {
        let connector = connector.to_string();
        self.point_read(move |sql| {
            let text =
                "SELECT 1 FROM outbound_messages WHERE connector = ?1 AND state = 'started' LIMIT 1";
            sql.exists(text, [connector])
        })
        .await
    }

    /// Returns whether a message waits to be sent into a chat, or is being sent.
    pub async fn waits_for_chat(&self, route: &ReplyRoute) -> Result<bool, ReadError> {
        let ReplyRoute { connector, chat } = route.clone();
        self.point_read(move |sql| {
            let found = sql.one::<u64>(
                "SELECT 1 FROM outbound_messages WHERE connector = ?1 AND chat = ?2 AND state IN \
                 ('queued', 'started', 'failed') LIMIT 1",
                args![connector.to_string(), chat],
            )?;
            Ok(found.is_some())
        })
        .await
    }

    /// Returns how many messages wait for a chat and for its connector, each counted up to its
    /// limit.
    pub async fn waiting_outbound_messages(
        &self,
        route: &ReplyRoute,
    ) -> Result<WaitingOutboundMessages, ReadError> {
        let ReplyRoute { connector, chat } = route.clone();
        self.read(move |sql| {
            Ok(WaitingOutboundMessages {
                in_chat: sql.number(
                    "SELECT count(*) FROM (SELECT 1 FROM outbound_messages WHERE connector = :connector \
                     AND chat = :chat AND state IN ('queued', 'started', 'failed') LIMIT :limit)",
                    named![
                        connector = connector.to_string(),
                        chat,
                        limit = CHAT_OUTBOUND_MESSAGES_MAX
                    ],
                )?,
                of_connector: sql.number(
                    "SELECT count(*) FROM (SELECT 1 FROM outbound_messages WHERE connector = ?1 AND state \
                     IN ('queued', 'started', 'failed') LIMIT ?2)",
                    args![connector.to_string(), OUTBOUND_MESSAGES_MAX],
                )?,
            })
        })
        .await
    }

    /// Returns numbers of a connector's outbound messages. The time grows with them.
    pub async fn outbound_message_counts(
        &self,
        connector: &ConnectorName,
    ) -> Result<OutboundMessageCounts, ReadError> {
        let connector = connector.to_string();
        self.read(move |sql| {
            let count = |state: OutboundMessageState| {
                sql.number(
                    "SELECT count(*) FROM outbound_messages WHERE connector = ?1 AND state = ?2",
                    args![connector, state.as_str()],
                )
            };
            Ok(OutboundMessageCounts {
                open: count(OutboundMessageState::Queued)?
                    + count(OutboundMessageState::Started)?
                    + count(OutboundMessageState::Failed)?,
                unknown: count(OutboundMessageState::Unknown)?,
                dead: count(OutboundMessageState::Dead)?,
            })
        })
        .await
    }
}

/// Numbers of messages that wait to be sent, each counted up to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingOutboundMessages {
    /// Number of those for one chat.
    pub in_chat: u64,
    /// Number of those of its connector.
    pub of_connector: u64,
}

impl StoredOutboundMessage {
    /// Returns the outbound message; none if it is about to be erased.
    pub(super) fn read(self) -> sql::Result<Option<OutboundMessageRow>> {
        let queued = self.queued.only(
            |event| match event {
                Event::OutboundMessageQueued(queued) => Some(queued),
                _ => None,
            },
            "an outbound message points to another event",
        )?;
        let Some(queued) = queued else {
            return Ok(None);
        };
        let taken = self.service_ids;
        let lost = (0..)
            .zip(&taken)
            .filter(|(_, chunk)| chunk.lost_for().is_some());
        Ok(Some(OutboundMessageRow {
            outbound_message: queued.outbound_message,
            connector: queued.connector,
            chat: queued.chat,
            text: queued.text,
            choices: queued.choices,
            without_buttons: queued.without_buttons,
            cause: queued.cause,
            state: self.state,
            attempts: self.attempts,
            chunk: self.chunk,
            next_try: self.next_try,
            lost: lost.map(|(number, _)| number).collect(),
            service_ids: taken.iter().map(|chunk| chunk.id().to_owned()).collect(),
            reason: self.reason,
            queued: queued.time,
            updated: self.updated_at,
            position: self.position,
        }))
    }
}
