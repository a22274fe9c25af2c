//! The outbox to people outside, and where the replies of a session go.

use super::ReadError;
use crate::event_row::{StoredEvent, event};
use crate::projections::deliveries::{TakenPiece, first_missing};
use crate::sql::{self, Args, Json, Sql, args, int, named, row, select, stored_as_word};
use crate::sqlite::texts;
use crate::store::Store;
use domain::connector::{CHAT_DELIVERIES_MAX, Choice, DELIVERIES_MAX, ReplyRoute};
use domain::event::{DeliveryCause, Event};
use domain::id::{DeliveryId, RunId};
use domain::path::ConnectorName;
use domain::time::Timestamp;
use serde::Serialize;
use std::collections::BTreeSet;
use std::str::FromStr;

/// Deliveries that are looked through for an id of their service.
pub(super) const LOOKED_THROUGH_MAX: usize = 10_000;

/// The state of a message to people outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// It is to be sent, or its next piece is.
    Queued,
    /// It is about to be sent. After a crash it is not known whether it was.
    Started,
    /// It was not taken, and is tried again.
    Failed,
    /// The service took it.
    Delivered,
    /// It cannot be told whether it was taken.
    Unknown,
    /// It was given up.
    Dead,
}

impl DeliveryState {
    /// All states.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Started,
        Self::Failed,
        Self::Delivered,
        Self::Unknown,
        Self::Dead,
    ];

    /// The state as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Started => "started",
            Self::Failed => "failed",
            Self::Delivered => "delivered",
            Self::Unknown => "unknown",
            Self::Dead => "dead",
        }
    }

    /// Returns whether it is still to be sent.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Started | Self::Failed)
    }
}

stored_as_word!(DeliveryState);

impl FromStr for DeliveryState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::as_str).join(", ");
                format!("`{text}` is no state of a delivery; there are {known}")
            })
    }
}

/// A message to people outside, with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Its id.
    pub delivery: DeliveryId,
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
    pub cause: DeliveryCause,
    /// Its state.
    pub state: DeliveryState,
    /// Number of the latest attempt at the present piece; 0 before the first.
    pub attempts: u32,
    /// Number of the present piece, from 0: the first that has not arrived, when it was looked for
    /// last.
    pub piece: u32,
    /// Time before which it is not tried.
    pub next_try: Timestamp,
    /// The service's ids of the pieces that were taken.
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

/// A piece of a message, by the service's id of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceUnderId {
    /// The service's id.
    pub service_id: String,
    /// The message.
    pub delivery: DeliveryId,
    /// Number of the piece, from 0.
    pub piece: u32,
}

impl DeliveryRow {
    /// Returns the number of the first piece from this one on that has not arrived.
    #[must_use]
    pub fn missing_from(&self, piece: u32) -> u32 {
        first_missing(self.lost.iter().copied(), self.service_ids.len(), piece)
    }

    /// Returns the service's id of a piece that did not arrive; none of any other.
    #[must_use]
    pub fn lost_id(&self, piece: u32) -> Option<&str> {
        let place = usize::try_from(piece).ok()?;
        let id = self.service_ids.get(place)?;
        self.lost.contains(&piece).then_some(id)
    }

    /// Notes that the service took a piece.
    pub fn take(&mut self, piece: u32, service_id: String) {
        self.lost.remove(&piece);
        match usize::try_from(piece).map(|place| self.service_ids.get_mut(place)) {
            Ok(Some(taken)) => *taken = service_id,
            Ok(None) | Err(_) => self.service_ids.push(service_id),
        }
    }
}

/// The deliveries of a connector that are meant. One has to match every field that is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// The connector.
    pub connector: ConnectorName,
    /// In this state.
    pub state: Option<DeliveryState>,
}

/// Numbers of a connector's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryCounts {
    /// Number of those that are still to be sent.
    pub open: u64,
    /// Number of those of which it cannot be told whether they were taken.
    pub unknown: u64,
    /// Number of those that were given up.
    pub dead: u64,
}

