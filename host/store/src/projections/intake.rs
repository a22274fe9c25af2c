//! Messages that arrive from people outside, and how far each connector has come.

use crate::sql::{self, Sql, insert, named, to_json};
use domain::event::{
    ArrivalOutcome, ArrivalsSettled, ConnectorReceived, ConnectorTroubled, Recorded,
};
use domain::id::{ConnectorId, OccasionId};
use domain::path::ConnectorName;
use std::collections::BTreeSet;

/// Messages arrived. One that is there already has moved: its event is about to be erased.
pub(super) fn received(sql: &Sql<'_>, it: &ConnectorReceived, position: u64) -> sql::Result<()> {
    there(sql, &it.connector)?;
    if let Some(cursor) = &it.cursor {
        sql.execute(
            "UPDATE connectors SET cursor = :cursor, cursor_position = :cursor_position WHERE id = \
             :id",
            named![id = id(&it.connector), cursor, cursor_position = position],
        )?;
    }
    for (place, arrival) in it.arrivals.iter().enumerate() {
        insert!(
            sql,
            arrivals {
                position,
                place,
                id: arrival.id,
                connector: it.connector,
                chat: arrival.message.chat,
                message: arrival.message.id,
                received: it.time
            },
            "ON CONFLICT (id) DO UPDATE SET position = excluded.position, place = excluded.place"
        )?;
    }
    let chats: BTreeSet<&str> = it
        .arrivals
        .iter()
        .map(|arrival| arrival.message.chat.as_str())
        .collect();
    chats
        .into_iter()
        .try_for_each(|chat| find_first(sql, it.connector.as_str(), chat))
}

/// It is known what became of arrivals: also which session took them, or asked what they answer.
pub(super) fn settled(sql: &Sql<'_>, it: &ArrivalsSettled, recorded: &Recorded) -> sql::Result<()> {
    let (session, operation) = match &it.outcome {
        ArrivalOutcome::Accepted { session, .. } | ArrivalOutcome::Configured { session, .. } => {
            (Some(*session), None)
        }
        ArrivalOutcome::Answered { operation, .. } => (recorded.subject.session, Some(operation)),
        ArrivalOutcome::Ignored
        | ArrivalOutcome::Unknown
        | ArrivalOutcome::Paired
        | ArrivalOutcome::Refused { .. } => (recorded.subject.session, None),
    };
    // What arrived may be erased since.
    there(sql, &it.connector)?;
    let outcome = to_json(&it.outcome)?;
    let mut chats: BTreeSet<String> = BTreeSet::new();
    for arrival in &it.arrivals {
        let chat = sql.one(
            "UPDATE arrivals SET outcome = :outcome, settled_at = :settled_at, is_first = 0, \
             session = coalesce(:session, (SELECT session FROM deliveries WHERE operation = \
             :operation LIMIT 1)) WHERE id = :id RETURNING chat",
            named![
                id = arrival,
                outcome,
                settled_at = it.time,
                session,
                operation
            ],
        )?;
        chats.extend(chat);
    }
    chats
        .iter()
        .try_for_each(|chat| find_first(sql, it.connector.as_str(), chat))
}

/// Marks the oldest open arrival of a chat as the first, and no other.
fn find_first(sql: &Sql<'_>, connector: &str, chat: &str) -> sql::Result<()> {
    let oldest = needs_oldest(sql, connector, chat)?;
    sql.execute(
        "UPDATE arrivals SET is_first = 0 WHERE connector = :connector AND chat = :chat AND \
         is_first = 1 AND id IS DISTINCT FROM :id",
        named![connector, chat, id = oldest],
    )?;
    sql.write(
        "UPDATE arrivals SET is_first = 1 WHERE id = ?1 AND is_first = 0",
        [oldest],
    )
}

/// Reads the id of the oldest open arrival of a chat.
fn needs_oldest(sql: &Sql<'_>, connector: &str, chat: &str) -> sql::Result<Option<OccasionId>> {
    sql.one(
        "SELECT id FROM arrivals WHERE connector = ?1 AND chat = ?2 AND outcome IS NULL ORDER BY \
         received, position, place LIMIT 1",
        [connector, chat],
    )
}

pub(super) fn troubled(sql: &Sql<'_>, it: &ConnectorTroubled) -> sql::Result<()> {
    there(sql, &it.connector)?;
    sql.write(
        "UPDATE connectors SET trouble = :trouble, troubled_at = :troubled_at WHERE id = :id",
        named![
            id = id(&it.connector),
            trouble = to_json(&it.trouble)?,
            troubled_at = it.time
        ],
    )
}

/// Something happened to a connector.
fn there(sql: &Sql<'_>, name: &ConnectorName) -> sql::Result<()> {
    insert!(
        sql,
        connectors { id: id(name), name },
        "ON CONFLICT DO NOTHING"
    )
}

fn id(name: &ConnectorName) -> ConnectorId {
    ConnectorId::of_name(name.as_str())
}
