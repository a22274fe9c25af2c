//! The outbox to people outside: the state of each message.

use super::open_items::OpenItems;
use crate::sql::{self, Sql, insert, named, row, select, to_json};
use domain::event::{
    OutboundMessageCause, OutboundMessageOutcome, OutboundMessageQueued, OutboundMessageRequeued,
    OutboundMessageSettled, OutboundMessageStarted,
};
use domain::id::OutboundMessageId;
use serde::{Deserialize, Serialize};

/// The messages that are to be sent, by chat.
pub(crate) const OPEN: OpenItems = OpenItems {
    two_oldest: "SELECT position, is_first FROM outbound_messages WHERE connector = ?1 AND chat = \
                 ?2 AND state IN ('queued', 'started', 'failed') ORDER BY position LIMIT 2",
    mark: "UPDATE outbound_messages SET is_first = ?2 WHERE position = ?1",
};

/// A chunk that a service took, under an id of its own, as the table has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TakenChunk {
    /// It was delivered, as far as is known.
    Arrived(String),
    /// It was lost, according to a later report of the service.
    Lost {
        /// The id.
        lost: String,
        /// The reason.
        reason: String,
    },
}

impl TakenChunk {
    /// Returns the reason for the loss; none for a delivered message.
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

/// Returns the number of the first undelivered chunk from a given one on, from the number of
/// accepted chunks and the lost ones among them.
pub(crate) fn first_missing(lost: impl Iterator<Item = u32>, taken: usize, chunk: u32) -> u32 {
    let taken = u32::try_from(taken).unwrap_or(u32::MAX);
    let lost = lost.filter(|number| *number >= chunk).min();
    lost.unwrap_or_else(|| chunk.max(taken))
}

pub(super) fn queued(sql: &Sql<'_>, it: &OutboundMessageQueued, position: u64) -> sql::Result<()> {
    let (session, run, operation) = match &it.cause {
        OutboundMessageCause::Turn { session, run } => (Some(session), Some(run), None),
        OutboundMessageCause::Question {
            session,
            run,
            operation,
        } => (Some(session), Some(run), Some(operation)),
        OutboundMessageCause::Input { session, .. } => (Some(session), None, None),
        OutboundMessageCause::Host { .. } | OutboundMessageCause::Test { .. } => (None, None, None),
    };
    insert!(
        sql,
        outbound_messages {
            position,
            id: it.outbound_message,
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
    OPEN.find_first(sql, [it.connector.as_str(), &it.chat])
}

pub(super) fn started(
    sql: &Sql<'_>,
    it: &OutboundMessageStarted,
    position: u64,
) -> sql::Result<()> {
    sql.write(
        "UPDATE outbound_messages SET state = 'started', attempts = :attempts, updated_at = :updated_at, \
         last = :last, chunk = :chunk WHERE id = :id",
        named![
            id = it.outbound_message,
            attempts = it.attempt,
            updated_at = it.time,
            last = position,
            chunk = it.chunk
        ],
    )
}

/// Records the outcome of an attempt.
pub(super) fn settled(
    sql: &Sql<'_>,
    it: &OutboundMessageSettled,
    position: u64,
) -> sql::Result<()> {
    let id = it.outbound_message.0.0;
    let updated_at = it.time;
    let last = position;
    match &it.outcome {
        OutboundMessageOutcome::Delivered { service_ids } => {
            let mut chunks = needs_chunks(sql, it.outbound_message)?;
            chunks.take_all(service_ids);
            // An earlier chunk of it may have been lost before the service accepted the last one.
            let lost = chunks.taken.iter().find_map(TakenChunk::lost_for);
            let state = if lost.is_some() { "dead" } else { "delivered" };
            sql.execute(
                "UPDATE outbound_messages SET state = :state, is_first = 0, service_ids = :service_ids, \
                 reason = :reason, updated_at = :updated_at, last = :last WHERE id = :id",
                named![
                    id,
                    service_ids = to_json(&chunks.taken)?,
                    updated_at,
                    last,
                    state,
                    reason = lost
                ],
            )?
        }
        OutboundMessageOutcome::Chunk { service_id } => {
            let mut chunks = needs_chunks(sql, it.outbound_message)?;
            chunks.take(service_id);
            sql.execute(
                "UPDATE outbound_messages SET state = 'queued', attempts = 0, chunk = :chunk, next_try = \
                 :next_try, service_ids = :service_ids, reason = NULL, updated_at = :next_try, \
                 last = :last WHERE id = :id",
                named![
                    id,
                    service_ids = to_json(&chunks.taken)?,
                    next_try = updated_at,
                    last,
                    chunk = chunks.missing_from(chunks.present.saturating_add(1))
                ],
            )?
        }
        OutboundMessageOutcome::Undelivered { chunk, reason } => {
            let mut chunks = needs_chunks(sql, it.outbound_message)?;
            chunks.lose(*chunk, reason);
            sql.execute(
                "UPDATE outbound_messages SET state = CASE state WHEN 'delivered' THEN 'dead' ELSE state \
                 END, service_ids = :service_ids, reason = :reason, updated_at = :updated_at, last \
                 = :last WHERE id = :id",
                named![
                    id,
                    service_ids = to_json(&chunks.taken)?,
                    reason,
                    updated_at,
                    last
                ],
            )?
        }
        OutboundMessageOutcome::Failed { reason, retry_at } => sql.execute(
            "UPDATE outbound_messages SET state = 'failed', next_try = :next_try, reason = :reason, \
             updated_at = :updated_at, last = :last WHERE id = :id",
            named![id, next_try = retry_at, reason, updated_at, last],
        )?,
        OutboundMessageOutcome::Unknown { reason } => given_up(sql, it, "unknown", reason, position)?,
        OutboundMessageOutcome::Dead { reason } => given_up(sql, it, "dead", reason, position)?,
    };
    find_first_around(sql, it.outbound_message)
}

/// Ends the attempts at an outbound message. The next one of its chat becomes the first.
fn given_up(
    sql: &Sql<'_>,
    it: &OutboundMessageSettled,
    state: &str,
    reason: &str,
    last: u64,
) -> sql::Result<usize> {
    let id = it.outbound_message.0.0;
    let updated_at = it.time;
    sql.execute(
        "UPDATE outbound_messages SET state = :state, is_first = 0, reason = :reason, updated_at = \
         :updated_at, last = :last WHERE id = :id",
        named![id, state, reason, updated_at, last],
    )
}

/// Records that an outbound message that was given up is tried again, at its old place in its chat.
/// It continues at its first undelivered chunk.
pub(super) fn requeued(
    sql: &Sql<'_>,
    it: &OutboundMessageRequeued,
    position: u64,
) -> sql::Result<()> {
    sql.execute(
        "UPDATE outbound_messages SET state = 'queued', attempts = 0, next_try = :next_try, updated_at = \
         :next_try, last = :last, chunk = :chunk WHERE id = :id",
        named![
            id = it.outbound_message,
            next_try = it.time,
            last = position,
            chunk = needs_chunks(sql, it.outbound_message)?.missing_from(0)
        ],
    )?;
    find_first_around(sql, it.outbound_message)
}

row! {
    /// The chunks of an outbound message that the service accepted, and the number of the present
    /// one.
    #[derive(Default)]
    struct Chunks from "outbound_messages" {
        present: u32 = "chunk",
        taken: Vec<TakenChunk> as json = "service_ids",
    }
}

impl Chunks {
    /// Notes that the service took the present one.
    fn take(&mut self, service_id: &str) {
        let chunk = TakenChunk::Arrived(service_id.to_owned());
        match usize::try_from(self.present).map(|place| self.taken.get_mut(place)) {
            Ok(Some(taken)) => *taken = chunk,
            Ok(None) | Err(_) => self.taken.push(chunk),
        }
    }

    /// Records that the service accepted all of them. Chunks known to be lost under their ids stay
    /// lost.
    fn take_all(&mut self, service_ids: &[String]) {
        let before = std::mem::take(&mut self.taken);
        let mut before = before.into_iter();
        let all = service_ids.iter().map(|id| {
            let known = before.next().filter(|chunk| chunk.id() == id);
            known.unwrap_or_else(|| TakenChunk::Arrived(id.clone()))
        });
        self.taken = all.collect();
    }

    fn lose(&mut self, chunk: u32, reason: &str) {
        let taken = usize::try_from(chunk).map(|place| self.taken.get_mut(place));
        if let Ok(Some(taken)) = taken {
            *taken = TakenChunk::Lost {
                lost: taken.id().to_owned(),
                reason: reason.to_owned(),
            };
        }
    }

    /// Returns the number of the first chunk from this one on that has not arrived.
    fn missing_from(&self, chunk: u32) -> u32 {
        let taken = (0..).zip(&self.taken);
        let lost = taken.filter(|(_, taken)| taken.lost_for().is_some());
        first_missing(lost.map(|(number, _)| number), self.taken.len(), chunk)
    }
}

fn needs_chunks(sql: &Sql<'_>, outbound_message: OutboundMessageId) -> sql::Result<Chunks> {
    let found = sql.one(select!(Chunks, "WHERE id = ?1"), [outbound_message])?;
    Ok(found.unwrap_or_default())
}

row! {
    /// The chat of an outbound message.
    struct Chat from "outbound_messages" {
        connector: String,
        chat: String,
    }
}

fn find_first_around(sql: &Sql<'_>, outbound_message: OutboundMessageId) -> sql::Result<()> {
    match needs_chat(sql, outbound_message)? {
        Some(Chat { connector, chat }) => OPEN.find_first(sql, [connector, chat]),
        None => Ok(()),
    }
}

fn needs_chat(sql: &Sql<'_>, outbound_message: OutboundMessageId) -> sql::Result<Option<Chat>> {
    sql.one(select!(Chat, "WHERE id = ?1"), [outbound_message])
}
