//! Messages from people outside, and the progress of each connector in reading them.

use crate::sql::{self, Sql, insert, named, to_json};
use domain::event::{
    ConnectorReceived, ConnectorTroubled, InboundMessageOutcome, InboundMessagesSettled, Recorded,
};
use domain::id::{ConnectorId, TriggerEventId};
use domain::path::ConnectorName;
use std::collections::BTreeSet;

/// Records inbound messages. A message that already exists was re-emitted, because its event is
/// about to be erased.
pub(super) fn received(sql: &Sql<'_>, it: &ConnectorReceived, position: u64) -> sql::Result<()> {
    there(sql, &it.connector)?;
    if let Some(cursor) = &it.cursor {
        sql.execute(
            "UPDATE connectors SET cursor = :cursor, cursor_position = :cursor_position WHERE id = \
             :id",
            named![id = id(&it.connector), cursor, cursor_position = position],
        )?;
    }
    for (place, inbound_message) in it.inbound_messages.iter().enumerate() {
        insert!(
            sql,
            inbound_messages {
                position,
                place,
                id: inbound_message.id,
                connector: it.connector,
                chat: inbound_message.message.chat,
                message: inbound_message.message.id,
                received: it.time
            },
            "ON CONFLICT (id) DO UPDATE SET position = excluded.position, place = excluded.place"
        )?;
    }
    let chats: BTreeSet<&str> = it
        .inbound_messages
        .iter()
        .map(|inbound_message| inbound_message.message.chat.as_str())
        .collect();
    chats
        .into_iter()
        .try_for_each(|chat| find_first(sql, it.connector.as_str(), chat))
}

/// Records the outcomes of inbound messages, with the sessions that took them or asked the
/// questions that they answer.
pub(super) fn settled(
    sql: &Sql<'_>,
    it: &InboundMessagesSettled,
    recorded: &Recorded,
) -> sql::Result<()> {
    let (session, operation) = match &it.outcome {
        InboundMessageOutcome::Accepted { session, .. }
        | InboundMessageOutcome::Configured { session, .. } => (Some(*session), None),
        InboundMessageOutcome::Answered { operation, .. } => {
            (recorded.subject.session, Some(operation))
        }
        InboundMessageOutcome::Ignored
        | InboundMessageOutcome::Unknown
        | InboundMessageOutcome::Paired
        | InboundMessageOutcome::Refused { .. } => (recorded.subject.session, None),
    };
    // The inbound message may have been erased since.
    there(sql, &it.connector)?;
    let outcome = to_json(&it.outcome)?;
    let mut chats: BTreeSet<String> = BTreeSet::new();
    for inbound_message in &it.inbound_messages {
        let chat = sql.one(
            "UPDATE inbound_messages SET outcome = :outcome, settled_at = :settled_at, is_first = 0, \
             session = coalesce(:session, (SELECT session FROM outbound_messages WHERE operation = \
             :operation LIMIT 1)) WHERE id = :id RETURNING chat",
            named![
                id = inbound_message,
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

/// Marks the oldest open inbound message of a chat as the first, and no other.
fn find_first(sql: &Sql<'_>, connector: &str, chat: &str) -> sql::Result<()> {
    let oldest = needs_oldest(sql, connector, chat)?;
    sql.execute(
        "UPDATE inbound_messages SET is_first = 0 WHERE connector = :connector AND chat = :chat AND \
         is_first = 1 AND id IS DISTINCT FROM :id",
        named![connector, chat, id = oldest],
    )?;
    sql.write(
        "UPDATE inbound_messages SET is_first = 1 WHERE id = ?1 AND is_first = 0",
        [oldest],
    )
}

/// Reads the id of the oldest open inbound message of a chat.
fn needs_oldest(sql: &Sql<'_>, connector: &str, chat: &str) -> sql::Result<Option<TriggerEventId>> {
    sql.one(
        "SELECT id FROM inbound_messages WHERE connector = ?1 AND chat = ?2 AND outcome IS NULL ORDER BY \
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
