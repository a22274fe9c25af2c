//! The outbox to people outside: how far each message has come.

use crate::sql::{self, Sql, args, insert, named, row, select, to_json};
use domain::event::{
    DeliveryCause, DeliveryOutcome, DeliveryQueued, DeliveryRequeued, DeliverySettled,
    DeliveryStarted,
};
use domain::id::DeliveryId;
use serde::{Deserialize, Serialize};

/// A piece that a service took, under an id of its own, as the table has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TakenPiece {
    /// It arrived, as far as anybody knows.
    Arrived(String),
    /// It did not, as the service said later.
    Lost {
        /// The id.
        lost: String,
        /// The reason.
        reason: String,
    },
}

impl TakenPiece {
    /// Returns the reason for which it did not arrive; none of one that did.
    pub(crate) fn lost_for(&self) -> Option<&str> {
        match self {
            Self::Arrived(_) => None,
            Self::Lost { reason, .. } => Some(reason),
        }
    }

    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Arrived(id) | Self::Lost { lost: id, .. } => id,
        }
    }
}

/// Returns the number of the first piece from one on that has not arrived, of so many that were
/// taken and those of them that were lost.
pub(crate) fn first_missing(lost: impl Iterator<Item = u32>, taken: usize, piece: u32) -> u32 {
    let taken = u32::try_from(taken).unwrap_or(u32::MAX);
    let lost = lost.filter(|number| *number >= piece).min();
    lost.unwrap_or_else(|| piece.max(taken))
}

pub(super) fn queued(sql: &Sql<'_>, it: &DeliveryQueued, position: u64) -> sql::Result<()> {
    let (session, run, operation) = match &it.cause {
        DeliveryCause::Turn { session, run } => (Some(session), Some(run), None),
        DeliveryCause::Question {
            session,
            run,
            operation,
        } => (Some(session), Some(run), Some(operation)),
        DeliveryCause::Input { session, .. } => (Some(session), None, None),
        DeliveryCause::Host { .. } | DeliveryCause::Test { .. } => (None, None, None),
    };
    insert!(
        sql,
        deliveries {
            position,
            id: it.delivery,
            connector: it.connector,
            chat: it.chat,
            session,
            run,
            operation,
            state: "queued",
            next_try: it.time,
            service_ids: "[]",
            queued_at: it.time,
            updated_at: it.time,
            last: position
        }
    )?;
    find_first(sql, it.connector.as_str(), &it.chat)
}

pub(super) fn started(sql: &Sql<'_>, it: &DeliveryStarted, position: u64) -> sql::Result<()> {
    sql.write(
        "UPDATE deliveries SET state = 'started', attempts = :attempts, updated_at = :updated_at, \
         last = :last, piece = :piece WHERE id = :id",
        named![
            id = it.delivery,
            attempts = it.attempt,
            updated_at = it.time,
            last = position,
            piece = it.piece
        ],
    )
}

/// It is known what became of an attempt.
pub(super) fn settled(sql: &Sql<'_>, it: &DeliverySettled, position: u64) -> sql::Result<()> {
    let id = it.delivery.0.0;
    let updated_at = it.time;
    let last = position;
    match &it.outcome {
        DeliveryOutcome::Delivered { service_ids } => {
            let mut pieces = needs_pieces(sql, it.delivery)?;
            pieces.take_all(service_ids);
            // A piece of it may have been lost before the last one was taken.
            let lost = pieces.taken.iter().find_map(TakenPiece::lost_for);
            let state = if lost.is_some() { "dead" } else { "delivered" };
            sql.execute(
                "UPDATE deliveries SET state = :state, is_first = 0, service_ids = :service_ids, \
                 reason = :reason, updated_at = :updated_at, last = :last WHERE id = :id",
                named![
                    id,
                    service_ids = to_json(&pieces.taken)?,
                    updated_at,
                    last,
                    state,
                    reason = lost
                ],
            )?
        }
        DeliveryOutcome::Piece { service_id } => {
            let mut pieces = needs_pieces(sql, it.delivery)?;
            pieces.take(service_id);
            sql.execute(
                "UPDATE deliveries SET state = 'queued', attempts = 0, piece = :piece, next_try = \
                 :next_try, service_ids = :service_ids, reason = NULL, updated_at = :next_try, \
                 last = :last WHERE id = :id",
                named![
                    id,
                    service_ids = to_json(&pieces.taken)?,
                    next_try = updated_at,
                    last,
                    piece = pieces.missing_from(pieces.present.saturating_add(1))
                ],
            )?
        }
        DeliveryOutcome::Undelivered { piece, reason } => {
            let mut pieces = needs_pieces(sql, it.delivery)?;
            pieces.lose(*piece, reason);
            sql.execute(
                "UPDATE deliveries SET state = CASE state WHEN 'delivered' THEN 'dead' ELSE state \
                 END, service_ids = :service_ids, reason = :reason, updated_at = :updated_at, last \
                 = :last WHERE id = :id",
                named![
                    id,
                    service_ids = to_json(&pieces.taken)?,
                    reason,
                    updated_at,
                    last
                ],
            )?
        }
        DeliveryOutcome::Failed { reason, retry_at } => sql.execute(
            "UPDATE deliveries SET state = 'failed', next_try = :next_try, reason = :reason, \
             updated_at = :updated_at, last = :last WHERE id = :id",
            named![id, next_try = retry_at, reason, updated_at, last],
        )?,
        DeliveryOutcome::Unknown { reason } => given_up(sql, it, "unknown", reason, position)?,
        DeliveryOutcome::Dead { reason } => given_up(sql, it, "dead", reason, position)?,
    };
    find_first_around(sql, it.delivery)
}