row! {
    /// A delivery as it is stored: what is to be sent stands in the event that queued it.
    pub(super) struct StoredDelivery
        from "deliveries d CROSS JOIN events e ON e.position = d.position"
    {
        queued: StoredEvent as row,
        state: DeliveryState = "d.state",
        attempts: u32 = "d.attempts",
        piece: u32 = "d.piece",
        next_try: Timestamp = "d.next_try",
        service_ids: Vec<TakenPiece> as json = "d.service_ids",
        reason: Option<String> = "d.reason",
        updated_at: Timestamp = "d.updated_at",
        position: u64 = "d.position",
    }
}

impl Store {
    /// Returns a delivery; none when there is none, or it was erased.
    pub async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryRow>, ReadError> {
        self.point_read(move |sql| {
            let found: Option<StoredDelivery> =
                sql.one(select!(StoredDelivery, "WHERE d.id = ?1"), [id])?;
            found.map_or(Ok(None), StoredDelivery::read)
        })
        .await
    }

    /// Returns the service's id of the message that the next attempt at a delivery edits, as its
    /// latest event says; none if the next one is a message of its own.
    pub async fn edited_by(&self, id: DeliveryId) -> Result<Option<String>, ReadError> {
        self.point_read(move |sql| {
            let text = "SELECT e.kind, e.payload FROM deliveries d CROSS JOIN events e ON \
                        e.position = d.last WHERE d.id = ?1";
            Ok(match event(sql, text, [id])? {
                Some(Event::DeliveryStarted(started)) => started.edits,
                Some(Event::DeliverySettled(settled)) => settled.edits,
                Some(Event::DeliveryRequeued(requeued)) => requeued.edits,
                // It was queued, or was erased.
                Some(_) | None => None,
            })
        })
        .await
    }

    /// Returns deliveries that are to be sent now, those that are due longest first, at most
    /// `limit`: of each chat only the oldest that is open, and none while another is being sent.
    /// Those of the connectors in `without` are passed over, however many there are.
    pub async fn due_deliveries(
        &self,
        now: Timestamp,
        limit: usize,
        without: &BTreeSet<ConnectorName>,
    ) -> Result<Vec<DeliveryRow>, ReadError> {
        let without: Vec<&str> = without.iter().map(ConnectorName::as_str).collect();
        let without = serde_json::json!(without).to_string();
        self.read(move |sql| {
            read_all(
                sql,
                select!(
                    StoredDelivery,
                    "WHERE d.is_first = 1 AND d.state IN ('queued', 'failed') AND d.next_try <= \
                     :now AND d.connector NOT IN ",
                    texts!(":without"),
                    " AND NOT \
                     EXISTS (SELECT 1 FROM deliveries s WHERE s.connector = d.connector AND s.chat \
                     = d.chat AND s.state = 'started') ORDER BY d.next_try LIMIT :limit"
                ),
                named![now, limit, without],
            )
        })
        .await
    }

