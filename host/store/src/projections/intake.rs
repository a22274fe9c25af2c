//! Messages that arrive from people outside, and how far each connector has come.

use crate::sql::{Sql, int, limit, to_json};
use domain::event::{
    ArrivalOutcome, ArrivalsSettled, ConnectorReceived, ConnectorTroubled, Recorded,
};
use domain::id::ConnectorId;
use domain::path::ConnectorName;
use rusqlite::params;
use std::collections::BTreeSet;

/// Messages arrived. One that is there already has moved: its event is about to be erased.
pub(super) fn received(
    sql: &Sql<'_>,
    it: &ConnectorReceived,
    position: u64,
) -> rusqlite::Result<()> {
    there(sql, &it.connector)?;
    if let Some(cursor) = &it.cursor {
        sql.execute(
            "UPDATE connectors SET cursor = ?2, cursor_position = ?3 WHERE id = ?1",
            params![id(&it.connector), cursor, int(position)],
        )?;
    }
    for (place, arrival) in it.arrivals.iter().enumerate() {
        sql.execute(
            "INSERT INTO arrivals (position, place, id, connector, chat, message, received) VALUES \
             (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO UPDATE SET position = \
             excluded.position, place = excluded.place",
            params![
                int(position),
                limit(place),
                arrival.id.to_string(),
                it.connector.as_str(),
                arrival.message.chat,
                arrival.message.id,
                int(it.time.0),
            ],
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
pub(super) fn settled(
    sql: &Sql<'_>,
    it: &ArrivalsSettled,
    recorded: &Recorded,
) -> rusqlite::Result<()> {
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
        let chat = sql.row(
            "UPDATE arrivals SET outcome = ?2, settled_at = ?3, is_first = 0, session = \
             coalesce(?4, (SELECT session FROM deliveries WHERE operation = ?5 LIMIT 1)) WHERE id \
             = ?1 RETURNING chat",
            params![
                arrival.to_string(),
                outcome,
                int(it.time.0),
                session.map(|session| session.to_string()),
                operation.map(|operation| operation.0.0),
            ],
            |row| row.get(0),
        )?;
        chats.extend(chat);
    }
    chats
        .iter()
        .try_for_each(|chat| find_first(sql, it.connector.as_str(), chat))
}

/// Marks the oldest open arrival of a chat as the first, and no other.
fn find_first(sql: &Sql<'_>, connector: &str, chat: &str) -> rusqlite::Result<()> {
    let oldest = needs_oldest(sql, connector, chat)?;
    sql.execute(
        "UPDATE arrivals SET is_first = 0 WHERE connector = ?1 AND chat = ?2 AND is_first = 1 AND \
         id IS NOT ?3",
        params![connector, chat, oldest],
    )?;
    sql.write(
        "UPDATE arrivals SET is_first = 1 WHERE id = ?1 AND is_first = 0",
        [oldest],
    )
}

/// Reads the id of the oldest open arrival of a chat.
fn needs_oldest(sql: &Sql<'_>, connector: &str, chat: &str) -> rusqlite::Result<Option<String>> {
    sql.row(
        "SELECT id FROM arrivals WHERE connector = ?1 AND chat = ?2 AND outcome IS NULL ORDER BY \
         received, position, place LIMIT 1",
        [connector, chat],
        |row| row.get(0),
    )
}

pub(super) fn troubled(sql: &Sql<'_>, it: &ConnectorTroubled) -> rusqlite::Result<()> {
    there(sql, &it.connector)?;
    sql.write(
        "UPDATE connectors SET trouble = ?2, troubled_at = ?3 WHERE id = ?1",
        params![id(&it.connector), to_json(&it.trouble)?, int(it.time.0)],
    )
}

/// Something happened to a connector.
fn there(sql: &Sql<'_>, name: &ConnectorName) -> rusqlite::Result<()> {
    sql.write(
        "INSERT INTO connectors (id, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        params![id(name), name.as_str()],
    )
}

fn id(name: &ConnectorName) -> String {
    ConnectorId::of_name(name.as_str()).to_string()
}
