//! The outbox to people outside: how far each message has come.

use crate::sql::{Columns, Sql, int, to_json};
use domain::event::{
    DeliveryCause, DeliveryOutcome, DeliveryQueued, DeliveryRequeued, DeliverySettled,
    DeliveryStarted,
};
use domain::id::DeliveryId;
use rusqlite::params;

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
        "UPDATE deliveries SET state = 'started', attempts = ?2, updated_at = ?3, last = ?4 WHERE \
         id = ?1",
        params![it.delivery.0.0, it.attempt, int(it.time.0), int(position)],
    )
}

/// It is known what became of an attempt.
pub(super) fn settled(sql: &Sql<'_>, it: &DeliverySettled, position: u64) -> rusqlite::Result<()> {
    let id = it.delivery.0.0;
    let time = int(it.time.0);
    match &it.outcome {
        DeliveryOutcome::Delivered { service_ids } => sql.execute(
            "UPDATE deliveries SET state = 'delivered', is_first = 0, service_ids = ?2, reason = \
             NULL, updated_at = ?3, last = ?4 WHERE id = ?1",
            params![id, to_json(service_ids)?, time, int(position)],
        )?,
        DeliveryOutcome::Piece { service_id } => sql.execute(
            "UPDATE deliveries SET state = 'queued', attempts = 0, piece = piece + 1, next_try = \
             ?3, service_ids = json_insert(service_ids, '$[#]', ?2), reason = NULL, updated_at = \
             ?3, last = ?4 WHERE id = ?1",
            params![id, service_id, time, int(position)],
        )?,
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

/// A delivery that had been given up is tried again, at its old place among those of its chat.
pub(super) fn requeued(
    sql: &Sql<'_>,
    it: &DeliveryRequeued,
    position: u64,
) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE deliveries SET state = 'queued', attempts = 0, next_try = ?2, updated_at = ?2, \
         last = ?3 WHERE id = ?1",
        params![it.delivery.0.0, int(it.time.0), int(position)],
    )?;
    find_first_around(sql, it.delivery)
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