    /// Returns the earliest time after `now` at which a delivery is to be tried.
    pub async fn next_delivery_after(
        &self,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, ReadError> {
        self.point_read(move |sql| {
            sql.one::<Timestamp>(
                "SELECT next_try FROM deliveries WHERE is_first = 1 AND state IN ('queued', \
                 'failed') AND next_try > ?1 ORDER BY next_try LIMIT 1",
                [now],
            )
        })
        .await
    }

    /// Returns deliveries that were begun and not settled, after a position, at most `limit`: what
    /// a recovery examines.
    pub async fn started_deliveries(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, ReadError> {
        self.read(move |sql| {
            read_all(
                sql,
                select!(
                    StoredDelivery,
                    "WHERE d.state = 'started' AND d.position > ?1 ORDER BY d.position LIMIT ?2"
                ),
                args![after, limit],
            )
        })
        .await
    }

    /// Returns the deliveries that come of runs, in order, at most `limit` for each run.
    pub async fn deliveries_of_runs(
        &self,
        runs: &[RunId],
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, ReadError> {
        let runs = runs.to_vec();
        self.read(move |sql| {
            let mut all = Vec::new();
            for run in runs {
                let found = read_all(
                    sql,
                    select!(
                        StoredDelivery,
                        "WHERE d.run = ?1 ORDER BY d.position LIMIT ?2"
                    ),
                    args![run, limit],
                )?;
                all.extend(found);
            }
            Ok(all)
        })
        .await
    }

    /// Returns deliveries into a chat in their order, after a position, at most `limit`.
    pub async fn deliveries_of_chat(
        &self,
        chat: &ReplyRoute,
        after: u64,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, ReadError> {
        let ReplyRoute { connector, chat } = chat.clone();
        self.read(move |sql| {
            read_all(
                sql,
                select!(
                    StoredDelivery,
                    "WHERE d.connector = :connector AND d.chat = :chat AND d.position > :after \
                     ORDER BY d.position LIMIT :limit"
                ),
                named![connector, chat, after, limit],
            )
        })
        .await
    }

    /// Returns deliveries of a connector, the latest first, at most `limit`: those before the
    /// position `before`; of all without one.
    pub async fn deliveries(
        &self,
        filter: DeliveryFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, ReadError> {
        let DeliveryFilter { connector, state } = filter;
        let connector = connector.to_string();
        let before = before.map_or(i64::MAX, int);
        self.read(move |sql| {
            let text = match state {
                Some(_) => select!(
                    StoredDelivery,
                    "WHERE d.connector = :connector AND d.state = :state AND d.position < :before \
                     ORDER BY d.position DESC LIMIT :limit"
                ),
                None => select!(
                    StoredDelivery,
                    "WHERE d.connector = :connector AND :state IS NULL AND d.position < :before \
                     ORDER BY d.position DESC LIMIT :limit"
                ),
            };
            let params = named![connector, state, before, limit];
            read_all(sql, text, params)
        })
        .await
    }

    /// Returns the pieces of messages that a service knows by these ids, the latest first. One look
    /// through the latest [`LOOKED_THROUGH_MAX`] of a connector finds all of them.
    pub async fn pieces_under(
        &self,
        connector: &ConnectorName,
        service_ids: &[&str],
    ) -> Result<Vec<PieceUnderId>, ReadError> {
        let connector = connector.to_string();
        let wanted: BTreeSet<String> = service_ids.iter().map(|id| (*id).to_owned()).collect();
        self.read(move |sql| {
            let text = "SELECT id, service_ids FROM deliveries WHERE connector = ?1 ORDER BY \
                        position DESC LIMIT ?2";
            let latest: Vec<(DeliveryId, Json<Vec<TakenPiece>>)> =
                sql.all(text, args![connector, LOOKED_THROUGH_MAX])?;
            let pieces = latest.into_iter().flat_map(|(delivery, Json(taken))| {
                let numbered = (0..).zip(taken);
                numbered.map(move |(piece, taken)| PieceUnderId {
                    service_id: taken.id().to_owned(),
                    delivery,
                    piece,
                })
            });
            Ok(pieces
                .filter(|piece| wanted.contains(&piece.service_id))
                .collect())
        })
        .await
    }

    /// Returns whether a message is being sent through a connector.
    pub async fn is_sending(&self, connector: &ConnectorName) -> Result<bool, ReadError> {
        let connector = connector.to_string();
        self.point_read(move |sql| {
            let text =
                "SELECT 1 FROM deliveries WHERE connector = ?1 AND state = 'started' LIMIT 1";
            sql.exists(text, [connector])
        })
        .await
    }

    /// Returns whether a message waits to be sent into a chat, or is being sent.
    pub async fn waits_for_chat(&self, route: &ReplyRoute) -> Result<bool, ReadError> {
        let ReplyRoute { connector, chat } = route.clone();
        self.point_read(move |sql| {
            let found = sql.one::<u64>(
                "SELECT 1 FROM deliveries WHERE connector = ?1 AND chat = ?2 AND state IN \
                 ('queued', 'started', 'failed') LIMIT 1",
                args![connector.to_string(), chat],
            )?;
            Ok(found.is_some())
        })
        .await
    }

    /// Returns how many messages wait for a chat and for its connector, each counted up to its
    /// limit.
    pub async fn waiting_deliveries(
        &self,
        route: &ReplyRoute,
    ) -> Result<WaitingDeliveries, ReadError> {
        let ReplyRoute { connector, chat } = route.clone();
        self.read(move |sql| {
            Ok(WaitingDeliveries {
                in_chat: sql.number(
                    "SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE connector = :connector \
                     AND chat = :chat AND state IN ('queued', 'started', 'failed') LIMIT :limit)",
                    named![
                        connector = connector.to_string(),
                        chat,
                        limit = CHAT_DELIVERIES_MAX
                    ],
                )?,
                of_connector: sql.number(
                    "SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE connector = ?1 AND state \
                     IN ('queued', 'started', 'failed') LIMIT ?2)",
                    args![connector.to_string(), DELIVERIES_MAX],
                )?,
            })
        })
        .await
    }

    /// Returns numbers of a connector's deliveries. The time grows with them.
    pub async fn delivery_counts(
        &self,
        connector: &ConnectorName,
    ) -> Result<DeliveryCounts, ReadError> {
        let connector = connector.to_string();
        self.read(move |sql| {
            let count = |state: DeliveryState| {
                sql.number(
                    "SELECT count(*) FROM deliveries WHERE connector = ?1 AND state = ?2",
                    args![connector, state.as_str()],
                )
            };
            Ok(DeliveryCounts {
                open: count(DeliveryState::Queued)?
                    + count(DeliveryState::Started)?
                    + count(DeliveryState::Failed)?,
                unknown: count(DeliveryState::Unknown)?,
                dead: count(DeliveryState::Dead)?,
            })
        })
        .await
    }
}

/// Numbers of messages that wait to be sent, each counted up to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingDeliveries {
    /// Number of those for one chat.
    pub in_chat: u64,
    /// Number of those of its connector.
    pub of_connector: u64,
}

impl StoredDelivery {
    /// Returns the delivery; none when it is about to be erased.
    pub(super) fn read(self) -> sql::Result<Option<DeliveryRow>> {
        let queued = self.queued.only(
            |event| match event {
                Event::DeliveryQueued(queued) => Some(queued),
                _ => None,
            },
            "a delivery points to another event",
        )?;
        let Some(queued) = queued else {
            return Ok(None);
        };
        let taken = self.service_ids;
        let lost = (0..)
            .zip(&taken)
            .filter(|(_, piece)| piece.lost_for().is_some());
        Ok(Some(DeliveryRow {
            delivery: queued.delivery,
            connector: queued.connector,
            chat: queued.chat,
            text: queued.text,
            choices: queued.choices,
            without_buttons: queued.without_buttons,
            cause: queued.cause,
            state: self.state,
            attempts: self.attempts,
            piece: self.piece,
            next_try: self.next_try,
            lost: lost.map(|(number, _)| number).collect(),
            service_ids: taken.iter().map(|piece| piece.id().to_owned()).collect(),
            reason: self.reason,
            queued: queued.time,
            updated: self.updated_at,
            position: self.position,
        }))
    }
}

/// Reads the deliveries that a statement selects, without those that are about to be erased.
fn read_all(sql: &Sql<'_>, text: &'static str, args: impl Args) -> sql::Result<Vec<DeliveryRow>> {
    let stored: Vec<StoredDelivery> = sql.all(text, args)?;
    let read = stored.into_iter().map(StoredDelivery::read);
    read.filter_map(Result::transpose).collect()
}
