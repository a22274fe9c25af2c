//! The outbox to people outside: how far each message has come.

use crate::sql::{Columns, Sql, int, to_json};
use domain::event::{
    DeliveryCause, DeliveryOutcome, DeliveryQueued, DeliveryRequeued, DeliverySettled,
    DeliveryStarted,
};
use domain::id::DeliveryId;
use rusqlite::params;
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

pub(super) fn queued(sql: &Sql<'_>, it: &DeliveryQueued, position: u64) -> rusqlite::Result<()> {
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
    sql.execute(
        "INSERT INTO deliveries (position, id, connector, chat, session, run, operation, state, \
         next_try, service_ids, queued_at, updated_at, last) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, \
         'queued', ?8, '[]', ?8, ?8, ?1)",
        params![
            int(position),
            it.delivery.0.0,
            it.connector.as_str(),
            it.chat,
            session.map(ToString::to_string),
            run.map(ToString::to_string),
            operation.map(|operation| operation.0.0),
            int(it.time.0),
        ],
    )?;
    find_first(sql, it.connector.as_str(), &it.chat)
}

pub(super) fn started(sql: &Sql<'_>, it: &DeliveryStarted, position: u64) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE deliveries SET state = 'started', attempts = ?2, updated_at = ?3, last = ?4, piece \
         = ?5 WHERE id = ?1",
        params![
            it.delivery.0.0,
            it.attempt,
            int(it.time.0),
            int(position),
            it.piece
        ],
    )
}

/// It is known what became of an attempt.
pub(super) fn settled(sql: &Sql<'_>, it: &DeliverySettled, position: u64) -> rusqlite::Result<()> {
    let id = it.delivery.0.0;
    let time = int(it.time.0);
    match &it.outcome {
        DeliveryOutcome::Delivered { service_ids } => {
            let mut pieces = needs_pieces(sql, it.delivery)?;
            pieces.take_all(service_ids);
            // A piece of it may have been lost before the last one was taken.
            let lost = pieces.taken.iter().find_map(TakenPiece::lost_for);
            let state = match lost {
                Some(_) => "dead",
                None => "delivered",
            };
            sql.execute(
                "UPDATE deliveries SET state = ?5, is_first = 0, service_ids = ?2, reason = ?6, \
                 updated_at = ?3, last = ?4 WHERE id = ?1",
                params![
                    id,
                    to_json(&pieces.taken)?,
                    time,
                    int(position),
                    state,
                    lost
                ],
            )?
        }
        DeliveryOutcome::Piece { service_id } => {
            let mut pieces = needs_pieces(sql, it.delivery)?;
            pieces.take(service_id);
            sql.execute(
                "UPDATE deliveries SET state = 'queued', attempts = 0, piece = ?5, next_try = ?3, \
                 service_ids = ?2, reason = NULL, updated_at = ?3, last = ?4 WHERE id = ?1",
                params![
                    id,
                    to_json(&pieces.taken)?,
                    time,
                    int(position),
                    pieces.missing_from(pieces.present.saturating_add(1))
                ],
            )?
        }
        DeliveryOutcome::Undelivered { piece, reason } => {
            let mut pieces = needs_pieces(sql, it.delivery)?;
            pieces.lose(*piece, reason);
            sql.execute(
                "UPDATE deliveries SET state = CASE state WHEN 'delivered' THEN 'dead' ELSE state \
                 END, service_ids = ?2, reason = ?3, updated_at = ?4, last = ?5 WHERE id = ?1",
                params![id, to_json(&pieces.taken)?, reason, time, int(position)],
            )?
        }
        DeliveryOutcome::Failed { reason, retry_at } => sql.execute(
            "UPDATE deliveries SET state = 'failed', next_try = ?2, reason = ?3, updated_at = ?4, \
             last = ?5 WHERE id = ?1",
            params![id, int(retry_at.0), reason, time, int(position)],
        )?,
        DeliveryOutcome::Unknown { reason } => sql.execute(
            "UPDATE deliveries SET state = 'unknown', is_first = 0, reason = ?2, updated_at = ?3, \
             last = ?4 WHERE id = ?1",
            params![id, reason, time, int(position)],
        )?,
        DeliveryOutcome::Dead { reason } => sql.execute(
            "UPDATE deliveries SET state = 'dead', is_first = 0, reason = ?2, updated_at = ?3, \
             last = ?4 WHERE id = ?1",
            params![id, reason, time, int(position)],
        )?,
    };
    find_first_around(sql, it.delivery)
}

/// A delivery that had been given up is tried again, at its old place among those of its chat: from
/// the first piece on that has not arrived.
pub(super) fn requeued(
    sql: &Sql<'_>,
    it: &DeliveryRequeued,
    position: u64,
) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE deliveries SET state = 'queued', attempts = 0, next_try = ?2, updated_at = ?2, \
         last = ?3, piece = ?4 WHERE id = ?1",
        params![
            it.delivery.0.0,
            int(it.time.0),
            int(position),
            needs_pieces(sql, it.delivery)?.missing_from(0)
        ],
    )?;
    find_first_around(sql, it.delivery)
}

/// The pieces of a delivery that the service took, and the number of the one that it is at.
#[derive(Default)]
struct Pieces {
    present: u32,
    taken: Vec<TakenPiece>,
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

fn needs_pieces(sql: &Sql<'_>, delivery: DeliveryId) -> rusqlite::Result<Pieces> {
    let found = sql.row(
        "SELECT piece, service_ids FROM deliveries WHERE id = ?1",
        [delivery.0.0],
        |row| {
            Ok(Pieces {
                present: row.get(0)?,
                taken: row.json(1)?,
            })
        },
    )?;
    Ok(found.unwrap_or_default())
}

/// The chat of a delivery.
struct Chat {
    connector: String,
    chat: String,
}

fn find_first_around(sql: &Sql<'_>, delivery: DeliveryId) -> rusqlite::Result<()> {
    match needs_chat(sql, delivery)? {
        Some(Chat { connector, chat }) => find_first(sql, &connector, &chat),
        None => Ok(()),
    }
}

fn needs_chat(sql: &Sql<'_>, delivery: DeliveryId) -> rusqlite::Result<Option<Chat>> {
    sql.row(
        "SELECT connector, chat FROM deliveries WHERE id = ?1",
        [delivery.0.0],
        |row| {
            Ok(Chat {
                connector: row.get(0)?,
                chat: row.get(1)?,
            })
        },
    )
}

/// Marks the oldest open delivery into a chat as the first. One that was the first is next to it if
/// an older one is open again.
pub(crate) fn find_first(sql: &Sql<'_>, connector: &str, chat: &str) -> rusqlite::Result<()> {
    for (place, open) in needs_oldest(sql, connector, chat)?.iter().enumerate() {
        let is_first = place == 0;
        if open.is_first != is_first {
            sql.execute(
                "UPDATE deliveries SET is_first = ?2 WHERE position = ?1",
                params![int(open.position), is_first],
            )?;
        }
    }
    Ok(())
}

/// An open delivery into a chat.
struct Open {
    position: u64,
    is_first: bool,
}

/// Reads the two oldest open deliveries into a chat.
fn needs_oldest(sql: &Sql<'_>, connector: &str, chat: &str) -> rusqlite::Result<Vec<Open>> {
    sql.rows(
        "SELECT position, is_first FROM deliveries WHERE connector = ?1 AND chat = ?2 AND state IN \
         ('queued', 'started', 'failed') ORDER BY position LIMIT 2",
        [connector, chat],
        |row| {
            Ok(Open {
                position: row.uint(0)?,
                is_first: row.get(1)?,
            })
        },
    )
}
