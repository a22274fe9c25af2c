//! Messages from people outside, and the progress of each connector in reading them.

use super::open_items::OpenItems;
use crate::sql::{self, Sql, args, insert, named, to_json};
use domain::event::{
    ConnectorReceived, ConnectorTroubled, InboundMessageOutcome, InboundMessagesSettled, Received,
    Recorded,
};
use domain::id::ConnectorId;
use domain::path::ConnectorName;
use std::collections::BTreeSet;

/// The messages that are not settled, by chat.
const OPEN: OpenItems = OpenItems {
    two_oldest: "SELECT position, is_first FROM inbound_messages WHERE connector = ?1 AND chat = \
                 ?2 AND outcome IS NULL ORDER BY received, position LIMIT 2",
    mark: "UPDATE inbound_messages SET is_first = ?2 WHERE position = ?1",
};

/// Records an inbound message, or where a connector's next poll continues.
pub(super) fn received(sql: &Sql<'_>, it: &ConnectorReceived, position: u64) -> sql::Result<()> {
    there(sql, &it.connector)?;
    let inbound_message = match &it.what {
        Received::InboundMessage(inbound_message) => inbound_message,
        Received::Cursor(cursor) => {
            return sql.write(
                "UPDATE connectors SET cursor = ?2 WHERE id = ?1",
                args![id(&it.connector), cursor],
            );
        }
    };
    let message = &inbound_message.message;
    insert!(
        sql,
        inbound_messages {
            position,
            id: inbound_message.id,
            connector: it.connector,
            chat: message.chat,
            message: message.id,
            received: it.time
        }
    )?;
    OPEN.find_first(sql, [it.connector.as_str(), &message.chat])
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
        .try_for_each(|chat| OPEN.find_first(sql, [it.connector.as_str(), chat]))
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