/// Ends the tries of a delivery. The next one of its chat takes its place.
fn given_up(
    sql: &Sql<'_>,
    it: &DeliverySettled,
    state: &str,
    reason: &str,
    last: u64,
) -> sql::Result<usize> {
    let id = it.delivery.0.0;
    let updated_at = it.time;
    sql.execute(
        "UPDATE deliveries SET state = :state, is_first = 0, reason = :reason, updated_at = \
         :updated_at, last = :last WHERE id = :id",
        named![id, state, reason, updated_at, last],
    )
}

/// A delivery that had been given up is tried again, at its old place among those of its chat: from
/// the first piece on that has not arrived.
pub(super) fn requeued(sql: &Sql<'_>, it: &DeliveryRequeued, position: u64) -> sql::Result<()> {
    sql.execute(
        "UPDATE deliveries SET state = 'queued', attempts = 0, next_try = :next_try, updated_at = \
         :next_try, last = :last, piece = :piece WHERE id = :id",
        named![
            id = it.delivery,
            next_try = it.time,
            last = position,
            piece = needs_pieces(sql, it.delivery)?.missing_from(0)
        ],
    )?;
    find_first_around(sql, it.delivery)
}

row! {
    /// The pieces of a delivery that the service took, and the number of the one that it is at.
    #[derive(Default)]
    struct Pieces from "deliveries" {
        present: u32 = "piece",
        taken: Vec<TakenPiece> as json = "service_ids",
    }
}

impl Pieces {
    /// Notes that the service took the present one.
    fn take(&mut self, service_id: &str) {
        let piece = TakenPiece::Arrived(service_id.to_owned());
        match usize::try_from(self.present).map(|place| self.taken.get_mut(place)) {
            Ok(Some(taken)) => *taken = piece,
            Ok(None) | Err(_) => self.taken.push(piece),
        }
    }

    /// Notes that the service took all of them. What is known to be lost under its id stays so.
    fn take_all(&mut self, service_ids: &[String]) {
        let before = std::mem::take(&mut self.taken);
        let mut before = before.into_iter();
        let all = service_ids.iter().map(|id| {
            let known = before.next().filter(|piece| piece.id() == id);
            known.unwrap_or_else(|| TakenPiece::Arrived(id.clone()))
        });
        self.taken = all.collect();
    }

    fn lose(&mut self, piece: u32, reason: &str) {
        let taken = usize::try_from(piece).map(|place| self.taken.get_mut(place));
        if let Ok(Some(taken)) = taken {
            *taken = TakenPiece::Lost {
                lost: taken.id().to_owned(),
                reason: reason.to_owned(),
            };
        }
    }

    /// Returns the number of the first piece from this one on that has not arrived.
    fn missing_from(&self, piece: u32) -> u32 {
        let taken = (0..).zip(&self.taken);
        let lost = taken.filter(|(_, taken)| taken.lost_for().is_some());
        first_missing(lost.map(|(number, _)| number), self.taken.len(), piece)
    }
}

fn needs_pieces(sql: &Sql<'_>, delivery: DeliveryId) -> sql::Result<Pieces> {
    let found = sql.one(select!(Pieces, "WHERE id = ?1"), [delivery])?;
    Ok(found.unwrap_or_default())
}

row! {
    /// The chat of a delivery.
    struct Chat from "deliveries" {
        connector: String,
        chat: String,
    }
}

fn find_first_around(sql: &Sql<'_>, delivery: DeliveryId) -> sql::Result<()> {
    match needs_chat(sql, delivery)? {
        Some(Chat { connector, chat }) => find_first(sql, &connector, &chat),
        None => Ok(()),
    }
}

fn needs_chat(sql: &Sql<'_>, delivery: DeliveryId) -> sql::Result<Option<Chat>> {
    sql.one(select!(Chat, "WHERE id = ?1"), [delivery])
}

/// Marks the oldest open delivery into a chat as the first. One that was the first is next to it if
/// an older one is open again.
pub(crate) fn find_first(sql: &Sql<'_>, connector: &str, chat: &str) -> sql::Result<()> {
    for (place, open) in needs_oldest(sql, connector, chat)?.iter().enumerate() {
        let is_first = place == 0;
        if open.is_first != is_first {
            sql.execute(
                "UPDATE deliveries SET is_first = ?2 WHERE position = ?1",
                args![open.position, is_first],
            )?;
        }
    }
    Ok(())
}

row! {
    /// An open delivery into a chat.
    struct Open from "deliveries" {
        position: u64,
        is_first: bool,
    }
}

/// Reads the two oldest open deliveries into a chat.
fn needs_oldest(sql: &Sql<'_>, connector: &str, chat: &str) -> sql::Result<Vec<Open>> {
    let text = select!(
        Open,
        "WHERE connector = ?1 AND chat = ?2 AND state IN ('queued', 'started', 'failed') ORDER BY \
         position LIMIT 2"
    );
    sql.all(text, [connector, chat])
}
